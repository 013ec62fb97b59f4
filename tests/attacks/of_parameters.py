"""Bad parameters of classifiers. Each is tried with all classes that have it."""

from attacks.problem import X_META, Y_META, Case
from skorch.callbacks import EarlyStopping
from torch import nn, optim

NAN, INF = float("nan"), float("inf")


def _cases(name, values, words=None):
    """Values that a parameter cannot have; the error of scikit-learn's own check names the parameter."""
    words = rf"'{name}' parameter of" if words is None else words
    return [Case(f"{name}={value!r:.40}", "fit", {name: value}, words) for value in values]


# names of parameters, and values that none of them can have
PARAMETERS = [
    (
        "lr transition_lr weight_lr revision_lr fine_tuning_lr inner_lr q clean_weight",
        ["0.1", -1.0, NAN, INF, 1j, [0.1]],
    ),
    ("lr inner_lr weight_lr revision_lr fine_tuning_lr batch_size warm_up_epochs meta_batch_size", [0]),
    ("batch_size warm_up_epochs meta_batch_size", ["3", -3, 2.5, 1j, [3]]),
    ("max_epochs fine_tuning_epochs truncation_start", ["3", -3, -1, 2.5, 1j, [3]]),
    ("from_warm_up normalize refit", ["no", 0.5, [True]]),
]
OF_KINDS = [case for names, values in PARAMETERS for name in names.split() for case in _cases(name, values)]
OPTIMIZERS = [
    *_cases("optimizer", ["sdg", optim.SGD([nn.Parameter()]), 3]),
    *_cases("optimizer", [nn.Linear], "unexpected keyword argument 'lr'"),
]
STARTS = [
    *_cases("transition_init", ["best", 0.3]),
    Case("a start of two classes", "fit", {"transition_init": [[1, 0], [0, 1]]}, "there are 3 classes"),
    Case("a start of clean rows that are not there", "fit", {"transition_init": "gold", "meta": None}, "clean data"),
    Case("a start of counts that are not known", "fit", {"transition_init": "count"}, "y_clean_noisy"),
]
OF_METHODS = [
    *_cases("truncation", [0.0, 1.0, 1.5, "0.5", NAN]),
    *_cases("validation_fraction", [1.0, -0.1, "0.1", NAN, 1j]),
    *_cases("anchor_percentile", [0, 101, "all", -1, 1j], "percentile"),
    *_cases("cv", [1, 0, "3", 2.5]),
    *_cases("cv", [70], "cv=70"),
    *_cases("n_jobs", [0, "2", 1.5]),
    *_cases("verified_sampling", ["by_class", None]),
    Case(
        "by class but in order", "fit", {"verified_sampling": "stratified", "iterator_train__shuffle": False}, "shuffle"
    ),
    Case(
        "by class without one class",
        "fit",
        {"verified_sampling": "stratified", "meta": (X_META[Y_META < 2], Y_META[Y_META < 2])},
        "clean samples of each class",
    ),
    *_cases("prior", ["uniform", [0, 1], [[1, 0], [0, 1]], [0, 1, NAN], [0, 1, 1j]], "prior"),
]


class _Function(nn.Module):
    """A linear layer, and a function of its outputs."""

    def __init__(self, function):
        super().__init__()
        self.layer, self.function = nn.Linear(4, 3), function

    def forward(self, x):
        return self.function(self.layer(x))


# modules that do not return one logit per class and row, and words of the message
MODULES = [
    ("softmax in a function", _Function(lambda z: z.softmax(1)), "returns probabilities"),
    ("two classes", nn.Linear(4, 2), "one logit per class"),
    ("a tuple", _Function(lambda z: (z, z)), "returns shape tuple"),
    ("NaN", _Function(lambda z: z * float("nan")), "NaN or infinite logits"),
    ("other features", nn.Linear(5, 3), "does not accept a batch"),
    ("no weight", nn.Identity(), "empty parameter list"),
]
OF_NETS = [
    *_cases("device", ["gpu", "cuda:99", "meta", 3.5, "tpu"], "cannot be used"),
    *_cases("dtype", ["float33", float, "complex64", "bool", "cat", 3, "nn"]),
    *_cases("precision", ["float16", None, 16]),
    *_cases("batch_transform", ["flip", 3]),
    *_cases("train_split", ["half"]),
    *_cases("verbose", ["loud", None, 0.5]),
    *_cases("random_state", ["zero", -1, 0.5, 2**40]),
    *_cases("callbacks", ["disable", 3]),
    *_cases("module", ["mpl", 3, [nn.Linear(4, 3)], {"hidden": 3}, None]),
    *(Case(name, "fit", {"module": module}, words) for name, module, words in MODULES),
    Case("parameters of an instance", "fit", {"module": nn.Linear(4, 3), "module__hidden": 3}, "is an instance"),
    Case("a callback of no name", "fit", {"callbacks__nobody__patience": 3}, "no callback"),
    Case("a callback of the library's", "fit", {"callbacks__update": None}, "no callback"),
    Case("a score of rows that are not held out", "fit", {"callbacks": [EarlyStopping()]}, "train_split"),
    Case("an unknown option", "fit", {"optimizer__speed": 3}, "unexpected keyword argument"),
    Case("an unknown part of the MLP", "fit", {"module__depth": 3}, "unexpected keyword argument"),
]
UNKNOWN = [
    Case(f"{target} {name}", target, {name: 1}, f"no parameter '{name}'")
    for target in ("constructor", "set_params")
    for name in ("max_epoch", "modul__hidden", "optimizer_momentum", "criterion", "classes", "warm_start")
]
CASES = [*OF_KINDS, *OPTIMIZERS, *STARTS, *OF_METHODS, *OF_NETS, *UNKNOWN]
