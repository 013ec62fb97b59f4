"""The test of one T, asked of classifiers."""

import numpy as np
import pandas as pd
import pytest
import torch
from estimators import WITH_TRANSITION, small
from scipy import stats
from sklearn.exceptions import NotFittedError
from torch import nn
from torch.utils.data import TensorDataset

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    ForwardClassifier,
    GLCClassifier,
    class_conditional_test,
    flip_labels,
)
from noisytransition.transition import pair_noise

NAMES = np.array(["ant", "bee", "cat"])


def clean_rows(blobs):
    """Clean rows of `blobs` with both labels, by one T."""
    X_meta, y_meta = blobs[4], blobs[5]
    return X_meta, y_meta, flip_labels(y_meta, pair_noise(3, 0.4), random_state=1)


@pytest.fixture(scope="module")
def fitted(blobs):
    X, y, X_meta, y_meta, *_ = blobs
    return small(GLCClassifier).fit(X, y, meta=(X_meta, y_meta))


@pytest.mark.parametrize("cls", WITH_TRANSITION)
def test_every_classifier_with_T_has_it(cls, blobs):
    X, y, X_meta, y_meta, *_ = blobs
    clf = small(cls).fit(X, y, meta=(X_meta, y_meta))
    rows = clean_rows(blobs)
    found = clf.class_conditional_test(*rows, random_state=0)
    by_hand = class_conditional_test(*rows[1:], proba=clf.predict_proba(rows[0]), features=rows[0], random_state=0)
    assert found.pvalues == by_hand.pvalues
    assert list(found.pvalues) == [
        "posteriors: direction",
        "posteriors: labels",
        "features: rate",
        "features: labels",
    ]


def test_a_classifier_without_T_has_none():
    assert not hasattr(CrossEntropyClassifier(), "class_conditional_test")


def test_labels_that_follow_the_classifier_are_found(fitted, blobs):
    X, y, _ = clean_rows(blobs)
    proba = fitted.predict_proba(X) ** 0.3
    second = np.where(np.arange(3) == y[:, None], 0, proba).argmax(axis=1)
    hard = proba[np.arange(len(y)), y] < np.median(proba[np.arange(len(y)), y])
    s = np.where(hard & (np.random.default_rng(0).random(len(y)) < 0.6), second, y)
    found = fitted.class_conditional_test(X, y, s, random_state=0)
    assert found.pvalues["posteriors: direction"] == 0.001
    assert "One T does not hold" in str(found)


# ---------------------------------------------------------------------------- forms of data
def test_text_labels_and_data_frames(fitted, blobs):
    X, y, X_meta, y_meta, *_ = blobs
    columns = list("pqrs")
    named = small(GLCClassifier).fit(
        pd.DataFrame(X, columns=columns), NAMES[y], meta=(pd.DataFrame(X_meta, columns=columns), NAMES[y_meta])
    )
    rows, y, s = clean_rows(blobs)
    groups = np.where(rows[:, 0] > rows[:, 0].mean(), "left", "right")
    frame = pd.DataFrame(rows, columns=columns)
    for more in ({}, {"groups": groups}):
        plain = fitted.class_conditional_test(rows, y, s, random_state=0, **more)
        more = {name: pd.Series(values, index=np.arange(len(values)) + 7) for name, values in more.items()}
        text = named.class_conditional_test(frame, pd.Series(NAMES[y]), pd.Series(NAMES[s]), random_state=0, **more)
        assert text.pvalues == plain.pvalues
        assert text.classes == ("ant", "bee", "cat")
        assert plain.classes == (0, 1, 2)


def test_groups_or_features_are_tested_alone(fitted, blobs):
    X, y, s = clean_rows(blobs)
    grouped = fitted.class_conditional_test(X, y, s, groups=X[:, 0] > 1, random_state=0)
    assert list(grouped.pvalues) == ["groups: rate", "groups: labels"]
    assert set(grouped.noise) == {"True", "False"}
    one = fitted.class_conditional_test(X, y, s, features=X[:, 0], random_state=0)
    assert list(one.pvalues) == ["features: rate", "features: labels"]


class Flat(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        return self.linear(x.flatten(1).float())


def test_images_datasets_and_wide_tables_are_tested_by_their_posteriors_alone(blobs):
    X, y = blobs[:2]
    rows, y_rows, s = clean_rows(blobs)
    forms = {
        "images": lambda X: X.reshape(-1, 2, 2).astype(np.float32),
        "datasets": lambda X: TensorDataset(torch.tensor(X, dtype=torch.float32)),
        "wide": lambda X: np.hstack([X, np.zeros((len(X), 50))]),
    }
    for name, form in forms.items():
        clf = small(ForwardClassifier, module=None if name == "wide" else Flat).fit(form(X), y)
        found = clf.class_conditional_test(form(rows), y_rows, s, random_state=0)
        assert list(found.pvalues) == ["posteriors: direction", "posteriors: labels"]


# ---------------------------------------------------------------------------- why it is exact
@pytest.mark.parametrize("cls", [GLCClassifier, EMTransitionClassifier])
def test_a_fit_knows_no_more_of_y_meta_noisy_than_its_counts(cls, blobs):
    """Permuted within the true classes, they lead to the same net and T, to the bit."""
    X, y, X_meta, y_meta, *_ = blobs
    s = flip_labels(y_meta, pair_noise(3, 0.4), random_state=0)
    moved, rng = s.copy(), np.random.default_rng(0)
    for i in range(3):
        moved[y_meta == i] = rng.permutation(s[y_meta == i])
    assert (moved != s).any()
    first, second = (
        small(cls, transition_init="count").fit(X, y, meta=(X_meta, y_meta), y_meta_noisy=labels)
        for labels in (s, moved)
    )
    np.testing.assert_array_equal(first.transition_matrix_, second.transition_matrix_)
    np.testing.assert_array_equal(first.predict_proba(X), second.predict_proba(X))


def test_pvalues_of_fits_with_these_rows_are_uniform():
    p = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        y = rng.integers(2, size=120)
        X = rng.normal(size=(120, 2)) + y[:, None]
        s = flip_labels(y, [[0.6, 0.4], [0.2, 0.8]], random_state=rng)
        clf = small(GLCClassifier, transition_init="count", max_epochs=2, random_state=seed)
        clf.fit(X[60:], s[60:], meta=(X[:60], y[:60]), y_meta_noisy=s[:60])
        p.append(clf.class_conditional_test(X[:60], y[:60], s[:60], n_permutations=99, random_state=seed).pvalue)
    assert stats.kstest(p, "uniform").pvalue > 0.01


# ---------------------------------------------------------------------------- errors
def test_without_noisy_labels_the_error_says_what_to_pass(fitted, blobs):
    X, y, _ = clean_rows(blobs)
    with pytest.raises(ValueError, match=r"y_meta_noisy is None.*pass class_conditional_test\(X_meta, y_meta, y_me"):
        fitted.class_conditional_test(X, y)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"y_meta": None}, "y_meta is None"),
        ({"y_meta": ["ant"] * 200}, "y_meta has labels .'ant'. that are not among classes_"),
        ({"y_meta_noisy": [7] * 200}, "y_meta_noisy has labels .7. that are not among classes_"),
        ({"y_meta_noisy": [1, 0]}, "y_meta_noisy has 2 labels for 200 rows"),
        ({"groups": ["a"] * 200}, "all rows are of one group"),
        ({"X_meta": np.ones((200, 3))}, "features"),
    ],
)
def test_errors_name_what_is_wrong(fitted, blobs, change, message):
    valid = dict(zip(("X_meta", "y_meta", "y_meta_noisy"), (rows[:200] for rows in clean_rows(blobs)), strict=True))
    with pytest.raises(ValueError, match=message):
        fitted.class_conditional_test(**(valid | change))


def test_before_a_fit():
    with pytest.raises(NotFittedError):
        GLCClassifier().class_conditional_test(np.ones((2, 2)), [0, 0], [0, 1])
