"""Modules that do not return one logit per class and row."""

import torch
from sklearn.linear_model import LogisticRegression
from torch import nn


class _Function(nn.Module):
    """A linear layer, and a function of its outputs."""

    def __init__(self, function):
        super().__init__()
        self.layer, self.function = nn.Linear(4, 3), function

    def forward(self, x):
        return self.function(self.layer(x))


def _frozen():
    return nn.Linear(4, 3).requires_grad_(False)


def _spoilt(value):
    layer = nn.Linear(4, 3)
    layer.weight.data[0, 0] = value
    return layer


_NEVER_NEGATIVE = "no negative output"
_ALONE = "alone in the batch|batch of one row"
# name, module, words of the message
MODULES = [
    ("softmax", nn.Sequential(nn.Linear(4, 3), nn.Softmax(1)), "gives probabilities"),
    ("softmax in a function", _Function(lambda z: z.softmax(1)), "gives probabilities"),
    ("sigmoid", nn.Sequential(nn.Linear(4, 3), nn.Sigmoid()), _NEVER_NEGATIVE),
    ("sigmoid in a function", _Function(torch.sigmoid), _NEVER_NEGATIVE),
    ("exp", _Function(torch.exp), _NEVER_NEGATIVE),
    ("softplus", nn.Sequential(nn.Linear(4, 3), nn.Softplus()), _NEVER_NEGATIVE),
    ("ReLU", nn.Sequential(nn.Linear(4, 3), nn.ReLU()), _NEVER_NEGATIVE),
    ("squares", _Function(torch.square), _NEVER_NEGATIVE),
    ("softmax over rows", _Function(lambda z: z.softmax(0) - 0.5), _ALONE),
    ("centred over rows", _Function(lambda z: z - z.mean(0)), _ALONE),
    ("rows in another order", _Function(lambda z: z.flip(0)), _ALONE),
    ("statistics of the batch", nn.Sequential(nn.BatchNorm1d(4, track_running_stats=False), nn.Linear(4, 3)), _ALONE),
    ("logits per class first", _Function(lambda z: z.T), "one logit per class"),
    ("two classes", nn.Linear(4, 2), "one logit per class"),
    ("one output", nn.Linear(4, 1), "one logit per class"),
    ("no second axis", _Function(lambda z: z[:, 0]), "one logit per class"),
    ("a third axis", _Function(lambda z: z[:, :, None]), "one logit per class"),
    ("a tuple", _Function(lambda z: (z, z)), "output of shape tuple"),
    ("a dict", _Function(lambda z: {"logits": z}), "output of shape dict"),
    ("nothing", _Function(lambda z: None), "output of shape NoneType"),
    ("classes", _Function(lambda z: z.argmax(1)), "one logit per class"),
    ("integers", _Function(lambda z: z.long()), "logits are real numbers"),
    ("one row for the batch", _Function(lambda z: z.mean(0, keepdim=True)), "one logit per class"),
    ("NaN", _Function(lambda z: z * float("nan")), "NaN or infinite logits"),
    ("infinity", _Function(lambda z: z.abs() * float("inf")), "NaN or infinite logits"),
    ("a weight that is NaN", _spoilt(float("nan")), "weights that are not finite before any training"),
    ("a weight that is infinite", _spoilt(float("inf")), "weights that are not finite before any training"),
    ("other features", nn.Linear(5, 3), "cannot take a batch"),
    ("images", nn.Conv2d(3, 3, 3), "cannot take a batch"),
    ("no forward pass", nn.ModuleList([nn.Linear(4, 3)]), "cannot take a batch"),
    ("frozen", _frozen(), "no trainable parameter"),
    ("no weight", nn.Identity(), "no trainable parameter"),
    ("a scikit-learn instance", LogisticRegression(), "give an nn.Module"),
    ("a scikit-learn class", LogisticRegression, "give an nn.Module"),
]
