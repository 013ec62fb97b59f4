import pytest
import torch
from estimators import CLASSIFIERS, small
from skorch.callbacks import LRScheduler
from skorch.dataset import ValidSplit
from torch import nn
from training import StopAfter, assert_same, no_training, refused

from noisytransition import CrossEntropyClassifier, FitState, MetaTransitionClassifier

every = pytest.mark.parametrize("cls", CLASSIFIERS)


def params(cls):
    own = {"transition_optimizer": torch.optim.Adam, "transition_lr": 0.05} if cls is MetaTransitionClassifier else {}
    module = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))
    torch.manual_seed(0)
    for layer in (module[0], module[4]):
        layer.reset_parameters()
    return own | {"module": module, "optimizer": torch.optim.Adam, "lr": 0.01}


@every
@pytest.mark.parametrize("limit", [0, 1, 2, 4])
def test_an_interrupted_fit_goes_on_to_the_same_result(cls, blobs, tmp_path, limit):
    X, y, X_meta, y_meta, *_ = blobs
    schedule = LRScheduler("CosineAnnealingLR", T_max=3)
    whole = small(cls, callbacks=[schedule], **params(cls)).fit(X, y, meta=(X_meta, y_meta))
    path, interrupted = tmp_path / "fit.pt", False
    try:
        small(cls, callbacks=[schedule, StopAfter(limit)], **params(cls)).fit(X, y, meta=(X_meta, y_meta), state=path)
    except KeyboardInterrupt:
        interrupted = True
    assert interrupted == (limit < sum(len(h) for h in whole.histories_.values()))
    resumed = small(cls, callbacks=[schedule], **params(cls)).fit(X, y, meta=(X_meta, y_meta), state=FitState(path))
    assert_same(resumed, whole, X)
    assert resumed.histories_.keys() == whole.histories_.keys()
    for stage, history in whole.histories_.items():
        assert resumed.histories_[stage][:, "train_loss"] == history[:, "train_loss"]


@every
def test_a_finished_fit_is_read_and_not_trained_again(cls, blobs, tmp_path):
    X, y, X_meta, y_meta, *_ = blobs
    path = tmp_path / "fit.pt"
    first = small(cls, random_state=None).fit(X, y, meta=(X_meta, y_meta), state=path)
    with no_training():
        again = small(cls, random_state=None).fit(X, y, meta=(X_meta, y_meta), state=str(path))
    assert_same(first, again, X)
    assert getattr(again, "meta_gradient_method_", None) == getattr(first, "meta_gradient_method_", None)


def test_another_fit_s_file_is_refused(blobs, tmp_path):
    X, y, *_ = blobs
    path = tmp_path / "fit.pt"
    small(CrossEntropyClassifier).fit(X, y, state=path)
    with refused(r"differs from this one in \['lr'\]"):
        small(CrossEntropyClassifier, lr=0.2).fit(X, y, state=path)
    with refused("X, y"):
        small(CrossEntropyClassifier).fit(X[1:], y[1:], state=path)


def test_lists_and_splits_tell_fits_apart(blobs, tmp_path):
    X, y, path = *blobs[:2], tmp_path / "fit.pt"
    small(CrossEntropyClassifier, module__hidden=[8], train_split=ValidSplit(5)).fit(X, y, state=path)
    small(CrossEntropyClassifier, module__hidden=[8], train_split=ValidSplit(5)).fit(X, y, state=path)
    for other in ({"module__hidden": [16], "train_split": ValidSplit(5)}, {"train_split": ValidSplit(2)}):
        with refused("differs from this one in"):
            small(CrossEntropyClassifier, **({"module__hidden": [8]} | other)).fit(X, y, state=path)
