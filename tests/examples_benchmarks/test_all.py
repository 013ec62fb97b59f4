"""Result files: those that pages show have a known command and version; the short form of their rows has no loss."""

import ast
import csv
import json
import re
from importlib import import_module, util

import pytest

from examples.benchmarks import all as listed
from examples.benchmarks.shared import add_row, pack, read_rows
from noisytransition import __version__


def test_shown_files_have_a_known_command_and_version():
    assert listed.faults() == []


def test_figures_in_sentences_are_cells_of_files():
    uses = [
        use
        for page in (listed.ROOT / "docs").rglob("*.rst")
        for use in re.findall(r":figure:`([^`]+)`", page.read_text())
    ]
    assert uses
    for use in uses:
        path, line, column = (part.strip() for part in " ".join(use.split()).split("|"))
        with (listed.ROOT / path).open() as file:
            assert any(line in row.values() and row[column] for row in csv.DictReader(file)), use


def imports():
    """Imports of the package by all example scripts: the script, the module, and the name."""
    for path in sorted((listed.ROOT / "examples").rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] == "noisytransition":
                yield from ((path.name, node.module, alias.name) for alias in node.names)


def test_scripts_import_names_that_exist():
    """They also measure private parts, whose names change."""
    missing = [
        (script, module, name)
        for script, module, name in imports()
        if not hasattr(import_module(module), name) and util.find_spec(f"{module}.{name}") is None
    ]
    assert not missing


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A project with a page, a script and a shown file."""
    results = tmp_path / "examples" / "benchmarks" / "results"
    results.mkdir(parents=True)
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "page.rst").write_text(":file: ../examples/benchmarks/results/speed.csv\n")
    (results.parent / "speed.py").write_text('"""Title.\n\n    python speed.py --fast     # in a minute\n"""\n')
    (results / "speed.csv").write_text("a,b\n")
    add_row(results / "speed.jsonl", {"seed": 0})
    monkeypatch.setattr(listed, "ROOT", tmp_path)
    monkeypatch.setattr(listed, "RESULTS", results)
    monkeypatch.setattr(listed, "LIST", results / "versions.csv")
    monkeypatch.setattr(listed, "shown", lambda shown=listed.shown: shown(tmp_path))
    monkeypatch.setattr(listed, "committed", lambda path: None)
    return results


def test_the_list_is_made_from_script_and_rows(project):
    listed.update()
    (line,) = listed.read_list().values()
    assert line["command"] == "python speed.py --fast"
    assert (line["version"], line["version from"]) == (__version__, "rows")
    assert listed.faults() == []


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (lambda results: (results / "speed.csv").write_text("b,a\n"), "has changed"),
        (lambda results: (results / "speed.csv").unlink(), "does not exist"),
        (lambda results: (results.parent / "speed.py").write_text('"""No command."""\n'), "command has changed"),
        (lambda results: listed.CHANGED.update(speed="99.0.0"), "results have changed in 99.0.0"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(project, change, fault, monkeypatch):
    listed.update()
    monkeypatch.setattr(listed, "CHANGED", dict(listed.CHANGED))
    change(project)
    (found,) = listed.faults()
    assert found.startswith("examples/benchmarks/results/speed.csv: ")
    assert fault in found


# ---------------------------------------------------------------------------- rows of JSON
ROWS = [
    {"method": "EM", "seed": 0, "error": {"GLC": 0.5, "EM": 0.25}, "T": [[1.0, 0.0]], "covered": True},
    {"method": "EM", "seed": 1, "error": {"GLC": 0.5, "EM": 0.5}, "T": [[0.5, 0.5]], "covered": 1},
    {"method": "EM", "seed": 2, "error": {"GLC": 0.5}, "T": [[0.5, 0.5]], "covered": True},
    {"method": "GLC", "versions": {"torch": "2"}, "seed": 0, "warnings": []},
    {"method": "GLC", "versions": {"torch": "3"}, "seed": 1, "warnings": []},
    {"seed": 0, "method": "the same twice"},
    {"seed": 0, "method": "the same twice"},
]


def test_the_short_form_of_rows_has_no_loss_and_a_row_is_added_with_its_version(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    for _ in range(2):
        pack(path)
        assert list(map(json.dumps, read_rows(path))) == list(map(json.dumps, ROWS))
    assert len(path.read_text().splitlines()) == 5
    add_row(path, {"method": "GLC", "seed": 0})
    assert read_rows(path) == [*ROWS, {"method": "GLC", "seed": 0, "version": __version__}]


def test_committed_rows_are_small():
    sizes = [path.stat().st_size for path in (listed.ROOT / "examples").glob("*/results/**/*.*")]
    assert max(sizes) < 300_000
    assert sum(sizes) < 3_000_000
