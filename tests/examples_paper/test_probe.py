"""The probe that chooses a frozen network."""

import numpy as np
import pytest
from stub_networks import Stub

pytest.importorskip("torchvision")

from examples.paper import probe


def test_a_network_that_separates_the_classes_is_right(tmp_path):
    rng, y = np.random.default_rng(0), np.arange(60) % 2
    images = rng.integers(100, size=(60, 4, 4, 3), dtype=np.uint8) + (100 * y[:, None, None, None]).astype(np.uint8)
    row = probe.run(Stub(str(tmp_path / "log")), images, y)
    assert row["network"] == "stub"
    assert row["accuracies"] == [1.0] * 5
    mixed = probe.run(Stub(str(tmp_path / "log")), images, rng.permutation(y))
    assert np.mean(mixed["accuracies"]) < 0.8


def test_speeds_are_those_of_each_network(tmp_path):
    class Named(Stub):
        name, size = "stub", 96

    (rates,) = probe.speeds([Named(str(tmp_path / "log"))], np.zeros((8, 4, 4, 3), np.uint8)).values()
    ((*which, rate),) = rates
    assert which == ["stub", 96]
    assert rate > 0


def test_the_page_is_in_order_of_networks_and_sizes(monkeypatch, tmp_path):
    monkeypatch.setattr(probe, "OUT", tmp_path / "probe.jsonl")
    rows = [
        {"network": "b", "size": 96, "accuracies": [0.5, 0.7]},
        {"network": "a", "size": 128, "accuracies": [0.9, 0.9]},
        {"network": "a", "size": 96, "accuracies": [0.8, 0.8]},
        {"images_a_second": [["a", 96, 7.0], ["a", 128, 3.0], ["b", 96, 20.4]]},
    ]
    probe.report(rows)
    lines = (tmp_path / "probe.md").read_text().splitlines()
    assert [line for line in lines if line.startswith(("| a", "| b"))] == [
        "| a, 96 | 0.800 ± 0.000 | 7 |",
        "| a, 128 | 0.900 ± 0.000 | 3 |",
        "| b, 96 | 0.600 ± 0.141 | 20 |",
    ]
