"""Modules that do not return one logit per class and row."""

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


# name, module, words of the message
MODULES = [
    ("softmax", nn.Sequential(nn.Linear(4, 3), nn.Softmax(1)), "returns probabilities"),
    ("softmax in a function", _Function(lambda z: z.softmax(1)), "returns probabilities"),
    ("logits per class first", _Function(lambda z: z.T), "one logit per class"),
    ("two classes", nn.Linear(4, 2), "one logit per class"),
    ("one output", nn.Linear(4, 1), "one logit per class"),
    ("no second axis", _Function(lambda z: z[:, 0]), "one logit per class"),
    ("a third axis", _Function(lambda z: z[:, :, None]), "one logit per class"),
    ("a tuple", _Function(lambda z: (z, z)), "returns shape tuple"),
    ("a dict", _Function(lambda z: {"logits": z}), "returns shape dict"),
    ("nothing", _Function(lambda z: None), "returns shape NoneType"),
    ("classes", _Function(lambda z: z.argmax(1)), "one logit per class"),
    ("integers", _Function(lambda z: z.long()), "floating-point logits"),
    ("one row for the batch", _Function(lambda z: z.mean(0, keepdim=True)), "one logit per class"),
    ("NaN", _Function(lambda z: z * float("nan")), "NaN or infinite logits"),
    ("infinity", _Function(lambda z: z.abs() * float("inf")), "NaN or infinite logits"),
    ("a weight that is NaN", _spoilt(float("nan")), "initial weights that are not finite"),
    ("a weight that is infinite", _spoilt(float("inf")), "initial weights that are not finite"),
    ("other features", nn.Linear(5, 3), "does not accept a batch"),
    ("images", nn.Conv2d(3, 3, 3), "does not accept a batch"),
    ("no forward pass", nn.ModuleList([nn.Linear(4, 3)]), "does not accept a batch"),
    ("frozen", _frozen(), "no trainable parameter"),
    ("no weight", nn.Identity(), "no trainable parameter"),
    ("a scikit-learn instance", LogisticRegression(), "'module' parameter of"),
    ("a scikit-learn class", LogisticRegression, "Pass an nn.Module"),
]
