"""Rules that hold for every classifier."""

import inspect
import pickle
import re
import warnings

import numpy as np
import pandas as pd
import pytest
import sklearn
import torch
from estimators import CLASSIFIERS, NEED_CLEAN_DATA, SELF_CLEANED, WITH_TRANSITION, WITHOUT_CLEAN_DATA, small
from numpydoc.docscrape import NumpyDocString
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator
from torch import nn
from training import On, assert_same, fit, refused

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, GLCClassifier, make_transition_scorer
from noisytransition.methods import METHODS
from noisytransition.transition import label_posterior

every = pytest.mark.parametrize("cls", CLASSIFIERS)
# without clean data, and with several networks: for what all inherit from the same base
some = pytest.mark.parametrize("cls", [CrossEntropyClassifier, EMTransitionClassifier])
# checks of scikit-learn whose outcome depends on the method; all others are of what the base class reads
OF_METHOD = re.compile(
    "check_(classifiers_|fit_idempotent|estimators_overwrite|methods_|dict_unchanged|no_attributes|parameters_default"
    "|do_not_raise)"
)


def checked(cls, max_epochs):
    """Create a classifier with fewer epochs and trainings than the default."""
    few = {"cv": 2, "fine_tuning_epochs": max_epochs + 1, "warm_up_epochs": (max_epochs + 1) // 2}
    fewer = {name: value for name, value in few.items() if name in cls._get_param_names()}
    return cls(max_epochs=max_epochs, batch_size=32, optimizer="sgd", lr=0.5, random_state=0, **fewer)


def checks_of_scikit_learn():
    """All checks of one class without and one with clean data, and of the others those of the method."""
    for cls in WITHOUT_CLEAN_DATA + SELF_CLEANED:
        if not any(base in METHODS.values() for base in cls.__mro__):
            continue  # classes of the docs inherit the interface of the library's
        for estimator, check in estimator_checks_generator(checked(cls, max_epochs=1)):
            name = check.func.__name__
            if name in ("check_classifiers_train", "check_classifiers_classes"):  # which ask for a good fit
                estimator = checked(cls, max_epochs=3)
            if name.startswith("check_sample_weight_equivalence"):
                continue  # weights are drawing probabilities: equal in the mean; test_sample_weight.py has exact cases
            has_forms = name.startswith("check_estimator_sparse_") or "readonly_memmap" in check.keywords
            if issubclass(cls, GLCClassifier) or (
                not has_forms and (OF_METHOD.match(name) or cls is CrossEntropyClassifier)
            ):
                options = [f"{key}={value}" for key, value in check.keywords.items()]
                yield pytest.param(estimator, check, id="-".join([cls.__name__, name, *options]))


@pytest.mark.parametrize(("estimator", "check"), [*checks_of_scikit_learn()])
def test_scikit_learn(estimator, check):
    check(estimator)


# ---------------------------------------------------------------------------- clean data
@pytest.mark.parametrize("cls", [cls for cls in NEED_CLEAN_DATA if cls is not EMTransitionClassifier])
def test_without_clean_data_the_error_says_what_to_pass(cls, blobs):
    X, y = blobs[:2]
    with refused("needs clean data"):
        small(cls).fit(X, y)


def test_clean_samples_as_many_as_X_are_not_cut_in_a_search_as_a_pair(blobs):
    X, y, *_ = blobs
    meta, rows = (X[::-1], np.roll(y, 7)), np.arange(300)
    search = GridSearchCV(small(GLCClassifier), {"lr": [0.1]}, cv=[(rows[:150], rows[150:])], error_score="raise")
    search.fit(X, y, meta=meta)
    by_hand = small(GLCClassifier, lr=0.1).fit(X[:150], y[:150], meta=meta)
    assert search.cv_results_["split0_test_score"][0] == by_hand.score(X[150:], y[150:])
    with refused("150 labels"):
        by_hand.fit(X, y, meta=meta, y_clean_noisy=y[:150])


@some
def test_clean_samples_that_are_not_scaled_or_in_X_are_warned_of(cls, blobs):
    X, y, X_clean, y_clean, *_ = blobs
    with pytest.warns(UserWarning, match="not scaled in the same way"):
        small(cls).fit(X, y, meta=(X_clean + 100, y_clean))
    both = np.concatenate([X, X_clean]), np.concatenate([y, y_clean])
    with pytest.warns(UserWarning, match=f"{len(X_clean)} of the .* also in X"):
        small(cls).fit(*both, meta=(X_clean.astype(float), y_clean))
    of_few_values = (np.abs(X) > 1).astype(float)  # samples are the same by chance
    with warnings.catch_warnings(record=True) as warned:
        small(cls).fit(of_few_values[10:], y[10:], meta=(of_few_values[:10], y[:10]))
    assert not [w for w in warned if "also in X" in str(w.message)]


# ---------------------------------------------------------------------------- labels and tables
NAMES = np.array(["ant", "bee", "cat"])


@pytest.mark.parametrize("cls", [EMTransitionClassifier, GLCClassifier])
def test_categories_and_strings_and_clean_data_by_keyword(cls, blobs, plain):
    """Other types of labels are in labels/test_read.py, verified samples of X in test_verified_rows.py."""
    X, y, X_clean, y_clean, *_ = blobs
    names = pd.Categorical(NAMES)
    strings = pd.Series(pd.array(NAMES, dtype="string")[y_clean])
    named = small(cls).fit(X, pd.Series(names[y]), X_clean=X_clean, y_clean=strings)
    assert named.classes_.tolist() == list(names)
    assert named.classes_.dtype == np.array(names).dtype
    assert_same(plain(cls), named, X)
    np.testing.assert_array_equal(named.predict(X), NAMES[plain(cls).predict(X)])
    relabelled = named.relabel(X, NAMES[y])
    assert relabelled.dtype == named.classes_.dtype
    np.testing.assert_array_equal(relabelled, NAMES[plain(cls).relabel(X, y)])


@every
def test_a_class_that_is_missing_from_the_noisy_or_from_the_clean_samples_is_a_class(cls, blobs):
    X, y, X_clean, y_clean, *_ = blobs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for noisy, clean in ((y != 2, y_clean >= 0), (y >= 0, y_clean != 2)):
            clf = small(cls, max_epochs=1).fit(X[noisy], y[noisy], meta=(X_clean[clean], y_clean[clean]))
            assert clf.classes_.tolist() == [0, 1, 2]
            assert clf.predict_proba(X).shape == (len(X), 3)


# ---------------------------------------------------------------------------- parameters
@every
def test_names_are_skorch_s_and_reach_the_net(cls, blobs):
    groups = []
    note = On(train_begin=lambda net, **kwargs: groups.append(net.optimizer_.param_groups[-1]))
    own = {"optimizer__momentum": 0.5, "optimizer__weight_decay": 0.1, "module__hidden": 8}
    clf = small(cls, optimizer="sgd", lr=0.1, callbacks=[note], max_epochs=1, **own)
    assert own.items() <= clf.get_params().items()
    clf.set_params(module__hidden=12).fit(*blobs[:2], meta=blobs[2:4])
    assert clf.net_.module_[1].out_features == 12
    assert {"momentum": 0.5, "weight_decay": 0.1}.items() <= groups[0].items()


@every
def test_documented_parameters_survive_get_params_clone_and_set_params(cls):
    documented = [NumpyDocString(inspect.getdoc(base))["Parameters"] for base in cls.__mro__[:-1] if base.__doc__]
    names = {name for listed in documented for entry in listed for name in entry.name.split(", ")}
    names = {name for name in names if not name.startswith("*")}  # without **net_params
    if cls in METHODS.values():
        assert names == set(cls().get_params())
    given = {name: f"a {name}" for name in names}
    for clf in (cls(**given), clone(cls(**given)), clone(cls()).set_params(**given)):
        assert given.items() <= clf.get_params().items()
        assert given == {name: getattr(clf, name) for name in names}


class Widened:
    """A mixin with a parameter of its own."""

    def __init__(self, *args, width=1, **kwargs):
        super().__init__(*args, **kwargs)
        self.width = width


class Both(GLCClassifier, EMTransitionClassifier):
    def __init__(self, module="mlp", *, lr=0.5, **net_params):
        super().__init__(module, lr=lr, **net_params)


class WidenedBoth(Widened, Both):
    pass


def test_parameters_and_defaults_are_those_of_all_parents():
    given = {"cv": 4, "transition_init": "anchor", "width": 9, "max_epochs": 4}
    clf = clone(WidenedBoth(**given).set_params(lr=0.25))
    assert (given | {"lr": 0.25}).items() <= clf.get_params().items()
    assert clf.set_params(width=8, cv=5).get_params()["width"] == 8
    assert "cv=5" in repr(clf)
    assert {"lr": 0.5, "width": 1, "cv": 3, "transition_init": "gold"}.items() <= WidenedBoth().get_params().items()
    assert inspect.signature(Both.__init__).parameters["lr"].default == 0.5
    assert repr(Both()) == "Both()"


def test_all_methods_but_em_are_published_and_parameters_can_be_set_instead():
    published = [cls.as_published() for name, cls in METHODS.items() if name != "EM"]
    assert [clf.optimizer for clf in published] == ["sgd"] * 9
    clf = GLCClassifier.as_published(max_epochs=2, optimizer="adam")
    assert (clf.max_epochs, clf.optimizer, clf.lr) == (2, "adam", GLCClassifier().lr)
    with pytest.raises(TypeError, match="implement a paper"):
        EMTransitionClassifier.as_published()


# ---------------------------------------------------------------------------- repeatable, copyable
@every
def test_a_seed_repeats_a_fit_to_the_bit_and_leaves_the_global_generators_alone(cls, blobs, plain):
    torch.manual_seed(5)
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first = fit(cls, blobs)
    proba = first.predict_proba(blobs[0])
    first.net_.predict_proba(blobs[0].astype(np.float32))
    assert torch.equal(before, torch.get_rng_state())
    np.testing.assert_array_equal(numpy_before, np.random.get_state()[1])  # noqa: NPY002
    torch.manual_seed(6)
    assert_same(first, plain(cls), blobs[0])
    assert_same(first, pickle.loads(pickle.dumps(first)), blobs[0])
    assert not np.array_equal(proba, fit(cls, blobs, random_state=1, max_epochs=1).predict_proba(blobs[0]))


@some
def test_without_a_seed_torch_s_global_one_decides(cls, blobs):
    fits = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        fits.append(fit(cls, blobs, random_state=None, max_epochs=1).predict_proba(blobs[0]))
    np.testing.assert_array_equal(fits[0], fits[1])
    assert not np.array_equal(fits[0], fits[2])


@some
def test_a_module_instance_is_never_changed(cls, blobs):
    module = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    before = [p.clone() for p in module.parameters()]
    first = fit(cls, blobs, module=module)
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))
    assert_same(first, fit(cls, blobs, module=module), blobs[0])


@some
def test_a_refit_that_fails_leaves_nothing_fitted(cls, blobs):
    X, y, *meta = blobs[:4]
    clf = fit(cls, blobs)
    with refused("NaN"):
        clf.fit(np.full_like(X, np.nan), y, meta=meta)
    with pytest.raises(NotFittedError):
        clf.predict(X)
    assert not hasattr(clf, "classes_")
    assert not hasattr(clf, "transition_matrix_")


# ---------------------------------------------------------------------------- searches and pipelines
@sklearn.config_context(enable_metadata_routing=True)
def test_a_pipeline_scales_X_meta_with_routing(blobs):
    X, y, X_clean, y_clean, *_ = blobs
    pipe = make_pipeline(StandardScaler(), small(GLCClassifier), transform_input=["X_clean"])
    X, X_clean = X * 50 + 7, X_clean * 50 + 7
    scaler = StandardScaler().fit(X)
    by_hand = small(GLCClassifier).fit(scaler.transform(X), y, meta=(scaler.transform(X_clean), y_clean))
    assert_same(by_hand, pipe.fit(X, y, X_clean=X_clean, y_clean=y_clean)[-1], X)
    search = GridSearchCV(pipe, {"glcclassifier__lr": [0.1]}, cv=2, error_score="raise")
    assert_same(by_hand, search.fit(X, y, X_clean=X_clean, y_clean=y_clean).best_estimator_[-1], X)


# ---------------------------------------------------------------------------- T, or none
@every
def test_all_that_is_read_off_T_follows_from_it_and_other_methods_have_none_of_it(cls, blobs, plain):
    X, y, clf = *blobs[:2], plain(cls)
    attributes = ["transition_matrix_", "transition_init_", "transition_history_", "noisy_class_counts_"]
    methods = ["predict_noisy_proba", "find_label_issues", "relabel", "transition_summary", "transition_interval"]
    of_T = {hasattr(clf, name) for name in [*attributes, *methods, "noise_report"]}
    assert of_T == {cls in WITH_TRANSITION}
    if cls not in WITH_TRANSITION:
        with pytest.raises(AttributeError, match=f"'{cls.__name__}' object has no attribute 'transition_matrix_'"):
            make_transition_scorer(blobs[-1])(clf)
        return
    for matrix in (clf.transition_matrix_, clf.transition_init_, *clf.transition_history_):
        assert matrix.dtype == np.float64
        assert (matrix >= 0).all()
        np.testing.assert_allclose(matrix.sum(1), 1)
    np.testing.assert_array_equal(clf.transition_history_[0], clf.transition_init_)
    np.testing.assert_allclose(clf.predict_noisy_proba(X), clf.predict_proba(X) @ clf.transition_matrix_)
    assert clf.noisy_class_counts_.sum() == pytest.approx(len(y))
    proba = getattr(clf, "oof_proba_", clf.predict_proba(X))
    np.testing.assert_allclose(clf.label_posterior(X, y), label_posterior(proba, y, clf.transition_matrix_))
