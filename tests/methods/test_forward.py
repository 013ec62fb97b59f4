from functools import partial

import numpy as np
from training import Batches, fit_noisy, floored

from noisytransition import CrossEntropyClassifier, ForwardClassifier
from noisytransition.transition import anchor_transition_matrix

fit = partial(fit_noisy, ForwardClassifier)


def test_T_is_the_warm_up_s_posterior_at_the_anchors_and_stays(blobs):
    proba = fit_noisy(CrossEntropyClassifier, blobs, max_epochs=2).predict_proba(blobs[0])
    anchors = {of: anchor_transition_matrix(proba, percentile=of) for of in (90, "auto", None)}
    for percentile, T in anchors.items():
        clf = fit(blobs, validation_fraction=0, anchor_percentile=percentile)
        np.testing.assert_allclose(clf.transition_matrix_, floored(T), rtol=1e-6)
        assert np.allclose(T, anchors[None]) == (percentile is None)
    np.testing.assert_array_equal(clf.transition_init_, clf.transition_matrix_)
    assert list(clf.histories_) == ["warm_up", "forward"]
    np.testing.assert_allclose(clf.net_.criterion_.transition_matrix, clf.transition_matrix_, rtol=1e-5)
    starts = (fit(blobs, max_epochs=0, transition_init=init) for init in ("anchor", "diagonal"))
    np.testing.assert_array_equal(*(start.predict_proba(blobs[0]) for start in starts))  # the second net is a fresh one


def test_the_warm_up_ends_with_its_best_epoch_on_held_out_samples(blobs):
    clf = fit(blobs, warm_up_epochs=6, lr=1.5, callbacks=[batches := Batches()])
    best = int(np.argmin(clf.histories_["warm_up"][:, "valid_noisy_loss"])) + 1
    assert best < 6
    short = fit(blobs, warm_up_epochs=best, lr=1.5)
    np.testing.assert_array_equal(clf.transition_matrix_, short.transition_matrix_)
    assert batches.sizes()[0] == 270
    assert batches.sizes()[-1] == 300
    assert clf.net_.train_split is None
