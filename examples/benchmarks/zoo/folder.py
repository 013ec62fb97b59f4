"""Data sets with real noisy labels: functions of a seed and of the folder --data that return `Rows`.

real/labelme_*: VGG features of photographs, labels from a crowd. real/global_warming.csv: sentences, labels from a
language model. real/hausa_*: news titles, labels from rules. cifar10_jpeg.npz, cifar10n_worse.npy,
cifar10h_counts.npy: CIFAR-10, labels from annotators.
"""

import io
import os

import numpy as np
import pandas as pd
from sklearn.datasets import get_data_home
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer

from .rows import Rows, by_words, most_votes, needs, reduced, split
from .texts import ENCODER, by_embeddings

# numbers of training and test images for `image_table`
N_TRAIN, N_TEST = 5000, 4500


# ---------------------------------------------------------------------------- photographs
def labelme(seed, folder):
    """Return photographs of eight kinds of places; the noisy label is the answer of one random annotator."""
    rows = labelme_features(seed, folder)
    X, X_test = reduced(rows.X, rows.X_test, 128)
    return rows._replace(X=X, X_test=X_test)


def labelme_features(seed, folder):
    """Return the same photographs with all 512 features of the network."""
    rows, given = _photographs(folder)
    order = np.random.default_rng(seed).random(given.shape)
    drawn = np.where(given >= 0, order, -1).argmax(axis=1)
    return rows._replace(answers=given[np.arange(len(given)), drawn])


def labelme_majority(seed, folder):
    """Return the photographs with all features; the noisy label has the most votes of one to three annotators."""
    rows, given = _photographs(folder)
    votes = (given[:, :, None] == np.arange(rows.y.max() + 1)).sum(axis=1)
    return rows._replace(answers=most_votes(votes, seed))


def _photographs(folder):
    """Return the photographs and the answers of all annotators; -1 where they were not asked."""
    real = folder / "real"
    X, X_test = (np.load(real / f"labelme_LabelMe_VGG_avg_{part}.npy").squeeze() for part in ("train", "test"))
    y, y_test = (np.loadtxt(real / f"labelme_LabelMe_Z_{part}.txt").astype(int) for part in ("train", "test"))
    return Rows(X, y, X_test, y_test), np.loadtxt(real / "labelme_answers.txt").astype(int)


# ---------------------------------------------------------------------------- text
def global_warming(seed, folder):
    """Return sentences that affirm global warming, or do not."""
    return _with_words(_sentences(seed, folder, 1200))


def global_warming_words(seed, folder):
    """Return 350 of these sentences, as sparse TF-IDF."""
    return by_words(_sentences(seed, folder, 350))


@needs(ENCODER)
def global_warming_embeddings(seed, folder):
    """Return 1,600 of these sentences, as sentence embeddings."""
    return by_embeddings(_sentences(seed, folder, 1600))


@needs(ENCODER)
def few_global_warming_embeddings(seed, folder):
    """Return 350 of these sentences, as sentence embeddings."""
    return by_embeddings(_sentences(seed, folder, 350))


def _sentences(seed, folder, n):
    frame = pd.read_csv(folder / "real" / "global_warming.csv")
    texts, y = frame["data_entry"].to_numpy(object), frame["gold_label"].to_numpy(int)
    return split(texts, y, n, None, seed, answers=frame["gpt_label"].to_numpy(int))


def hausa(seed, folder):
    """Return Hausa news titles of five topics; test samples are the published dev and test splits."""
    return _with_words(_titles(seed, folder, 1500))


def hausa_words(seed, folder):
    """Return 350 of these titles, as sparse TF-IDF."""
    return by_words(_titles(seed, folder, 350))


@needs(ENCODER)
def hausa_embeddings(seed, folder):
    """Return all 2,045 training titles, as embeddings of an encoder for English."""
    return by_embeddings(_titles(seed, folder, None))


def _titles(seed, folder, n_train):
    real = folder / "real"
    names = "train_clean", "dev", "test", "train_clean_noisy_labels"
    clean, dev, test, noisy = (pd.read_csv(real / f"hausa_{name}.tsv", sep="\t") for name in names)
    if not (clean["news_title"] == noisy["news_title"]).all():
        raise ValueError(
            "hausa_train_clean.tsv and hausa_train_clean_noisy_labels.tsv need the same titles in the same order."
        )
    frame = pd.concat([clean, dev, test], ignore_index=True)
    y = np.unique(frame["label"], return_inverse=True)[1]
    given = np.searchsorted(np.unique(frame["label"]), noisy["label"])
    n, order = len(clean), np.random.default_rng(seed).permutation(len(clean))[:n_train]
    texts = frame["news_title"].to_numpy(object)
    return Rows(texts[order], y[order], texts[n:], y[n:], answers=given[order])


def _with_words(rows):
    """Convert texts to 200 components of character n-grams."""
    words = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), min_df=3, sublinear_tf=True).fit(rows.X)
    X, X_test = reduced(words.transform(rows.X), words.transform(rows.X_test), 200, TruncatedSVD)
    return rows._replace(X=X, X_test=X_test)


# ---------------------------------------------------------------------------- CIFAR-10
def cifar10n(seed, folder):
    """Return images of ten classes with the worst of three annotators' labels, about 40 % of them wrong."""
    X, y = image_table(folder)
    answers = np.load(folder / "cifar10n_worse.npy")[:N_TRAIN].astype(int)
    rows = split(X[:N_TRAIN], y[:N_TRAIN], 2000, None, seed, answers=answers)
    test = np.random.default_rng(seed).permutation(N_TEST)[:2000] + N_TRAIN
    return rows._replace(X_test=X[test], y_test=y[test])


def cifar10h(seed, folder):
    """Return test images of CIFAR-10 with the label of one of 50 annotators, about 5 % of them wrong."""
    X, y = (column[N_TRAIN:] for column in image_table(folder))
    counts = np.load(folder / "cifar10h_counts.npy")[:N_TEST].astype(float)
    below = counts.cumsum(axis=1) < np.random.default_rng(seed).random((N_TEST, 1)) * counts.sum(axis=1, keepdims=True)
    return split(X, y, 2000, 2000, seed, answers=below.sum(axis=1))


def image_table(folder):
    """Return 200 features and the class of each image; cached in scikit-learn's data folder."""
    path = os.path.join(get_data_home(), "noisytransition_zoo_images.npz")
    if not os.path.exists(path):
        from image_features import image_features

        images, y = _images(folder / "cifar10_jpeg.npz")
        X, _ = reduced(found := image_features(images, seed=0), found[:1], 200)
        np.savez(partial := f"{path}.{os.getpid()}.npz", X=X.astype(np.float32), y=y)
        os.replace(partial, path)
    with np.load(path) as kept:
        return kept["X"], kept["y"].astype(int)


def _images(path):
    """Decode the first training and test images, and return their classes, too."""
    from PIL import Image

    with np.load(path) as packed:
        offsets, stream, labels, of_test = (packed[n] for n in ("offsets", "jpeg", "labels", "split"))
    rows = np.concatenate([np.flatnonzero(of_test == 0)[:N_TRAIN], np.flatnonzero(of_test == 1)[:N_TEST]])
    files = (io.BytesIO(stream[offsets[i] : offsets[i + 1]].tobytes()) for i in rows)
    return np.stack([np.asarray(Image.open(file).convert("RGB")) for file in files]), labels[rows]
