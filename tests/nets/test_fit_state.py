import pickle
from collections import deque

import numpy as np
import pytest
import torch
from estimators import CLASSIFIERS, small
from skorch.callbacks import Callback, LRScheduler
from skorch.dataset import ValidSplit
from torch import nn
from torch.nn import functional as F
from training import StopAfter, assert_same, no_training, refused

from noisytransition import CrossEntropyClassifier, FitState, MetaTransitionClassifier
from noisytransition.classifiers import NoisyLabelClassifier
from noisytransition.nets import MLP, NoisyLabelNet
from noisytransition.selection import Selection
from noisytransition.updates import Update

every = pytest.mark.parametrize("cls", CLASSIFIERS)


def params(cls):
    own = {"transition_optimizer": torch.optim.Adam, "transition_lr": 0.05} if cls is MetaTransitionClassifier else {}
    module = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3), nn.Linear(8, 3))
    torch.manual_seed(0)
    for layer in (module[0], module[4]):
        layer.reset_parameters()
    return own | {"module": module, "optimizer": torch.optim.Adam, "lr": 0.01}


@every
@pytest.mark.parametrize("limit", [0, 1, 3])
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


@pytest.mark.parametrize(
    ("policy", "params"), [("MultiStepLR", {"milestones": [1, 2, 2]}), ("StepLR", {"step_size": 2})]
)
def test_schedules_go_on(blobs, tmp_path, policy, params):
    X, y, *_ = blobs
    schedule = LRScheduler(policy, **params)
    whole = small(CrossEntropyClassifier, max_epochs=3, callbacks=[schedule]).fit(X, y)
    with pytest.raises(KeyboardInterrupt):
        small(CrossEntropyClassifier, max_epochs=3, callbacks=[schedule, StopAfter(2)]).fit(
            X, y, state=tmp_path / "fit"
        )
    resumed = small(CrossEntropyClassifier, max_epochs=3, callbacks=[schedule]).fit(X, y, state=tmp_path / "fit")
    assert_same(resumed, whole, X)
    assert len(set(whole.history_[:, "event_lr"])) > 1
    assert resumed.history_[:, "event_lr"] == whole.history_[:, "event_lr"]


@every
def test_a_finished_fit_is_read_and_not_trained_again(cls, blobs, tmp_path):
    X, y, X_meta, y_meta, *_ = blobs
    path = tmp_path / "fit.pt"
    first = small(cls, random_state=None).fit(X, y, meta=(X_meta, y_meta), state=path)
    with no_training():
        again = small(cls, random_state=None).fit(X, y, meta=(X_meta, y_meta), state=str(path))
    assert_same(first, again, X)


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


# ---------------------------------------------------------------------------- what of a net is saved, and what refused
class OneStage(NoisyLabelClassifier):
    """Trains with the parts that a test sets."""

    parts = staticmethod(dict)

    def _fit(self, run):
        self.net_ = run.train("only", **self.parts())


@pytest.fixture
def fit_with(monkeypatch, blobs, tmp_path):
    """Fit with such parts, with a state unless it is None."""

    def fit(parts, *callbacks, state=tmp_path / "fit.pt"):
        monkeypatch.setattr(OneStage, "parts", staticmethod(parts))
        return small(OneStage, max_epochs=4, callbacks=list(callbacks)).fit(*blobs[:2], state=state)

    return fit


def whole_and_resumed(fit_with, parts):
    """Nets of a fit, and of one that was interrupted in its third epoch."""
    with pytest.raises(KeyboardInterrupt):
        fit_with(parts, StopAfter(2))
    return fit_with(parts, state=None).net_, fit_with(parts).net_


def assert_same_histories(one, other):
    assert one.history[:, "train_loss"] == other.history[:, "train_loss"]


class TwoNetworks(NoisyLabelNet):
    """Two networks that learn from each other's losses, each with an optimiser."""

    def initialize_module(self):
        super().initialize_module()
        self.peer_ = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Dropout(0.2), nn.Linear(8, 3))
        return self

    def initialize_optimizer(self):
        self.optimizer_ = torch.optim.SGD(self.module_.parameters(), lr=0.1, momentum=0.9)
        self.peer_optimizer_ = torch.optim.Adam(self.peer_.parameters(), lr=0.01)
        return self

    def train_step_single(self, batch, **fit_params):
        logits, peer_logits = self.module_(batch.x), self.peer_(batch.x)
        losses, peer_losses = (F.cross_entropy(z, batch.label, reduction="none") for z in (logits, peer_logits))
        loss = (losses * peer_losses.detach().neg().exp() + peer_losses * losses.detach().neg().exp()).mean()
        loss.backward()
        return {"loss": loss, "y_pred": logits}


def test_two_networks_with_two_optimisers_go_on_to_the_same_result(fit_with):
    whole, resumed = whole_and_resumed(fit_with, lambda: {"net": TwoNetworks})
    assert_same_histories(whole, resumed)
    for part in ("module_", "peer_"):
        pairs = zip(
            getattr(whole, part).state_dict().values(), getattr(resumed, part).state_dict().values(), strict=True
        )
        assert all(torch.equal(a, b) for a, b in pairs)
    moments = [net.peer_optimizer_.state_dict()["state"][0]["exp_avg_sq"] for net in (whole, resumed)]
    assert torch.equal(*moments)


class Box:
    """An object with something inside."""

    def __init__(self, content):
        self.content = content


def keeps(name, make):
    """A net that keeps something beside its module."""

    class Keeps(NoisyLabelNet):
        def initialize_module(self):
            super().initialize_module()
            vars(self)[name] = make(self.module_)
            return self

    return Keeps


@pytest.mark.parametrize("name", ["peer_", "peer", "_peer", "_Net__peer"])
@pytest.mark.parametrize(
    "make",
    [
        lambda module: torch.zeros(3),
        lambda module: MLP(4, 3),
        lambda module: torch.optim.SGD(module.parameters()),
        lambda module: [MLP(4, 3)],
        lambda module: (1, torch.zeros(3)),
        lambda module: {"optimiser": torch.optim.SGD(module.parameters())},
        lambda module: deque([torch.zeros(3)]),
        lambda module: {"deep": [Box({"peer": MLP(4, 3)})]},
        lambda module: (i for i in range(3)),
    ],
    ids=["tensor", "module", "optimiser", "list", "tuple", "dict", "deque", "object", "iterator"],
)
def test_state_that_is_not_registered_is_refused_before_training(fit_with, tmp_path, name, make):
    with refused(rf"Keeps keeps state in \['{name}'\], .*initialize_module"):
        fit_with(lambda: {"net": keeps(name, make)})
    assert not (tmp_path / "fit.pt").exists()
    fit_with(lambda: {"net": keeps(name, make)}, state=None)


def test_state_that_comes_while_training_is_refused_too(fit_with, tmp_path):
    class Late(NoisyLabelNet):
        def train_step_single(self, batch, **fit_params):
            self.last_ = batch.x.mean()
            return super().train_step_single(batch, **fit_params)

    with pytest.raises(ValueError, match=r"Late keeps state in \['last_'\]"):
        fit_with(lambda: {"net": Late})
    assert not (tmp_path / "fit.pt").exists()


class Counts(NoisyLabelNet):
    """Weighs a batch by numbers that hang on the net: set at first, given, and drawn."""

    def __init__(self, *args, decay=1.0, **kwargs):
        super().__init__(*args, **kwargs)
        self.decay = decay

    def initialize_module(self):
        super().initialize_module()
        self.n_steps_, self.seen, self.draws_ = 0, {}, np.random.default_rng(0)
        return self

    def _loss(self, logits, batch):
        self.n_steps_ += 1
        self.decay *= 0.9
        self.seen[self.n_steps_] = float(logits.detach().mean())
        return super()._loss(logits, batch) * self.decay * (1 + self.draws_.random() + sum(self.seen.values()) ** 2)


def test_counters_of_a_net_go_on(fit_with):
    whole, resumed = whole_and_resumed(fit_with, lambda: {"net": Counts})
    assert_same_histories(whole, resumed)
    assert (whole.n_steps_, whole.decay, whole.seen) == (resumed.n_steps_, resumed.decay, resumed.seen)


class Remembers(nn.Module):
    """A loss with a number, an array, a tensor and a buffer that its state_dict leaves out."""

    def __init__(self):
        super().__init__()
        self.n, self.array, self.mean = 0, np.zeros(3), torch.zeros(3)
        self.register_buffer("hidden", torch.zeros(3), persistent=False)

    def forward(self, logits, y):
        if self.training:
            self.n += 1
            self.array = self.array + logits.detach().mean(0).numpy()
            self.mean = 0.9 * self.mean + 0.1 * logits.detach().mean(0)
            self.hidden.mul_(0.9).add_(self.mean)
        target = self.mean + self.hidden + torch.from_numpy(self.array).float() / max(self.n, 1)
        return F.cross_entropy(logits, y) + ((logits - target) ** 2).mean() / (1 + self.n)


def test_what_a_loss_keeps_beside_its_buffers_goes_on(fit_with):
    whole, resumed = whole_and_resumed(fit_with, lambda: {"loss": nn.Sequential(Remembers())[0]})
    assert_same_histories(whole, resumed)
    assert (whole.criterion_.n, whole.criterion_.array.tolist()) == (
        resumed.criterion_.n,
        resumed.criterion_.array.tolist(),
    )
    assert torch.equal(whole.criterion_.hidden, resumed.criterion_.hidden)


# ---------------------------------------------------------------------------- updates, selections, other callbacks
def role(base, name, make):
    """An update or a selection that keeps something from the beginning of the training."""

    class Keeps(base):
        def on_train_begin(self, net, **kwargs):
            super().on_train_begin(net, **kwargs)
            setattr(self, name, make(net))

    return Keeps()


@pytest.mark.parametrize("base", [Update, Selection])
@pytest.mark.parametrize(
    ("name", "make", "message"),
    [
        ("weight_", lambda net: lambda x: x, "is not plain data"),
        ("weight_", lambda net: (i for i in range(3)), "is not plain data"),
        ("optimisers_", lambda net: [torch.optim.SGD(net.module_.parameters())], "optimisers inside something else"),
        ("peers_", lambda net: {"peer": MLP(4, 3)}, "modules or optimisers inside something else"),
        ("counts", lambda net: torch.zeros(3), "end the names with '_'"),
        ("_counts", lambda net: [0], "end the names with '_'"),
    ],
)
def test_roles_that_would_lose_state_are_refused_before_training(fit_with, base, name, make, message):
    part = "update" if base is Update else "select"
    with refused(rf"Keeps keeps .*\['{name}'\].*{message}"):
        fit_with(lambda: {part: role(base, name, make)})
    fit_with(lambda: {part: role(base, name, make)}, state=None)


class Moves(Update):
    """Weighs batches by all kinds of state that an update may keep."""

    def __init__(self, factor):
        self.factor = factor

    def on_train_begin(self, net, **kwargs):
        super().on_train_begin(net, **kwargs)
        self.weights_, self.seen_ = nn.Linear(1, 1), []
        self.optimizer_ = torch.optim.Adam(self.weights_.parameters(), lr=0.1)

    def before_step(self, net, batch):
        self.factor *= 0.99
        self.optimizer_.zero_grad()
        self.weights_(torch.tensor([self.factor])).square().sum().backward()
        self.optimizer_.step()
        self.seen_.append(self.weights_.bias.item())
        batch.x.mul_(1 + self.seen_[-1] + self.factor)


def test_an_update_s_module_optimiser_list_and_number_go_on(fit_with):
    whole, resumed = whole_and_resumed(fit_with, lambda: {"update": Moves(0.5)})
    assert_same_histories(whole, resumed)
    assert whole.update.seen_ == resumed.update.seen_


class Late(Update):
    """Makes its optimiser at the first step."""

    optimizer_ = None

    def before_step(self, net, batch):
        self.optimizer_ = self.optimizer_ or torch.optim.Adam(net.module_.parameters())


def test_an_optimiser_that_is_made_too_late_is_refused_and_not_left_as_it_was(fit_with):
    with pytest.raises(ValueError, match="Late sets 'optimizer_' after its training has begun"):
        whole_and_resumed(fit_with, lambda: {"update": Late()})


class Plots(Callback):
    """A callback of a user's that holds what cannot be saved."""

    def on_train_begin(self, net, **kwargs):
        self.draw_ = lambda: None


def test_what_a_user_s_callback_cannot_save_is_left_out(fit_with):
    fit_with(dict, Plots())
    assert len(fit_with(dict, Plots()).history_) == 4


def test_a_folder_that_does_not_exist_is_refused(blobs, tmp_path):
    with refused("does not exist; make it"):
        small(CrossEntropyClassifier).fit(*blobs[:2], state=tmp_path / "nowhere" / "fit.pt")


def test_a_saved_classifier_is_as_small_as_another(blobs, tmp_path):
    """It holds neither the file's content nor the earlier stages."""
    X, y, X_meta, y_meta, *_ = blobs
    sizes = [
        len(pickle.dumps(small(MetaTransitionClassifier).fit(X, y, meta=(X_meta, y_meta), state=state)))
        for state in (None, tmp_path / "fit.pt")
    ]
    assert sizes[1] < 1.05 * sizes[0]
