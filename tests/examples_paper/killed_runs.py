"""Kill runs of a table at many moments; the next one must go on, with the same results, and repeat nothing.

python tests/examples_paper/killed_runs.py DATA_ROOT
"""

import json
import shutil
import sys
import tempfile
from functools import partial
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2]))
from attacks.interruptions import killed_in_a_write, run

from examples.benchmarks.shared import read_rows
from examples.paper.data import Places
from examples.paper.run import fill
from examples.paper.tables import cells

METHODS = ("cross-entropy", "fine-tuning", "GLC")
# files that are written, moved or deleted before the kill
MOMENTS = (0, 4, 15, 26)


def table(root, path):
    """Run a small table; return its results as text."""
    path = Path(path)
    todo = [cell for cell in cells("cifar10n", "smoke", [0], methods=METHODS) if cell.noise == "worse"]
    if fill(todo, Places(Path(root), states=path.with_suffix(".states")), path):
        raise RuntimeError("a cell failed")
    return json.dumps([{k: v for k, v in row.items() if k != "seconds"} for row in read_rows(path)])


def killed_again_and_again(job, path):
    """Kill a run at each moment, one after the other, until it ends; return its result and the number of kills."""
    kills, before = 0, b""
    for moment in MOMENTS:
        outcome = run(job, path, partial(killed_in_a_write, at=moment))
        kills += outcome.kind == "killed"
        content = path.read_bytes() if path.exists() else b""
        assert content.startswith(before), "a line that was written is not there"
        before = content[: content.rfind(b"\n") + 1]
    return run(job, path), kills


def main():
    """Compare each run that was killed with one that was not."""
    torch.set_num_threads(1)
    folder = Path(tempfile.mkdtemp())
    try:
        job = partial(table, sys.argv[1])
        expected = table(sys.argv[1], folder / "whole" / "rows.jsonl")  # here: children have the imports at once
        for moment in MOMENTS[::3]:
            path = folder / str(moment) / "rows.jsonl"
            path.parent.mkdir()
            assert run(job, path, partial(killed_in_a_write, at=moment)).kind == "killed"
            assert run(job, path).text == expected, f"killed at {moment}"
        (folder / "often").mkdir()
        outcome, kills = killed_again_and_again(job, folder / "often" / "rows.jsonl")
        assert outcome.text == expected
        assert kills >= 3
    finally:
        shutil.rmtree(folder)


if __name__ == "__main__":
    main()
