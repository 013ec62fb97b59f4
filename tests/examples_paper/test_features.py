"""Feature extraction: chunks, resumption, errors."""

import numpy as np
import pytest
from stub_networks import Stub

from examples.paper.features import extract, read_items


@pytest.fixture
def images(tmp_path):
    """50 images in a file, which is mapped into memory."""
    np.save(tmp_path / "images.npy", np.random.default_rng(0).integers(256, size=(50, 8, 8, 3), dtype=np.uint8))
    return read_items(tmp_path / "images.npy")


@pytest.fixture
def stub(tmp_path):
    return Stub(str(tmp_path / "batches"))


def sums(images):
    total = images.reshape(len(images), -1).sum(1, dtype=int)
    return np.stack([total, total + 1], 1)


def extracted(items, out, network, **options):
    extract(items, out, network, report=str, **{"chunk": 20} | options)
    assert sorted(path.suffix for path in out.parent.glob(f"{out.stem}.*")) == [".json", ".npy"]
    return np.load(out)


@pytest.mark.parametrize("jobs", [1, pytest.param(2, marks=pytest.mark.slow)])
def test_features_of_all_images_in_their_order(images, stub, tmp_path, jobs):
    np.testing.assert_array_equal(extracted(images, tmp_path / "out.npy", stub, jobs=jobs), sums(images))
    assert sorted(stub.batches()) == [10, 20, 20]


def test_the_same_content_is_not_extracted_again_and_other_content_is(images, stub, tmp_path):
    out, other = tmp_path / "out.npy", np.array(images)
    for _ in range(2):
        extracted(images, out, stub)
        assert len(stub.batches()) == 3
    other[49, 7, 7, 2] ^= 1
    np.testing.assert_array_equal(extracted(other, out, stub), sums(other))
    np.testing.assert_array_equal(extracted(other, out, stub._replace(scale=2.0)), 2 * sums(other))
    out.write_bytes(out.read_bytes()[:-1])
    np.testing.assert_array_equal(extracted(other, out, stub._replace(scale=2.0)), 2 * sums(other))


def test_an_interrupted_run_goes_on_where_it_was(images, stub, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        extracted(images, tmp_path / "out.npy", stub._replace(stop_at=3))
    np.testing.assert_array_equal(extracted(images, tmp_path / "out.npy", stub), sums(images))
    assert stub.batches() == [20, 20, 10, 10]
