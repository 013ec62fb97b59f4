from pathlib import Path

import numpy as np
import pytest
from dataset_files import CLOTHES, cut, write_clothing1m

from noisytransition.datasets import load_clothing1m, load_clothing1m_part

pytest.importorskip("torchvision")


@pytest.fixture
def root(tmp_path):
    return write_clothing1m(tmp_path / "clothing1M")


def number(path):
    return int(Path(path).name.partition(",")[0])


def test_noisy_clean_and_test_images(root):
    data = load_clothing1m(root)
    assert [number(path) for path in data.X.paths] == list(range(42))
    np.testing.assert_array_equal(data.y, np.arange(42) % 14)
    assert [number(path) for path in data.X_meta.paths] == list(range(42, 70))
    np.testing.assert_array_equal(data.y_meta, np.arange(28) % 14)
    assert [number(path) for path in data.X_test.paths] == list(range(84, 98))
    np.testing.assert_array_equal(data.y_test, np.arange(14))
    assert data.classes == tuple(CLOTHES.split())
    assert (data.y_meta_noisy, data.y_true, data.transition_matrix) == (None, None, None)
    assert data.X[0].shape == data.X[1].shape == (224, 224, 3)


def test_clean_images_that_have_both_labels(root):
    data = load_clothing1m(root, both_labels=True)
    np.testing.assert_array_equal(data.rows_meta, np.arange(1, 28, 2))
    np.testing.assert_array_equal(data.y_meta_noisy, (data.y_meta + 1) % 14)
    part = load_clothing1m_part(root, "test")
    np.testing.assert_array_equal(part.y_noisy, np.where(np.arange(14) % 2, (np.arange(14) + 1) % 14, -1))
    assert len(part.X) == len(part.y) == 14
    assert len(load_clothing1m_part(root, "validation", both_labels=True).y) == 7


def test_draws_of_clean_and_noisy_images(root):
    data = load_clothing1m(root, n_meta=14, n_noisy=10, random_state=0)
    assert np.bincount(data.y_meta).tolist() == [1] * 14
    assert [number(data.X_meta.dataset.paths[i]) - 42 for i in data.X_meta.indices] == data.rows_meta.tolist()
    assert [number(path) for path in data.X.paths] == data.rows.tolist()
    assert len(data.rows) == 10
    validation = load_clothing1m(root, meta="validation", n_meta=5, balanced=False, random_state=0)
    assert {number(validation.X_meta.dataset.paths[i]) // 14 for i in validation.X_meta.indices} == {5}
    again = load_clothing1m(root, n_meta=14, n_noisy=10, random_state=0)
    np.testing.assert_array_equal(data.rows, again.rows)


def test_images_with_a_clean_label_are_no_noisy_rows(root):
    keys, clean, labels = (
        root / "annotations" / name
        for name in ("noisy_train_key_list.txt", "clean_test_key_list.txt", "noisy_label_kv.txt")
    )
    shared = clean.read_text().splitlines()[:3]
    keys.write_text(keys.read_text() + "\n".join(shared) + "\n")
    labels.write_text(labels.read_text() + "".join(f"{key} 0\n" for key in shared))
    np.testing.assert_array_equal(load_clothing1m(root).rows, np.arange(42))


def test_text_files_may_be_in_the_folder_itself(root):
    before = load_clothing1m(root)
    for path in (root / "annotations").iterdir():
        path.rename(root / path.name)
    np.testing.assert_array_equal(load_clothing1m(root).y, before.y)


def test_a_transform(root):
    assert load_clothing1m(root, transform=lambda image: image.size).X[1] == (12, 11)


@pytest.mark.parametrize(
    "name",
    [
        "noisy_label_kv.txt",
        "clean_label_kv.txt",
        "noisy_train_key_list.txt",
        "clean_train_key_list.txt",
        "clean_test_key_list.txt",
        "category_names_eng.txt",
    ],
)
def test_text_files_that_are_missing_truncated_or_empty(root, name):
    path = root / "annotations" / name
    if "key_list" not in name:
        cut(path, 0.507)
        with pytest.raises(ValueError, match=rf"{name} .*(line \d+ is|no label for|names of classes).*Cysu"):
            load_clothing1m(root)
    path.write_text("\n")
    with pytest.raises(ValueError, match=rf"{name} .*(no lines|no label for|0 names).*Cysu"):
        load_clothing1m(root)
    path.unlink()
    with pytest.raises(FileNotFoundError, match=rf"{name} is missing.*Cysu"):
        load_clothing1m(root)


@pytest.mark.parametrize("line", ["images/0/00/0,0.jpg", "images/0/00/0,0.jpg 14", "images/0/00/0,0.jpg -1", "3"])
def test_lines_that_are_no_image_and_label(root, line):
    path = root / "annotations" / "clean_label_kv.txt"
    path.write_text(line + "\n" + path.read_text())
    with pytest.raises(ValueError, match=r"clean_label_kv.txt .*line 1 is .*a label 0..13"):
        load_clothing1m(root)


def test_a_key_that_was_cut_is_an_image_that_is_missing(root):
    path = root / "annotations" / "clean_train_key_list.txt"
    path.write_text(path.read_text()[:-4])
    with pytest.raises(ValueError, match=r"clean_label_kv.txt .*no label for 1 images of clean_train_key_list.txt"):
        load_clothing1m(root)


def test_images_that_are_missing_and_other_folders(root, tmp_path):
    with pytest.raises(FileNotFoundError, match="does not exist"):
        load_clothing1m(tmp_path / "nothing")
    with pytest.raises(FileNotFoundError, match=f"_list.txt is missing.*It is in {root}: pass this folder"):
        load_clothing1m(tmp_path)
    (root / "images" / "0" / "00" / "0,0.jpg").unlink()
    with pytest.raises(FileNotFoundError, match=r"0,0.jpg is missing"):
        load_clothing1m(root)


def test_what_is_refused(root):
    with pytest.raises(ValueError, match="meta='test'"):
        load_clothing1m(root, meta="test")
    with pytest.raises(ValueError, match="part='noisy'"):
        load_clothing1m_part(root, "noisy")
    with pytest.raises(ValueError, match="28 rows were to be drawn of 14"):
        load_clothing1m(root, meta="validation", n_meta=28, n_noisy=5)


def test_a_list_of_noisy_images_that_was_cut_at_the_end_of_a_line(root):
    path = root / "annotations" / "noisy_train_key_list.txt"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:10]))
    with pytest.warns(UserWarning, match="32 images of noisy_label_kv.txt.*list.txt, of 10 images, may be truncated"):
        assert len(load_clothing1m(root).y) == 10


@pytest.mark.parametrize("part", ["train", "val", "test"])
def test_a_clean_list_that_was_cut_at_the_end_of_a_line(root, part):
    """Half of its images have a noisy label, too; the list of noisy images is not blamed for these."""
    path = root / "annotations" / f"clean_{part}_key_list.txt"
    path.write_text("".join(path.read_text().splitlines(keepends=True)[:10]))
    n = 18 if part == "train" else 4
    with pytest.warns(UserWarning, match=f"^{n} images of clean_label_kv.txt, such as .*no clean list:") as found:
        load_clothing1m(root)
    (text,) = [str(warning.message) for warning in found]
    assert f"clean_{part}_key_list.txt, of 10 images, " in text
    assert text.endswith("may be truncated.")
    assert "noisy" not in text


def test_two_lists_that_were_cut_are_both_named(root):
    for name in ("clean_val", "noisy_train"):
        path = root / "annotations" / f"{name}_key_list.txt"
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:10]))
    with pytest.warns(UserWarning, match=r"^4 images of clean_label.* 32 images of noisy_label_kv.txt"):
        load_clothing1m(root)


def test_a_text_file_in_another_encoding(root):
    (root / "annotations" / "category_names_eng.txt").write_bytes("Café\n".encode("latin-1"))
    with pytest.raises(ValueError, match=r"category_names_eng.txt .*not a text file in UTF-8"):
        load_clothing1m(root)


@pytest.mark.parametrize("first", ["clean_train", "clean_val"])
@pytest.mark.parametrize("whole", [True, False])
def test_clean_lists_that_share_images(root, first, whole):
    """Clean rows would be test rows."""
    paths = [root / "annotations" / f"{name}_key_list.txt" for name in (first, "clean_test")]
    shared = paths[0].read_text().splitlines()[: None if whole else 2]
    paths[1].write_text("\n".join([*shared, *([] if whole else paths[1].read_text().split())]) + "\n")
    words = f"clean_test_key_list.txt .*: {len(shared)} of its images, such as {shared[0]}, are in {first}_key_list.txt"
    with pytest.raises(ValueError, match=words + ".*one clean list at most.*Cysu"):
        load_clothing1m(root)


@pytest.mark.parametrize("name", ["noisy_train", "clean_train", "clean_val", "clean_test"])
def test_a_list_with_the_same_image_twice(root, name):
    path = root / "annotations" / f"{name}_key_list.txt"
    keys = path.read_text().splitlines()
    path.write_text("\n".join([*keys, keys[3]]) + "\n")
    with pytest.raises(ValueError, match=rf"{name}_key_list.txt .*: it has {keys[3]} 2 times; .*once.*Cysu"):
        load_clothing1m(root)
