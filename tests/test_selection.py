"""Selection of an epoch or of T after a training."""

from types import SimpleNamespace

import numpy as np
import pytest
import torch
from skorch.callbacks import Callback
from skorch.dataset import ValidSplit

from noisytransition.losses import ForwardLoss, corrected_cross_entropy
from noisytransition.nets import NoisyLabelNet, Rows
from noisytransition.selection import BestEpoch, HeldOutLikelihood
from noisytransition.transition import flip_labels, pair_noise, symmetric_noise
from noisytransition.updates import PosteriorCounts

T_TRUE = pair_noise(3, 0.4)


@pytest.mark.parametrize(
    ("monitor", "lower", "lr"), [("valid_noisy_loss", True, 20.0), ("valid_noisy_acc", False, 2.0)]
)
def test_the_best_epoch_s_weights_and_T_come_back(blobs, monitor, lower, lr):
    X, y, *_ = blobs
    rows, seen = Rows(X.astype(np.float32), y), []

    class States(Callback):
        def on_epoch_end(self, net, **kwargs):
            seen.append((net.module_.weight.detach().clone(), net.criterion_.transition_matrix))

    torch.manual_seed(0)
    net = NoisyLabelNet(
        torch.nn.Linear(4, 3),
        criterion=ForwardLoss(pair_noise(3, 0.3)),
        update=PosteriorCounts(0.5),
        select=BestEpoch(monitor, lower_is_better=lower),
        lr=lr,
        max_epochs=12,
        train_split=ValidSplit(5, stratified=False),
        classes=np.arange(3),
        verbose=0,
        callbacks=[("states", States())],
    ).fit(rows, rows.label)
    scores = np.array(net.history[:, monitor]) * (1 if lower else -1)
    best = int(scores.argmin())
    assert best < 11
    torch.testing.assert_close(net.module_.weight.detach(), seen[best][0], rtol=0, atol=0)
    np.testing.assert_array_equal(net.criterion_.transition_matrix, seen[best][1])
    assert not np.array_equal(seen[best][1], seen[-1][1])


def outputs(dtype=torch.float32, n=1000, T=T_TRUE):
    """Confident logits, and labels drawn from T."""
    y = np.arange(n) % 3
    logits = torch.eye(3)[torch.tensor(y)] * 8 + torch.randn(n, 3, generator=torch.Generator().manual_seed(0))
    return logits.to(dtype), torch.tensor(flip_labels(y, T, random_state=0))


class Training:
    """A training whose T is set by hand, and its selection."""

    def __init__(self, T):
        self.net = SimpleNamespace(criterion_=ForwardLoss(T), callbacks_=[])
        self.select = HeldOutLikelihood()
        self.select.on_train_begin(self.net)

    def epoch(self, T, logits, labels):
        """Set T and the outputs for the held-out samples."""
        self.net.criterion_.transition_logits.copy_(torch.tensor(np.log(np.maximum(T, 1e-6))))
        self.net.evaluated = lambda dataset: zip(logits.split(300), labels.split(300), strict=True)
        self.select.on_epoch_end(self.net, dataset_valid=object())
        return self

    @property
    def kept(self):
        """Return T that would be selected if the training ended now."""
        return torch.softmax(self.select.kept(self.net)["transition_logits"].double(), 1).numpy()


def test_a_better_T_is_kept_and_a_worse_one_is_not():
    training = Training(pair_noise(3, 0.2)).epoch(pair_noise(3, 0.35), *outputs())
    np.testing.assert_allclose(training.kept, pair_noise(3, 0.35), atol=1e-4)
    training.epoch(pair_noise(3, 0.1), *outputs())
    np.testing.assert_allclose(training.kept, pair_noise(3, 0.35), atol=1e-4)


def test_of_a_way_that_is_too_long_a_part_is_kept():
    training = Training(pair_noise(3, 0.1)).epoch(pair_noise(3, 0.7), *outputs())
    np.testing.assert_allclose(training.kept, pair_noise(3, 0.4), atol=1e-4)  # half of it


@pytest.mark.parametrize(("n", "kept"), [(20, 0.4), (1000, 0.4), (2000, 0.5)])
def test_a_gain_that_may_be_chance_is_not_enough(n, kept):
    """Every second label is flipped: 0.5 is likelier than 0.4, by more than two standard errors with 2,000 rows."""
    rows = 20 * torch.eye(2).repeat(n // 2, 1), torch.tensor([0, 1, 1, 0]).repeat(n // 4)
    training = Training(pair_noise(2, 0.4)).epoch(pair_noise(2, 0.5), *rows)
    np.testing.assert_allclose(training.kept, pair_noise(2, kept), atol=1e-6)


def test_one_row_decides_nothing(recwarn):
    training = Training(pair_noise(2, 0.4)).epoch(np.eye(2), torch.tensor([[9.0, 0.0]]), torch.tensor([0]))
    np.testing.assert_allclose(training.kept, pair_noise(2, 0.4), atol=1e-6)
    assert not recwarn


def test_a_network_that_is_not_sure_yet_does_not_ask_for_another_T():
    """With its probabilities as they are, a T with less noise is more likely than the true one."""
    true, less = symmetric_noise(3, 0.4), symmetric_noise(3, 0.1)
    logits, labels = outputs(T=true)
    unsure = logits / 8
    at_less, at_true = (corrected_cross_entropy(unsure, labels, torch.tensor(T).log().float()) for T in (less, true))
    assert at_less < at_true - 0.02
    np.testing.assert_allclose(Training(true).epoch(less, unsure, labels).kept, true, atol=1e-6)


def test_an_epoch_that_fits_worse_than_the_best_decides_nothing():
    logits, labels = outputs()
    training = Training(pair_noise(3, 0.2)).epoch(pair_noise(3, 0.4), logits, labels)
    training.epoch(pair_noise(3, 0.3), torch.zeros_like(logits), labels)  # the network has forgotten all
    np.testing.assert_allclose(training.kept, pair_noise(3, 0.4), atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16, torch.bfloat16])
def test_small_moves_are_told_apart_in_any_precision(dtype):
    training, kept = Training(pair_noise(3, 0.2)), 0
    for rate in np.linspace(0.2, 0.35, 41)[1:]:
        training.epoch(pair_noise(3, rate), *outputs(dtype))
        kept += np.isclose(training.kept[0, 1], rate, atol=1e-5)
    assert kept == 40
