"""Small files in the formats of data sets with real label noise."""

import joblib
import numpy as np
import pandas as pd


def noisy(y, n_classes, rng):
    return np.where(rng.random(len(y)) < 0.3, rng.integers(n_classes, size=len(y)), y)


def pixels(n, seed=0):
    """Images of 32 x 32 pixels, as in CIFAR."""
    return np.random.default_rng(seed).integers(256, size=(n, 32, 32, 3), dtype=np.uint8)


def write_hausa(folder, rng, n, n_test):
    topics = np.array(["Business", "Health", "Politics"])
    for name, size in (("train_clean", n), ("dev", n_test), ("test", n_test)):
        y = rng.integers(3, size=size)
        titles = [f"{name} {i} {topics[k].lower()}" for i, k in enumerate(y)]
        labels = {f"hausa_{name}": y}
        if name == "train_clean":
            labels["hausa_train_clean_noisy_labels"] = noisy(y, 3, rng)
        for file, given in labels.items():
            frame = pd.DataFrame({"news_title": titles, "label": topics[given]})
            frame.to_csv(folder / f"{file}.tsv", sep="\t")


def write_global_warming(folder, rng, n, n_test=None):
    y = rng.integers(2, size=n)
    texts = [f"Sentence {i}, {'warm' if k else 'cold'}." for i, k in enumerate(y)]
    frame = pd.DataFrame({"data_entry": texts, "gpt_label": noisy(y, 2, rng), "gold_label": y})
    frame.to_csv(folder / "global_warming.csv", index=False)
    X = rng.normal(size=(n, 120)) + 3 * y[:, None]
    np.save(folder / f"global_warming_features_{joblib.hash(texts)}.npy", X)


def write_labelme(folder, rng, n, n_test):
    for part, size in (("train", n), ("test", n_test)):
        y = rng.integers(8, size=size)
        X = rng.normal(size=(size, 1, 1, 130)) + y[:, None, None, None]
        np.save(folder / f"labelme_LabelMe_VGG_avg_{part}.npy", X)
        np.savetxt(folder / f"labelme_LabelMe_Z_{part}.txt", y, fmt="%d")
        if part == "train":
            answers = np.stack([noisy(y, 8, rng) for _ in range(5)], axis=1)
            answers[:, 1:][rng.random((size, 4)) < 0.5] = -1
            np.savetxt(folder / "labelme_answers.txt", answers, fmt="%d")


def write_cifar10n(folder, rng, n, n_test):
    for suffix, size in (("", n), ("_test", n_test)):
        y = rng.integers(3, size=size)
        np.save(folder / f"features{suffix}.npy", np.eye(3)[y] + 0.3 * rng.normal(size=(size, 3)))
        np.save(folder / f"y{suffix}.npy", y)
    np.save(folder / "y_noisy.npy", noisy(np.load(folder / "y.npy"), 3, rng))
