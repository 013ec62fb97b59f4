"""Noise of the zoo: functions of `Rows` and a seed that return noisy labels and T (None if no single T exists)."""

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict
from sklearn.neighbors import KNeighborsClassifier
from sklearn.tree import DecisionTreeClassifier

from noisytransition import flip_labels
from noisytransition.transition import digits_noise, flip_noise, pair_noise, symmetric_noise

from .rows import most_votes, some_of_each


# ---------------------------------------------------------------------------- class-conditional noise
def one_matrix(matrix):
    """Flip all labels by one T; `matrix` computes it from the number of classes."""

    def noise(rows, seed):
        T = matrix(rows.y.max() + 1)
        return flip_labels(rows.y, T, random_state=seed), T

    noise.kind = "class-conditional"
    return noise


def symmetric(rate):
    return one_matrix(lambda n_classes: symmetric_noise(n_classes, rate))


def pair(rate):
    return one_matrix(lambda n_classes: pair_noise(n_classes, rate))


def asymmetric(rate):
    """Flip labels between similar digits."""
    return one_matrix(lambda _: digits_noise(rate))


def flips(rates):
    """Flip labels with the rates {(true, noisy): rate}."""
    return one_matrix(lambda n_classes: flip_noise(rates, n_classes))


def neighbours(rate):
    """Flip labels of ordered classes to the two neighbouring classes, with half of the rate each."""

    def matrix(n_classes):
        T = np.eye(n_classes) * (1 - rate)
        for i in range(n_classes):
            near = [j for j in (i - 1, i + 1) if 0 <= j < n_classes]
            T[i, near] = rate / len(near)
        return T

    return one_matrix(matrix)


# ---------------------------------------------------------------------------- feature-dependent noise
def in_a_part(inside, outside=None):
    """Flip labels with the rates `inside` for samples in `part`, and `outside` (or none) for the other samples."""

    def noise(rows, seed):
        n_classes = rows.y.max() + 1
        matrices = [flip_noise(rates, n_classes) if rates else np.eye(n_classes) for rates in (outside, inside)]
        flipped = [flip_labels(rows.y, T, random_state=seed) for T in matrices]
        return np.where(rows.part, flipped[1], flipped[0]), None

    noise.kind = "feature-dependent"
    return noise


def hard_rows(rate):
    """Flip labels to the second most probable class, with probability 0 (easiest sample) to 2 rate (hardest)."""

    def noise(rows, seed):
        forest = RandomForestClassifier(100, min_samples_leaf=5, random_state=seed)
        proba = cross_val_predict(forest, rows.X, rows.y, cv=3, method="predict_proba")
        own = np.take_along_axis(proba, rows.y[:, None], axis=1)[:, 0]
        np.put_along_axis(proba, rows.y[:, None], -1, axis=1)
        ease = own - proba.max(axis=1)
        hardness = 1 - ease.argsort().argsort() / len(ease)
        flip = np.random.default_rng([seed, 1]).random(len(ease)) < 2 * rate * hardness
        return np.where(flip, proba.argmax(axis=1), rows.y), None

    noise.kind = "feature-dependent"
    return noise


def people(n, n_votes):
    """Label each sample by the majority of `n_votes` of n people, with ties broken at random.

    Each person has one T for samples in `part` and another for the other samples.
    """

    def noise(rows, seed):
        rng = np.random.default_rng([seed, 1])
        n_classes = rows.y.max() + 1
        of_people = [np.where(rows.part, _answers(rows.y, rng), _answers(rows.y, rng)) for _ in range(n)]
        asked = rng.permuted(np.tile(np.arange(n), (len(rows.y), 1)), axis=1)[:, :n_votes]
        drawn = np.take_along_axis(np.array(of_people).T, asked, axis=1)
        votes = (drawn[:, :, None] == np.arange(n_classes)).sum(axis=1)
        return most_votes(votes, [seed, 2]), None

    noise.kind = "feature-dependent"
    return noise


def _answers(y, rng):
    """Return the answers of a random T: 50 to 95 % of each class are right, wrong answers prefer some classes."""
    n_classes = y.max() + 1
    T = np.zeros((n_classes, n_classes))
    for i, right in enumerate(rng.uniform(0.5, 0.95, n_classes)):
        T[i] = np.insert((1 - right) * rng.dirichlet(np.ones(n_classes - 1)), i, right)
    return flip_labels(y, T, random_state=rng.integers(2**31))


def small_model(per_class=8):
    """Label all samples by a model trained on half of the columns and a few samples of each class."""

    def noise(rows, seed):
        rng = np.random.default_rng([seed, 1])
        columns = rng.permutation(rows.X.shape[1])[: max(1, rows.X.shape[1] // 2)]
        few = some_of_each(rows.y, rng.permutation(len(rows.y)), per_class)
        model = KNeighborsClassifier(3).fit(rows.X[few][:, columns], rows.y[few])
        return model.predict(rows.X[:, columns]), None

    noise.kind = "rule or model"
    return noise


def rule(n_columns):
    """Label all samples by a decision tree of depth 2 on a few columns."""

    def noise(rows, seed):
        columns = np.random.default_rng([seed, 1]).permutation(rows.X.shape[1])[:n_columns]
        tree = DecisionTreeClassifier(max_depth=2, random_state=seed).fit(rows.X[:, columns], rows.y)
        return tree.predict(rows.X[:, columns]), None

    noise.kind = "rule or model"
    return noise


# ---------------------------------------------------------------------------- labels of the data set
def given(kind):
    """Return the noisy labels that the samples come with."""

    def noise(rows, seed):
        return rows.answers, None

    noise.kind = kind
    return noise


answers = given("human")
programs = given("rule or model")
