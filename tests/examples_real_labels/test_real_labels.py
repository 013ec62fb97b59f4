"""Scripts of real labels, on small files of the same formats."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import issparse
from small_files import write_cifar10n, write_global_warming, write_hausa, write_labelme

from examples.real_labels import cifar10n, common, global_warming, hausa, labelme

N, N_TEST = 260, 40
SCRIPTS = {
    "hausa": (hausa, write_hausa),
    "global_warming": (global_warming, write_global_warming),
    "labelme": (labelme, write_labelme),
    "cifar10n": (cifar10n, write_cifar10n),
}


def short(methods, names):
    """These of the methods, with few epochs."""
    own = {"fine-tuning": {"fine_tuning_epochs": 2}}
    chosen = {name: methods[name] for name in names}
    return {name: (fit, partial(of, max_epochs=2, **own.get(name, {}))) for name, (fit, of) in chosen.items()}


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_writes_its_table(name, tmp_path, monkeypatch):
    script, write = SCRIPTS[name]
    folder, results = tmp_path / "data", tmp_path / "results"
    folder.mkdir(), results.mkdir()
    write(folder, np.random.default_rng(0), N, N_TEST)
    quick = "ignoring the noise, logistic regression"
    kept = [quick, "fine-tuning", "GLC"]
    monkeypatch.setattr(common, "METHODS", {quick: common.METHODS[quick]} | short(common.METHODS, kept[1:]))
    monkeypatch.setattr(common, "RESULTS", results)
    monkeypatch.setattr(cifar10n, "N_VERIFIED", 100)
    monkeypatch.setattr(global_warming, "N_TEST", N_TEST)
    monkeypatch.setattr("sys.argv", [name, "--data", str(folder), "--jobs", "1"])
    data = script.load(0, folder)
    X, X_clean, X_test = (rows.toarray() if issparse(rows) else rows for rows in (data.X, data.X_clean, data.X_test))
    seen = {row.tobytes() for row in np.concatenate([X, X_clean])}
    assert not any(row.tobytes() in seen for row in X_test)
    for _ in range(2):  # the second call finds all rows
        common.main(name, script.__doc__, script.load, n_splits=2)
    rows = [json.loads(line) for line in (results / f"{name}.jsonl").read_text().splitlines()]
    assert sorted((row["method"], row["seed"]) for row in rows) == sorted((m, s) for m in kept for s in range(2))
    table = pd.read_csv(results / f"{name}.csv", index_col=0)
    assert list(table.index) == ["identity", "verified pairs counted", "sampling limit", *kept]
    assert table.loc["fine-tuning", "accuracy"][:4] in (results / f"{name}.md").read_text()


def test_the_majority_wins_and_ties_are_by_chance():
    answers = np.array([[3, 3, 5], [2, -1, -1], [1, 6, -1]] * 50)
    labels = labelme.majority(answers, 0).reshape(50, 3)
    assert (labels[:, 0] == 3).all()
    assert (labels[:, 1] == 2).all()
    assert set(labels[:, 2]) == {1, 6}
