from functools import partial

import numpy as np
import pytest
import training
from estimators import small

from noisytransition import CrossEntropyClassifier, GLCClassifier
from noisytransition.transition import anchor_transition_matrix, gold_transition_matrix

fit = partial(training.fit, GLCClassifier)


def test_T_is_the_mean_posterior_of_the_clean_samples_under_cross_entropy(blobs):
    X, y, X_clean, y_clean, *_ = blobs
    clf = fit(blobs, warm_up_epochs=None)
    noisy_model = small(CrossEntropyClassifier).fit(X, y)
    T = gold_transition_matrix(noisy_model.predict_proba(X_clean), y_clean)
    np.testing.assert_allclose(clf.transition_matrix_, training.floored(T), rtol=1e-6)
    np.testing.assert_array_equal(clf.transition_init_, clf.transition_matrix_)
    assert clf.transition_history_.shape == (1, 3, 3)
    untrained = small(CrossEntropyClassifier, max_epochs=0).fit(X, y)
    clf = fit(blobs, max_epochs=0)
    assert len(clf.histories_["warm_up"]) == 2
    np.testing.assert_array_equal(clf.predict_proba(X), untrained.predict_proba(X))  # from its initial weights


def test_noisy_and_clean_samples_are_shuffled_together(blobs):
    batches = []

    def note(net, batch=None, **kwargs):
        batches.append((batch.x[:, 0].tolist(), batch.columns.get("is_clean")))

    fit(blobs, warm_up_epochs=1, max_epochs=2, batch_size=64, callbacks=[training.On(batch_end=note)])
    warm_up, first, second = batches[:5], batches[5:11], batches[11:]
    assert [sum(len(x) for x, _ in epoch) for epoch in (warm_up, first, second)] == [300, 360, 360]
    for epoch in (first, second):
        assert all(0 < is_clean.sum() < len(is_clean) for _, is_clean in epoch)
        assert sum(int(is_clean.sum()) for _, is_clean in epoch) == 60
    assert first[0][0] != second[0][0]


def test_a_class_without_clean_samples_gets_an_anchor_and_a_warning_that_names_it(blobs):
    X, y, X_clean, y_clean, *_ = blobs
    names = np.array(["ant", "bee", "cat"])
    with pytest.warns(UserWarning, match="cat"):
        clf = small(GLCClassifier).fit(X, names[y], meta=(X_clean[y_clean < 2], names[y_clean[y_clean < 2]]))
    warm_up = small(CrossEntropyClassifier, max_epochs=2).fit(X, y)
    anchors = anchor_transition_matrix(warm_up.predict_proba(X))
    np.testing.assert_allclose(clf.transition_matrix_[2], anchors[2], atol=1e-3)
