"""Bad parameters of classifiers. Each is tried with all classes that have it."""

from attacks.modules import MODULES
from attacks.problem import Case, T, changed
from torch import nn, optim

NAN, INF = float("nan"), float("inf")
NUMBER, INTEGER = "give a number|finite|== -|must be <= 1", "give an integer|give at least"


def _cases(name, words, values):
    return [Case(f"{name}={value!r:.40}", "fit", {name: value}, words) for value in values]


NUMBERS = [
    case
    for name in (
        "lr",
        "transition_lr",
        "weight_lr",
        "revision_lr",
        "fine_tuning_lr",
        "inner_lr",
        "q",
    )
    for case in _cases(name, NUMBER, ["0.1", -1.0, NAN, INF, 1j, True, [0.1]])
]
COUNT_NAMES = """
    batch_size warm_up_epochs meta_batch_size
"""
COUNT_FROM_0_NAMES = "max_epochs fine_tuning_epochs truncation_start"
COUNTS = [
    case
    for names, least in ((COUNT_NAMES, 1), (COUNT_FROM_0_NAMES, 0))
    for name in names.split()
    for case in _cases(name, INTEGER, ["3", -3, least - 1, 2.5, True, 1j, [3]])
]
FRACTIONS = _cases("validation_fraction", "give a number|must be < 1|== -|finite", [1.0, -0.1, "0.1", NAN, 1j, True])
FLAGS = [
    case
    for name in ("select_epochs", "select_classifier", "from_warm_up")
    for case in _cases(name, "give True or False", ["no", 1, 0.0, [True]])
]
OPTIMIZERS = [
    case
    for name in ("optimizer", "transition_optimizer")
    for case in _cases(name, f"{name}=.*give a class", ["sdg", optim.SGD([nn.Parameter()]), nn.Linear, 3])
]
STARTS = [
    Case("a start of no name", "fit", {"transition_init": "best"}, "valid are"),
    Case("a start of two classes", "fit", {"transition_init": [[1, 0], [0, 1]]}, "there are 3 classes"),
    Case("a start as text", "fit", {"transition_init": [["1", "0"], ["0", "1"]]}, "not an array of numbers"),
    Case("a start that is not square", "fit", {"transition_init": T[:2]}, "square"),
    Case("a start with a NaN", "fit", {"transition_init": changed(T, (0, 0), NAN)}, "NaN"),
    Case("a complex start", "fit", {"transition_init": T + 0j}, "complex"),
    Case("a transposed start", "fit", {"transition_init": [[0.9, 0.3], [0.1, 0.7]]}, "transpose"),
    Case("a start of logits", "fit", {"transition_init": T * 5}, "sum to 1"),
    Case("a start that is a number", "fit", {"transition_init": 0.3}, "square"),
    Case("a start of counts that are not known", "fit", {"transition_init": "count"}, "y_meta_noisy"),
]
OFMETHODS = [
    *_cases("truncation", "probability|give a number|truncation ==", [0.0, 1.0, 1.5, "0.5", NAN]),
    *_cases("q", "q ==|give a number", [1.1]),
    *_cases("anchor_percentile", "percentile", [0, 101, "all", -1, 1j]),
    *_cases("cv", "give an integer|give at least", [1, 0, "3", 2.5]),
    *_cases("n_jobs", "number of processes", [0, "2", 1.5, True]),
    *_cases("meta_weight", "give a number|>= 0|finite", ["balanced", NAN, -1.0, INF, 1j]),
    *_cases("calibration_weight", "above 0", ["balanced", 0, NAN, -1.0, INF, 1j, True, [1.0], None]),
    *_cases("prior_strength", "strength", ["strong", -1.0, NAN, INF, 1j]),
    *_cases("transition_prior", "prior", ["uniform", [0, 1], [[1, 0], [0, 1]], [0, 1, NAN], [0, 1, 1j]]),
]
OF_NETS = [
    *_cases("device", "cannot be used", ["gpu", "cuda:99", "meta", 3.5, "tpu"]),
    *_cases("dtype", "give 'auto'", ["float", "float33", float, "complex64", "bool", "cat", 3, "nn"][1:]),
    *_cases("batch_transform", "give a function", ["flip", 3]),
    *_cases("verbose", r"give 0 \(silent\)", ["loud", None, 0.5]),
    *_cases("random_state", "seed|Seed", ["zero", -1, 0.5, 2**40, [[1, 2], ["a"]]][:4]),
    *_cases("callbacks", "list of", ["disable", 3, [3], [("name",)], [("a", 3)], [nn.Linear], [None]]),
    *_cases("module", "give an nn.Module", ["mpl", 3, [nn.Linear(4, 3)], int, {"hidden": 3}]),
    *(Case(name, "fit", {"module": module}, words) for name, module, words in MODULES),
    Case("a class of scikit-learn", "fit", {"module": optim.SGD}, "give an nn.Module"),
    Case("parameters of an instance", "fit", {"module": nn.Linear(4, 3), "module__hidden": 3}, "is an instance"),
    Case("a callback of no name", "fit", {"callbacks__nobody__patience": 3}, "no such callback"),
    Case("a split as text", "fit", {"train_split": "half"}, "give a function"),
    Case("an unknown option", "fit", {"optimizer__speed": 3}, "unexpected keyword argument"),
    Case("an unknown part of the MLP", "fit", {"module__depth": 3}, "unexpected keyword argument"),
]
UNKNOWN = [
    Case(f"{target} {name}", target, {name: 1}, words)
    for target in ("constructor", "set_params")
    for name, words in (
        ("max_epoch", "Did you mean 'max_epochs'"),
        ("modul__hidden", "Did you mean 'module__hidden'"),
        ("optimizer_momentum", "no parameter 'optimizer_momentum'. Did you mean 'optimizer"),
        ("criterion", "sets 'criterion' itself"),
        ("classes", "sets 'classes' itself"),
        ("warm_start", "sets 'warm_start' itself"),
        ("predict_nonlinearity", "sets 'predict_nonlinearity' itself"),
        ("nonsense", "no parameter 'nonsense'"),
    )
]
CASES = [*NUMBERS, *COUNTS, *FRACTIONS, *FLAGS, *OPTIMIZERS, *STARTS, *OFMETHODS, *OF_NETS, *UNKNOWN]
