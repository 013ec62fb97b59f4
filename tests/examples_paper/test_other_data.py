"""What is kept beside a file of results belongs to its data: with other data it is made anew, or refused."""

import shutil

import numpy as np
import pytest

from examples.paper import data, run, tables


@pytest.fixture(autouse=True)
def _untuned(monkeypatch, tmp_path):
    """The settings of the repository's file do not matter."""
    monkeypatch.setattr(tables, "TUNED", tmp_path / "tuned.json")


# ---------------------------------------------------------------------------- T that methods start from
@pytest.fixture
def other_root(data_root, tmp_path):
    """The same images in another order."""
    folder = tmp_path / "other"
    for name in ("cifar10", "cifar10n"):
        shutil.copytree(data_root / name, folder / name)
    images = np.load(folder / "cifar10" / "X_train.npy")
    np.save(folder / "cifar10" / "X_train.npy", images[::-1])
    return folder


@pytest.fixture
def states(tmp_path):
    (tmp_path / "states").mkdir()
    return tmp_path / "states"


def of_worse(method):
    (cell,) = run.matching(tables.cells("cifar10n", "smoke", [0], methods=[method]), ["worse"])
    return cell


def start(root, states):
    """GLC's T by the data of a folder."""
    cell, places = of_worse("GLC"), data.Places(root, states=states)
    return run.glc_matrix(cell, data.load(*run.data_of(cell), places), places)


def test_T_that_methods_start_from_is_of_the_data(data_root, other_root, states, tmp_path):
    first, other = start(data_root, states), start(other_root, states)
    (tmp_path / "alone").mkdir()
    assert (first != other).any()
    np.testing.assert_array_equal(other, start(other_root, tmp_path / "alone"))
    np.testing.assert_array_equal(first, start(data_root, states))
    assert len(list(states.glob("*.npz"))) == 1, "that of the other data is replaced"


def test_T_of_the_same_data_in_another_folder_is_not_made_again(data_root, tmp_path, states, monkeypatch):
    first = start(data_root, states)
    for name in ("cifar10", "cifar10n"):
        shutil.copytree(data_root / name, tmp_path / "copy" / name)
    monkeypatch.setattr(run, "fit_warm_up", None)
    np.testing.assert_array_equal(start(tmp_path / "copy", states), first)


def test_cross_entropy_does_not_go_on_from_the_state_of_other_data(data_root, other_root, states):
    start(data_root, states)
    cell, places = of_worse("cross-entropy"), data.Places(other_root, states=states)
    _, row = run.run(cell, places)
    assert "error" not in row, row
    assert row == run.run(cell, places)[1] | {"seconds": row["seconds"]}


def test_a_start_that_is_interrupted_goes_on(data_root, other_root, states, monkeypatch):
    """After it has removed the state of other data, too."""
    start(data_root, states)

    def stop(*args):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(run, "gold_transition_matrix", stop)
        with pytest.raises(KeyboardInterrupt):
            start(other_root, states)
    removed = []
    monkeypatch.setattr(run.shutil, "rmtree", lambda path, **how: removed.append(path))
    start(other_root, states)
    assert not removed


def test_the_fingerprint_is_of_the_rows_that_are_trained_with(data_root):
    places, cell = data.Places(data_root), of_worse("GLC")
    found = data.load(*run.data_of(cell), places)
    own = data.fingerprint(found)
    assert own == data.fingerprint(found._replace(X=np.array(found.X), y_test=found.y_test[::-1]))
    for part in ("X", "y", "X_meta", "y_meta"):
        assert own != data.fingerprint(found._replace(**{part: np.roll(getattr(found, part), 1, axis=0)})), part
