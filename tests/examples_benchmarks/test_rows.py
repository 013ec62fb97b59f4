"""Files of JSON lines: their short form has no loss, and rows have the version of the package."""

import json
from pathlib import Path

from examples.benchmarks.shared import add_row, pack, read_rows
from noisytransition import __version__

ROWS = [
    {"method": "EM", "seed": 0, "error": {"GLC": 0.5, "EM": 0.25}, "T": [[1.0, 0.0]], "covered": True},
    {"method": "EM", "seed": 1, "error": {"GLC": 0.5, "EM": 0.5}, "T": [[0.5, 0.5]], "covered": 1},
    {"method": "EM", "seed": 2, "error": {"GLC": 0.5}, "T": [[0.5, 0.5]], "covered": True},
    {"method": "GLC", "versions": {"torch": "2"}, "seed": 0, "warnings": []},
    {"method": "GLC", "versions": {"torch": "3"}, "seed": 1, "warnings": []},
    {"seed": 0, "method": "the same twice"},
    {"seed": 0, "method": "the same twice"},
]


def test_the_short_form_of_rows_has_no_loss(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    for _ in range(2):
        pack(path)
        assert list(map(json.dumps, read_rows(path))) == list(map(json.dumps, ROWS))
    assert len(path.read_text().splitlines()) == 5


def test_a_row_is_added_to_the_short_form_with_its_version(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS[:2]))
    pack(path)
    add_row(path, {"method": "GLC", "seed": 0})
    assert read_rows(path) == [*ROWS[:2], {"method": "GLC", "seed": 0, "version": __version__}]


def test_committed_rows_are_small():
    sizes = [path.stat().st_size for path in (Path(__file__).parents[2] / "examples").glob("*/results/**/*.*")]
    assert max(sizes) < 300_000
    assert sum(sizes) < 3_000_000
