"""Try a case with a class, and describe the result."""

import re
import warnings
from operator import attrgetter

from attacks import of_data, of_functions, of_parameters, of_tools
from attacks.problem import X_META, Y_META, X, Y
from estimators import CLASSIFIERS, small
from training import no_training

import noisytransition
import noisytransition.transition
from noisytransition import VerifiedKFold
from noisytransition.methods import METHODS as NAMED
from noisytransition.methods import NoisyLabelClassifier

OF_CLASSIFIERS = [*of_parameters.CASES, *of_data.CASES]
OF_FUNCTIONS = [*of_functions.CASES, *of_tools.CASES]
# methods of a fitted classifier, and their good arguments
METHODS = {
    "predict": {"X": X},
    "predict_proba": {"X": X},
    "label_posterior": {"X": X, "y_noisy": Y},
    "label_quality": {"X": X, "y_noisy": Y},
    "find_label_issues": {"X": X, "y_noisy": Y},
    "relabel": {"X": X, "y_noisy": Y},
    "sample_weights": {"X": X, "y_noisy": Y},
}
_FOLDS = {
    "n_splits": 2,
    "shuffle": False,
    "random_state": None,
    "y": Y,
    "y_verified": [0 if label == 0 else None for label in Y],
    "groups": None,
}
# arguments of fit
DATA = {"X", "y", "y_verified", "meta", "X_clean", "y_clean", "y_clean_noisy"}
_fitted = {}


def classes_of(case):
    """Classifiers that a case can be tried with."""
    if case.target in ("constructor", "set_params"):
        return CLASSIFIERS
    if case.target in METHODS:
        return [cls for cls in CLASSIFIERS if hasattr(cls, case.target)]
    own = set(case.given) - DATA
    free = {name for name in own if "__" in name or name == "train_split"}
    takes = [cls for cls in CLASSIFIERS if own - free <= set(cls._get_param_names())]
    if not own - free <= set(NoisyLabelClassifier._get_param_names()):
        takes = [cls for cls in takes if cls in NAMED.values()]  # examples do not check parameters of their own
    return takes


def outcome(case, cls=None):
    """ "clear", or what is wrong: "silent", or "obscure" and the error."""
    try:
        with warnings.catch_warnings(), no_training():
            warnings.simplefilter("ignore")
            _call(case, cls)
    except (ValueError, TypeError, RuntimeError) as error:  # torch raises RuntimeError for tensors of other shapes
        return "clear" if re.search(case.words, str(error)) else f"obscure: {type(error).__name__}: {error}"
    except BaseException as error:  # a training fails by an outcome of pytest, which is no Exception
        if "a net was trained" in str(error):
            return "silent: a net was trained"
        return f"obscure: {type(error).__name__}: {error}"
    return "silent"


def _call(case, cls):
    given, target = case.given, case.target
    if target == "constructor":
        cls(**given)
    elif target == "set_params":
        cls().set_params(**given)
    elif target == "fit":
        _fit(cls, given)
    elif target in METHODS:
        getattr(fitted(cls), target)(**(METHODS[target] | given))
    elif target == "folds":
        given = _FOLDS | given
        labels = {name: given.pop(name) for name in ("y", "y_verified", "groups")}
        list(VerifiedKFold(**given).split(X, **labels))
    else:
        attrgetter(target)(noisytransition)(*given["args"], **{k: v for k, v in given.items() if k != "args"})


def _fit(cls, given):
    arguments = {"X": X, "y": Y, "meta": (X_META, Y_META)}
    if {"X_clean", "y_clean", "y_verified"} & set(given) or hasattr(given.get("y"), "columns"):
        del arguments["meta"]
    arguments |= {name: value for name, value in given.items() if name in DATA}
    small(cls, **{name: value for name, value in given.items() if name not in DATA}).fit(**arguments)


def fitted(cls):
    """A fitted classifier, made once; to be made before `no_training`."""
    if cls not in _fitted:
        _fitted[cls] = small(cls, max_epochs=1).fit(X, Y, meta=(X_META, Y_META))
    return _fitted[cls]
