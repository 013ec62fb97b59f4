"""Photographs with labels from a crowd.

    python -m examples.real_labels.labelme --data DIR

DIR has ``labelme_*`` of github.com/fmenat/PyLearningCrowds (Rodrigues and Pereira, "Deep Learning from Crowds", AAAI
2018): eight kinds of places, 1,000 photographs to train with, of which 59 people labelled some, one to three people
each one. The noisy label is the majority's, at a tie that of one of them by chance. Features: those of a VGG network,
which come with the data. The 1,188 test photographs are those of the data.
"""

from functools import lru_cache

import numpy as np

from examples.real_labels.common import main, split

N_CLASSES = 8


@lru_cache
def read(folder):
    """Features, true labels and answers of the training photographs; features and labels of the test photographs."""
    X, X_test = (np.load(folder / f"labelme_LabelMe_VGG_avg_{part}.npy").squeeze() for part in ("train", "test"))
    y, y_test = (np.loadtxt(folder / f"labelme_LabelMe_Z_{part}.txt").astype(int) for part in ("train", "test"))
    answers = np.loadtxt(folder / "labelme_answers.txt").astype(int)
    return X, X_test, y, answers, y_test


def majority(answers, seed):
    """Label with the most votes; -1: a person was not asked."""
    votes = (answers[:, :, None] == np.arange(N_CLASSES)).sum(axis=1)
    return (votes + np.random.default_rng(seed).random(votes.shape)).argmax(axis=1)


def load(seed, folder):
    """Rows of a split."""
    X, X_test, y, answers, y_test = read(folder)
    return split(X, y, majority(answers, seed), X_test, y_test, seed)


if __name__ == "__main__":
    from examples.real_labels.labelme import load

    main("labelme", __doc__, load)
