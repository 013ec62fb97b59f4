"""Pictures and short texts of samples."""

import base64
import io

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import coo_array, csr_array
from torch.utils.data import TensorDataset

from noisytransition.report._samples import plain, sample_facts, short

Image = pytest.importorskip("PIL.Image")


def drawn(image):
    """Decode the pixels of a picture with another library."""
    kind, _, content = sample_facts([image], [0])[0]["image"].partition(",")
    assert kind == "data:image/png;base64"
    return np.asarray(Image.open(io.BytesIO(base64.b64decode(content, validate=True))))


@pytest.mark.parametrize("shape", [(5, 7), (5, 7, 1), (5, 7, 3), (5, 7, 4), (64, 64, 3), (1, 9, 3)])
def test_bytes_come_back_as_they_are(shape):
    pixels = np.random.default_rng(0).integers(256, size=shape).astype(np.uint8)
    np.testing.assert_array_equal(drawn(pixels), pixels.squeeze(axis=2) if shape[2:] == (1,) else pixels)


def test_channels_may_be_first_and_other_shapes_are_no_pictures():
    pixels = np.random.default_rng(0).integers(256, size=(3, 8, 9)).astype(np.uint8)
    np.testing.assert_array_equal(drawn(pixels), np.moveaxis(pixels, 0, 2))
    for other in (np.zeros((7, 8, 9)), np.zeros((1, 9)), np.zeros(9), np.full((4, 4), "a")):
        assert list(sample_facts([other], [0])[0]) == ["text"]


def test_values_of_any_range_are_drawn():
    share = np.array([[0.0, 0.5], [1.0, 0.2]])
    for values in (share, 30 * share - 10, (1000 * share).astype(int), share.astype(np.float16)):
        np.testing.assert_allclose(drawn(values), 255 * share, atol=1)
    assert drawn(np.array([[0.0, np.nan], [np.inf, 1.0]])).tolist() == [[0, 0], [0, 255]]


@pytest.mark.parametrize(("shape", "small"), [((66, 128), (33, 64)), ((200, 100), (64, 32)), ((3, 640), (1, 64))])
def test_large_pictures_become_small(shape, small):
    columns = np.linspace(0, 1, shape[1])
    found = drawn(np.broadcast_to(columns, shape))
    assert found.shape == small
    np.testing.assert_allclose(found, np.broadcast_to(np.linspace(0, 255, small[1]), small), atol=5)


# ---------------------------------------------------------------------------- text
def test_samples_of_any_container():
    text = ["one", "two"]
    for texts in (text, np.array(text), np.array(text, dtype=object), pd.Series(text, index=[7, 8]), tuple(text)):
        assert sample_facts(texts, [1]) == [{"text": "two"}]
    frame = pd.DataFrame(
        {"name": ["Ann", None], "age": [31, 40], "share": [0.25, np.nan], "on": [pd.NaT, pd.NA]}, index=["p", "q"]
    )
    assert sample_facts(frame, [0]) == [{"text": "name: Ann, age: 31, share: 0.25, on: NaT"}]
    table = np.array([[1.0, 0.0], [0.123456, -2.0]])
    assert sample_facts(table, [1]) == [{"text": "0: 0.1235, 1: -2"}]
    assert sample_facts(table, [1], ["a", "b"]) == [{"text": "a: 0.1235, b: -2"}]
    for sparse in (csr_array(table), coo_array(table)):
        assert sample_facts(sparse, [0], ["a", "b"]) == [{"text": "a: 1"}]
    for rows in (torch.tensor(table, requires_grad=True), TensorDataset(torch.tensor(table), torch.zeros(2))):
        assert sample_facts(rows, [1]) == [{"text": "0: 0.1235, 1: -2"}]
    assert list(sample_facts([Image.new("RGB", (4, 4))], [0])[0]) == ["image"]


def test_wide_and_long_samples_are_shortened():
    found = sample_facts(np.zeros((1, 5000)), [0])[0]["text"]
    assert found.endswith("7: 0, and 4992 more")
    assert len(sample_facts(["x" * 10**6], [0])[0]["text"]) == 300
    assert sample_facts([np.zeros((50, 20, 30))], [0]) == [{"text": "array (50, 20, 30)"}]


def test_short():
    assert short("abcdefghij", 10) == "abcdefghij"
    assert short("abcdefghijk", 10) == "abcdef…ijk"
    assert short(" a\n\tb\x00c\u202ed ", 20) == "a b c d"
    assert [plain(value) for value in (np.int64(3), np.bool_(True), 2.5, None, "é")] == [3, True, 2.5, None, "é"]
    assert [plain(value) for value in (np.nan, np.inf, (1, "a"))] == ["nan", "inf", "(1, 'a')"]
