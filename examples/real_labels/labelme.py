"""Photographs with labels from a crowd.

    python -m examples.real_labels.labelme --data DIR

DIR has ``labelme_*`` of github.com/fmenat/PyLearningCrowds (Rodrigues and Pereira, "Deep Learning from Crowds", AAAI
2018): photographs of eight types of places. 59 people labelled 1,000 training photographs, each by one to three people.
The noisy label is the majority's, with ties broken at random. The features of a VGG network and the 1,188 test
photographs come with the data.
"""

from functools import lru_cache

import numpy as np

from examples.real_labels.common import main, split

N_CLASSES = 8


@lru_cache
def read(folder):
    """Read features, true labels and answers of the training photographs; features and labels of the test ones."""
    X, X_test = (np.load(folder / f"labelme_LabelMe_VGG_avg_{part}.npy").squeeze() for part in ("train", "test"))
    y, y_test = (np.loadtxt(folder / f"labelme_LabelMe_Z_{part}.txt").astype(int) for part in ("train", "test"))
    answers = np.loadtxt(folder / "labelme_answers.txt").astype(int)
    return X, X_test, y, answers, y_test


def majority(answers, seed):
    """Return the label with the most votes; an answer of -1 means that the person was not asked."""
    votes = (answers[:, :, None] == np.arange(N_CLASSES)).sum(axis=1)
    return (votes + np.random.default_rng(seed).random(votes.shape)).argmax(axis=1)


def load(seed, folder):
    """Load the samples of a split."""
    X, X_test, y, answers, y_test = read(folder)
    return split(X, y, majority(answers, seed), X_test, y_test, seed)


if __name__ == "__main__":
    from examples.real_labels.labelme import load

    main("labelme", __doc__, load)
