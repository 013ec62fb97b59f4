import pickle

import numpy as np
import pytest
import torch
from dataset_files import cut, pixels, write_human_pt, write_npy

from noisytransition.datasets import load_cifar10, load_cifar10_1, load_cifar10h, load_cifar10n

CLEAN = np.arange(60) % 10
NAMES = {"aggre_label": 0.1, "worse_label": 0.4, "random_label1": 0.2, "random_label2": 0.2, "random_label3": 0.2}
LABELS = {"clean_label": CLEAN} | {
    name: np.where(np.random.default_rng(i).random(60) < rate, (CLEAN + 1) % 10, CLEAN)
    for i, (name, rate) in enumerate(NAMES.items())
}
KEYS = {"clean": "clean_label", "aggre": "aggre_label", "worse": "worse_label"} | {
    f"random{i}": f"random_label{i}" for i in (1, 2, 3)
}


@pytest.fixture
def human(tmp_path):
    write_human_pt(tmp_path / "CIFAR-10_human.pt", **LABELS)
    return tmp_path / "CIFAR-10_human.pt"


# ---------------------------------------------------------------------------- CIFAR-10N
@pytest.mark.parametrize("labels", sorted(KEYS))
def test_label_sets_of_the_archive_and_of_npy_files(human, labels, tmp_path):
    for path in (human, human.parent):
        np.testing.assert_array_equal(load_cifar10n(path, labels), LABELS[KEYS[labels]])
    (tmp_path / "npy").mkdir()
    file = tmp_path / "npy" / f"cifar10n_{labels}.npy"
    np.save(file, LABELS[KEYS[labels]].astype(np.uint8))
    for path in (file, file.parent):
        np.testing.assert_array_equal(load_cifar10n(path, labels), LABELS[KEYS[labels]])


def test_an_archive_of_this_numpy_and_one_of_tensors(tmp_path):
    path = tmp_path / "labels.pt"
    for content in (LABELS, {name: torch.tensor(array) for name, array in LABELS.items()}):
        for zipped in (True, False):
            torch.save(content, path, _use_new_zipfile_serialization=zipped)
            np.testing.assert_array_equal(load_cifar10n(path), LABELS["worse_label"])


def test_people_s_labels_as_noise(human, tmp_path):
    folder = write_npy(tmp_path / "images", pixels(60), CLEAN, pixels(20), CLEAN[:20])
    data = load_cifar10(folder, noise=load_cifar10n(human, "worse"), n_meta=10, random_state=0)
    np.testing.assert_array_equal(data.y, LABELS["worse_label"][data.rows])
    np.testing.assert_array_equal(data.y_meta_noisy, LABELS["worse_label"][data.rows_meta])
    assert data.transition_matrix is None


class Attack:
    def __reduce__(self):
        return print, ("code of the file ran",)


def test_no_code_of_an_archive_runs(tmp_path, capsys):
    path = tmp_path / "CIFAR-10_human.pt"
    torch.save({"worse_label": Attack()}, path)
    with pytest.raises(ValueError, match="does not hold arrays in torch's format"):
        load_cifar10n(path)
    path.write_bytes(pickle.dumps(Attack(), protocol=2))
    with pytest.raises(ValueError, match="does not hold arrays in torch's format"):
        load_cifar10n(path)
    assert "ran" not in capsys.readouterr().out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ([1, 2], "it has no worse_label, but list"),
        ({"noisy_label": CLEAN}, r"it has no worse_label, but \['noisy_label'\]"),
        (LABELS | {"worse_label": CLEAN[:-1]}, "it has 59 labels for 60 rows"),
        (LABELS | {"worse_label": CLEAN + 1}, "it has the labels 1..10, not 0..9"),
    ],
)
def test_archives_with_other_content(tmp_path, content, message):
    torch.save(content, tmp_path / "CIFAR-10_human.pt")
    with pytest.raises(ValueError, match=rf"CIFAR-10_human.pt .*{message}.*noisylabels.com"):
        load_cifar10n(tmp_path)


def test_files_of_cifar10n_that_are_missing_or_truncated(human, tmp_path):
    cut(human)
    with pytest.raises(ValueError, match=r"CIFAR-10_human.pt .*bytes.*noisylabels.com"):
        load_cifar10n(human)
    human.unlink()
    with pytest.raises(FileNotFoundError, match=r"CIFAR-10_human.pt is missing.*cifar10n_worse.npy.*noisylabels.com"):
        load_cifar10n(tmp_path)
    with pytest.raises(FileNotFoundError, match=r"CIFAR-10_human.pt is missing"):
        load_cifar10n(human)
    (tmp_path / "inner").mkdir()
    write_human_pt(tmp_path / "inner" / human.name, **LABELS)
    with pytest.raises(FileNotFoundError, match=rf"It is in {tmp_path / 'inner'}"):
        load_cifar10n(human)
    np.save(tmp_path / "cifar10n_worse.npy", CLEAN)
    cut(tmp_path / "cifar10n_worse.npy")
    with pytest.raises(ValueError, match="not a whole"):
        load_cifar10n(tmp_path)
    with pytest.raises(ValueError, match="labels='worst'"):
        load_cifar10n(tmp_path, "worst")


# ---------------------------------------------------------------------------- CIFAR-10H
def test_counts_and_probabilities_are_the_same(tmp_path):
    counts = np.random.default_rng(0).integers(1, 20, size=(30, 10))
    for name, array in (("cifar10h-counts", counts), ("cifar10h-probs", counts / counts.sum(axis=1, keepdims=True))):
        np.save(tmp_path / f"{name}.npy", array)
        proba = load_cifar10h(tmp_path / f"{name}.npy")
        np.testing.assert_allclose(proba, counts / counts.sum(axis=1, keepdims=True))
        np.testing.assert_allclose(load_cifar10h(tmp_path), proba)


def test_files_of_cifar10h_that_are_missing_or_damaged(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"cifar10h-probs.npy is missing.*cifar10h-counts.npy.*jcpeterson"):
        load_cifar10h(tmp_path)
    path = tmp_path / "cifar10h-counts.npy"
    for array, message in ((np.ones((5, 9)), r"shape \(5, 9\), not \(n, 10\)"), (np.zeros((5, 10)), "no counts")):
        np.save(path, array)
        with pytest.raises(ValueError, match=message):
            load_cifar10h(path)
    cut(path)
    with pytest.raises(ValueError, match=r"not a whole .npy file.*jcpeterson"):
        load_cifar10h(tmp_path)


# ---------------------------------------------------------------------------- CIFAR-10.1
@pytest.mark.parametrize("version", ["v4", "v6"])
def test_cifar10_1(tmp_path, version):
    np.save(tmp_path / f"cifar10.1_{version}_data.npy", pixels(20))
    np.save(tmp_path / f"cifar10.1_{version}_labels.npy", CLEAN[:20].astype(np.int32))
    X, y = load_cifar10_1(tmp_path, version)
    np.testing.assert_array_equal(X, pixels(20))
    np.testing.assert_array_equal(y, CLEAN[:20])
    with pytest.raises(FileNotFoundError, match=r"_data.npy is missing.*modestyachts"):
        load_cifar10_1(tmp_path, "v4" if version == "v6" else "v6")


def test_files_of_cifar10_1_that_are_missing_or_damaged(tmp_path):
    np.save(tmp_path / "cifar10.1_v6_data.npy", pixels(20))
    with pytest.raises(FileNotFoundError, match=r"cifar10.1_v6_labels.npy is missing"):
        load_cifar10_1(tmp_path)
    np.save(tmp_path / "cifar10.1_v6_labels.npy", CLEAN[:19])
    with pytest.raises(ValueError, match="19 labels for 20 rows"):
        load_cifar10_1(tmp_path)
    with pytest.raises(ValueError, match="version='v5'"):
        load_cifar10_1(tmp_path, "v5")
    (tmp_path / "inner").mkdir()
    with pytest.raises(FileNotFoundError, match=f"It is in {tmp_path}: pass this folder"):
        load_cifar10_1(tmp_path / "inner")
    cut(tmp_path / "cifar10.1_v6_data.npy")
    with pytest.raises(ValueError, match=r"_data.npy .*not a whole .npy file"):
        load_cifar10_1(tmp_path)


def test_a_folder_with_a_dot_in_its_name(human, tmp_path):
    folder = tmp_path / "cifar10.v1"
    folder.mkdir()
    np.save(folder / "cifar10h-probs.npy", np.eye(10))
    np.testing.assert_array_equal(load_cifar10h(folder), np.eye(10))
    with pytest.raises(FileNotFoundError, match=r"CIFAR-10_human.pt is missing. .*cifar10.v1 has cifar10h-probs.npy"):
        load_cifar10n(folder)


def test_errors_of_readers_that_advise_to_run_code_are_not_passed_on(tmp_path):
    path = tmp_path / "labels.csv"
    path.write_text("1,2\n")
    for load in (load_cifar10n, load_cifar10h):
        with pytest.raises(ValueError, match=r"labels.csv") as caught:
            load(path)
        assert not any(word in str(caught.value) for word in ("weights_only", "allow_pickle"))
