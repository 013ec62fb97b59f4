"""Every bad input raises an error that names the fault, before any training."""

import functools
import re
import warnings
from collections import Counter, defaultdict
from operator import attrgetter

import pytest
from attacks import of_data, of_functions, of_parameters
from attacks.problem import X_META, Y_META, X, Y
from estimators import CLASSIFIERS, small
from training import no_training

import noisytransition
import noisytransition.transition
from noisytransition import VerifiedKFold
from noisytransition.methods import METHODS as NAMED
from noisytransition.methods import NoisyLabelClassifier

OF_CLASSIFIERS = [*of_parameters.CASES, *of_data.CASES]
# good arguments of methods of a fitted classifier, of folds, and of fit
JUDGED = {"X": X, "y_noisy": Y}
METHODS = dict.fromkeys(("label_posterior", "label_quality", "find_label_issues", "relabel"), JUDGED)
METHODS |= {"predict": {"X": X}, "predict_proba": {"X": X}, "sample_weights": JUDGED}
FOLDS = {"y": Y, "y_verified": [0 if label == 0 else None for label in Y], "groups": None}
DATA = {"X", "y", "y_verified", "sample_weight", "meta", "X_clean", "y_clean", "y_clean_noisy"}


def classes_of(case):
    """Classifiers that a case can be tried with."""
    if case.target in ("constructor", "set_params"):
        return CLASSIFIERS
    if case.target in METHODS:
        return [cls for cls in CLASSIFIERS if hasattr(cls, case.target)]
    own = {name for name in case.given if name not in DATA and "__" not in name and name != "train_split"}
    takes = [cls for cls in CLASSIFIERS if own <= set(cls._get_param_names())]
    if not own <= set(NoisyLabelClassifier._get_param_names()):
        takes = [cls for cls in takes if cls in NAMED.values()]  # examples do not check parameters of their own
    return takes


@functools.cache
def fitted(cls):
    """A fitted classifier, to be made before `no_training`."""
    return small(cls, max_epochs=1).fit(X, Y, meta=(X_META, Y_META))


def fit(cls, given):
    arguments = {"X": X, "y": Y, "meta": (X_META, Y_META)}
    if {"X_clean", "y_clean", "y_verified"} & set(given) or hasattr(given.get("y"), "columns"):
        del arguments["meta"]
    arguments |= {name: value for name, value in given.items() if name in DATA}
    small(cls, **{name: value for name, value in given.items() if name not in DATA}).fit(**arguments)


def call(case, cls):
    given, target = case.given, case.target
    if target == "constructor":
        cls(**given)
    elif target == "set_params":
        cls().set_params(**given)
    elif target == "fit":
        fit(cls, given)
    elif target in METHODS:
        getattr(fitted(cls), target)(**METHODS[target] | given)
    elif target == "folds":
        of_split = FOLDS | {name: value for name, value in given.items() if name in FOLDS}
        folds = VerifiedKFold(**{"n_splits": 2} | {name: given[name] for name in given.keys() - FOLDS.keys()})
        list(folds.split(X, **of_split))
    else:
        attrgetter(target)(noisytransition)(*given["args"], **{k: v for k, v in given.items() if k != "args"})


def outcome(case, cls=None):
    """ "clear", or what is wrong: "silent", or "obscure" and the error."""
    if case.target in METHODS:
        fitted(cls)
    try:
        with warnings.catch_warnings(), no_training():
            warnings.simplefilter("ignore")
            call(case, cls)
    except (ValueError, TypeError, RuntimeError) as error:  # torch raises RuntimeError for tensors of other shapes
        return "clear" if re.search(case.words, str(error)) else f"obscure: {type(error).__name__}: {error}"
    except BaseException as error:  # a training fails by an outcome of pytest, which is no Exception
        return f"obscure: {type(error).__name__}: {error}"
    return "silent"


# cases by target, each with one of its classes: another for the next case
GROUPS = defaultdict(list)
for i, case in enumerate([*OF_CLASSIFIERS, *of_functions.CASES]):
    classes = classes_of(case) if i < len(OF_CLASSIFIERS) else [None]
    GROUPS[case.target].append((case, classes[i % len(classes)]))


@pytest.mark.parametrize("target", GROUPS)
def test_bad_inputs_get_clear_errors(target):
    found = {case.name: outcome(case, cls) for case, cls in GROUPS[target]}
    assert {name: what for name, what in found.items() if what != "clear"} == {}


@pytest.mark.slow
@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_every_class_gives_a_clear_error_for_every_bad_input(cls):
    found = {case.name: outcome(case, cls) for case in OF_CLASSIFIERS if cls in classes_of(case)}
    assert len(found) > 100
    assert {name: what for name, what in found.items() if what != "clear"} == {}


def test_no_case_is_listed_twice():
    names = Counter(case.name for case in [*OF_CLASSIFIERS, *of_functions.CASES])
    assert [name for name, n in names.items() if n > 1] == []
    assert len(names) >= 300
