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


# name, module, words of the message
MODULES = [
    ("softmax in a function", _Function(lambda z: z.softmax(1)), "returns probabilities"),
    ("logits per class first", _Function(lambda z: z.T), "one logit per class"),
    ("two classes", nn.Linear(4, 2), "one logit per class"),
    ("no second axis", _Function(lambda z: z[:, 0]), "one logit per class"),
    ("a tuple", _Function(lambda z: (z, z)), "returns shape tuple"),
    ("nothing", _Function(lambda z: None), "returns shape NoneType"),
    ("classes", _Function(lambda z: z.argmax(1)), "one logit per class"),
    ("one row for the batch", _Function(lambda z: z.mean(0, keepdim=True)), "one logit per class"),
    ("NaN", _Function(lambda z: z * float("nan")), "NaN or infinite logits"),
    ("other features", nn.Linear(5, 3), "does not accept a batch"),
    ("no forward pass", nn.ModuleList([nn.Linear(4, 3)]), "does not accept a batch"),
    ("no weight", nn.Identity(), "empty parameter list"),
    ("a scikit-learn instance", LogisticRegression(), "'module' parameter of"),
]
