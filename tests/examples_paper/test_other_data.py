"""What is kept beside a file of results belongs to its data: with other data it is made anew, or refused."""

import json
import shutil

import numpy as np
import pytest

from examples.benchmarks.shared import add_row, read_rows
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


# ---------------------------------------------------------------------------- features
def write_features(folder, seed, about=None):
    """Random features; `about` is what was written beside them of how they were made."""
    folder.mkdir(exist_ok=True)
    rng = np.random.default_rng(seed)
    for part, n in (("train", 300), ("test", 40)):
        np.save(folder / f"cifar10_{part}.npy", rng.normal(size=(n, 4)).astype(np.float32))
        if about is not None:
            (folder / f"cifar10_{part}.json").write_text(json.dumps(about | {"items": n}))
    return folder


@pytest.fixture
def fill(data_root, tmp_path, monkeypatch):
    """Run cells of a table by the features of a folder; return the rows."""
    scale = tables.SCALES["features"]
    scale = scale._replace(n_meta=30, networks=("linear",), training=scale.training | {"max_epochs": 1})
    monkeypatch.setitem(tables.SCALES, "features", scale)

    def fill(folder, method="clean rows only", table="cifar10", out=tmp_path / "rows.jsonl"):
        chosen = ["--scale", "features", "--seeds", "0", "--methods", method]
        noise = "worse" if table == "cifar10n" else "symmetric 0.2"
        places = ["--data-root", str(data_root), "--features-dir", str(folder), "--out", str(out)]
        run.main([table, *chosen, "--cell", noise, *places])
        return read_rows(out)

    return fill


ABOUT = {"network": "one", "size": 128, "sha256": "1f"}


@pytest.mark.parametrize("method", ["clean rows only", "fine-tuning"])
@pytest.mark.parametrize("known", [True, False])
def test_a_file_of_results_has_rows_of_the_same_features(fill, tmp_path, method, known):
    """Also where all cells of the second call are there."""
    one, two = ({} if not known else ABOUT | {"network": name} for name in ("one", "two"))
    a = write_features(tmp_path / "a", 0, one or None)
    b = write_features(tmp_path / "b", 1, two or None)
    (row,) = fill(a)
    with pytest.raises(SystemExit, match=f"other features .{row['features']}. .*--features-dir that .*another --out"):
        fill(b, method)
    assert read_rows(tmp_path / "rows.jsonl") == [row]
    (other,) = fill(b, out=tmp_path / "other.jsonl")
    assert other["features"] != row["features"]
    assert run.key(other) == run.key(row)


def test_the_same_features_in_another_folder_are_the_same(fill, tmp_path):
    """What is known of how they were made counts, and not the last digits, which differ between processors."""
    fill(write_features(tmp_path / "a", 0, ABOUT))
    rows = fill(write_features(tmp_path / "b", 1, ABOUT), "fine-tuning")
    assert len({row["features"] for row in rows}) == 1
    assert len(rows) == 2


def test_rows_that_do_not_say_their_features_are_taken(fill, tmp_path):
    folder, out = write_features(tmp_path / "a", 0, ABOUT), tmp_path / "rows.jsonl"
    (row,) = fill(folder, out=tmp_path / "first.jsonl")
    old = {name: value for name, value in row.items() if name != "features"}
    add_row(out, old)
    assert fill(folder) == [old]
    assert fill(folder, "fine-tuning")[1]["features"] == row["features"]


def test_another_table_in_the_same_file_may_have_other_features(fill, tmp_path):
    fill(write_features(tmp_path / "a", 0))
    assert len(fill(write_features(tmp_path / "b", 1), table="cifar10n")) == 2


def test_features_that_are_missing_are_an_error_of_the_cell(fill, tmp_path, capsys):
    with pytest.raises(SystemExit, match="1 cells failed"):
        fill(tmp_path / "nowhere")
    assert "FAILED: FileNotFoundError" in capsys.readouterr().out


def test_a_call_with_nothing_to_run_says_so(fill, tmp_path, capsys):
    folder, out = write_features(tmp_path / "a", 0), tmp_path / "rows.jsonl"
    fill(folder)
    assert "nothing is left" not in capsys.readouterr().out
    fill(folder)
    assert capsys.readouterr().out == f"nothing is left to run: {out} has the rows of these 1 cells.\n"
