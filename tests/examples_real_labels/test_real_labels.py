"""Scripts of real labels, on small files of the same formats."""

import json
from functools import partial

import numpy as np
import pandas as pd
import pytest
import torch
from scipy.sparse import issparse
from small_files import write_cifar10n, write_global_warming, write_hausa, write_labelme

from examples.real_labels import cifar10n, common, global_warming, hausa, labelme, transformer

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


class Tokenizer:
    """One token a character."""

    def __call__(self, texts, max_length, **_):
        codes = [[ord(letter) for letter in text[:max_length]] for text in texts]
        width = max(map(len, codes))
        ids = torch.tensor([code + [0] * (width - len(code)) for code in codes])
        return {"input_ids": ids, "attention_mask": (ids != 0).long()}


def small_bert():
    bert = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = bert.BertConfig(
        vocab_size=128, hidden_size=16, num_hidden_layers=3, num_attention_heads=2, intermediate_size=32
    )
    return Tokenizer(), bert.BertModel(config)


def test_upper_layers_on_the_output_of_the_lower_layers_are_the_whole_network(tmp_path, monkeypatch):
    monkeypatch.setattr(transformer, "pretrained", small_bert)
    write_global_warming(tmp_path, np.random.default_rng(0), N)
    tokenizer, network = small_bert()
    module = transformer.make_module(0).eval()
    with torch.inference_mode():
        batch = tokenizer(pd.read_csv(tmp_path / "global_warming.csv")["data_entry"].tolist(), transformer.TOKENS)
        tokens = batch["attention_mask"].unsqueeze(2)
        states = network.eval()(**batch).last_hidden_state
        expected = module.head((states * tokens).sum(1) / tokens.sum(1))
        found = module(torch.from_numpy(transformer.lower_layers(tmp_path)))
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=1e-4)


@pytest.mark.slow
def test_the_script_of_the_transformer_writes_its_table(tmp_path, monkeypatch):
    monkeypatch.setattr(transformer, "pretrained", small_bert)
    monkeypatch.setattr(transformer, "PACKAGES", ("numpy",))
    monkeypatch.setattr(transformer, "SEEDS", 2)
    kept = ["fine-tuning", "EM, two folds, pairs"]
    monkeypatch.setattr(transformer, "METHODS", short(transformer.METHODS, kept))
    monkeypatch.setattr(transformer, "TRAINING", transformer.TRAINING | {"max_epochs": 1})
    monkeypatch.setattr(common, "RESULTS", tmp_path)
    monkeypatch.setattr(global_warming, "N_TEST", N_TEST)
    monkeypatch.setattr("sys.argv", ["transformer", "--data", str(tmp_path)])
    write_global_warming(tmp_path, np.random.default_rng(0), N)
    for _ in range(2):  # the second call finds all rows
        transformer.main()
    rows = [json.loads(line) for line in (tmp_path / "transformer.jsonl").read_text().splitlines()]
    assert len(rows) == 8
    assert all("transition_matrix" in row for row in rows if row["method"] != "fine-tuning")
    table = pd.read_csv(tmp_path / "transformer.csv", index_col=0)
    fits = [f"{kind}: {method}" for kind in ("frozen", "fine-tuned") for method in kept]
    assert list(table.index) == ["identity", "verified pairs counted", "sampling limit", *fits]
    assert table.loc[fits, "accuracy"].notna().all()
