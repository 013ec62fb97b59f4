import numpy as np
import pytest
import torch
from estimators import small
from skorch.callbacks import Callback
from skorch.dataset import ValidSplit
from torch.utils.data import TensorDataset

from noisytransition import CrossEntropyClassifier, FitState, GCEClassifier


def fit(blobs, **params):
    return small(GCEClassifier, **params).fit(*blobs[:2])


def test_q_of_zero_is_cross_entropy(blobs):
    X, y = blobs[:2]
    plain = small(CrossEntropyClassifier).fit(X, y)
    np.testing.assert_allclose(fit(blobs, q=0.0).predict_proba(X), plain.predict_proba(X), atol=1e-5)
    assert np.abs(fit(blobs, q=0.7).predict_proba(X) - plain.predict_proba(X)).max() > 1e-3


class Spy(Callback):
    """Keeps each epoch's batches, and what the net thinks of all rows when the epoch begins."""

    epochs = None

    def on_epoch_begin(self, net, **kwargs):
        with torch.random.fork_rng():
            proba = net.predict_proba(self.X)
        type(self).epochs.append((proba, []))

    def on_batch_begin(self, net, batch=None, training=False, **kwargs):
        if training:
            type(self).epochs[-1][1].append(batch)


def spied(blobs, **params):
    X, y = blobs[:2]
    spy = type("S", (Spy,), {"epochs": [], "X": X.astype(np.float32)})
    clf = fit(blobs, callbacks=[("spy", spy())], max_epochs=7, lr=0.5, **params)
    place = {row.tobytes(): n for n, row in enumerate(X)}
    epochs = []
    for proba, batches in spy.epochs:
        seen = [(place[x.numpy().tobytes()], int(label)) for xs, ys in batches for x, label in zip(xs, ys, strict=True)]
        epochs.append((proba, dict(seen)))
    return clf, epochs, y


def test_a_mark_follows_its_row_under_shuffling_until_the_next_look(blobs):
    _, epochs, y = spied(blobs, truncation=0.5, truncation_start=2, truncation_every=3)
    for epoch, (_, seen) in enumerate(epochs):
        assert len(seen) == len(y)
        look = None if epoch < 2 else epochs[2 if epoch < 5 else 5][0]
        for n, label in seen.items():
            marked = look is not None and look[n, y[n]] <= 0.5
            assert label == y[n] + 3 * marked
    marks = [{n for n, label in seen.items() if label >= 3} for _, seen in epochs]
    assert marks[2] == marks[4] != marks[5]
    assert marks[2] - marks[5]  # rows that came back


def test_the_default_start_is_a_third_of_the_epochs(blobs):
    _, epochs, _ = spied(blobs, truncation=0.5)
    assert [any(label >= 3 for label in seen.values()) for _, seen in epochs] == [False] * 2 + [True] * 5


def test_marks_stay_out_of_the_validation_set(blobs):
    clf = fit(blobs, truncation=0.5, truncation_start=1, train_split=ValidSplit(3), max_epochs=4)
    assert clf.history_[-1, "valid_acc"] > 0.3
    X, y = blobs[:2]
    assert clf.fit(X, y).score(X, y) > 0.3


def test_the_user_s_labels_stay_as_they_are(blobs):
    X, y = blobs[:2]
    before = y.copy()
    fit(blobs, truncation=0.5, truncation_start=0)
    np.testing.assert_array_equal(y, before)
    data = TensorDataset(torch.tensor(X, dtype=torch.float32))
    by_dataset = small(GCEClassifier, truncation=0.5, truncation_start=1).fit(data, y)
    np.testing.assert_allclose(
        by_dataset.predict_proba(X), fit(blobs, truncation=0.5, truncation_start=1).predict_proba(X), atol=1e-5
    )


def test_an_interrupted_fit_remembers_its_marks(blobs, tmp_path):
    X, y = blobs[:2]
    params = {"truncation": 0.5, "truncation_start": 1, "truncation_every": 10, "max_epochs": 5}

    class Stop(Callback):
        def on_epoch_end(self, net, **kwargs):
            if len(net.history) == 4:
                raise KeyboardInterrupt

    path = tmp_path / "fit.pt"
    with pytest.raises(KeyboardInterrupt):
        small(GCEClassifier, callbacks=[Stop()], **params).fit(X, y, state=path)
    resumed = small(GCEClassifier, **params).fit(X, y, state=FitState(path))
    np.testing.assert_array_equal(resumed.predict_proba(X), fit(blobs, **params).predict_proba(X))


def test_leaving_out_all_rows_is_warned_of(blobs):
    with pytest.warns(UserWarning, match="leaves no row to train on"):
        fit(blobs, truncation=0.999, truncation_start=0)


@pytest.mark.parametrize(
    ("params", "message"),
    [
        ({"q": 1.5}, "q == 1.5"),
        ({"q": -0.1}, "q == -0.1"),
        ({"truncation": 0.0}, "truncation=0.0; valid"),
        ({"truncation": 2.0}, "truncation == 2.0"),
        ({"truncation_start": -1}, "truncation_start"),
        ({"truncation_every": 0}, "truncation_every"),
        ({"truncation": 0.5, "iterator_train__persistent_workers": True}, "never see which rows"),
    ],
)
def test_bad_parameters_are_refused(blobs, params, message):
    with pytest.raises(ValueError, match=message):
        fit(blobs, **params)
