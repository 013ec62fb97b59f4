"""Rules that hold for every classifier."""

import inspect
import pickle
import re
import warnings

import numpy as np
import page_methods
import pandas as pd
import pytest
import torch
from estimators import (
    CLASSIFIERS,
    NEED_CLEAN_DATA,
    SELF_CLEANED,
    WITH_TRANSITION,
    WITHOUT_CLEAN_DATA,
    small,
)
from numpydoc.docscrape import NumpyDocString
from sklearn.base import clone
from sklearn.datasets import load_iris
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, StratifiedKFold, cross_val_predict, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator
from skorch.callbacks import Callback
from torch import nn
from training import assert_same, fit, refused

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    GLCClassifier,
    MetaTransitionClassifier,
    make_transition_scorer,
)
from noisytransition.methods import METHODS
from noisytransition.transition import label_posterior

every = pytest.mark.parametrize("cls", CLASSIFIERS)
# without and with clean data, with several networks, and one of the docs: for what all inherit from the same base
SOME = [CrossEntropyClassifier, GLCClassifier, EMTransitionClassifier, page_methods.EpochEMClassifier]
some = pytest.mark.parametrize("cls", SOME)
# checks of scikit-learn whose outcome depends on the method; all others are of what the base class reads
OF_METHOD = re.compile(
    "check_(classifiers_|fit_idempotent|estimators_pickle|estimators_overwrite|methods_|dict_unchanged|no_attributes"
    "|parameters_default|get_params|set_params|fit_check_is_fitted|do_not_raise)"
)


def with_options(options):
    """Some classifiers with the first option, and one classifier with each of the others."""
    return [*((cls, options[0]) for cls in SOME), *((GLCClassifier, option) for option in options[1:])]


def is_own(cls):
    """Return whether a class or its base is in the library; classes of the docs inherit its interface."""
    return any(base in METHODS.values() for base in cls.__mro__)


def checked(cls, max_epochs=3):
    """Create a classifier with fewer epochs and trainings than the default."""
    few = {"cv": 2, "fine_tuning_epochs": 4, "warm_up_epochs": (max_epochs + 1) // 2}
    fewer = {name: value for name, value in few.items() if name in cls._get_param_names()}
    return cls(max_epochs=max_epochs, batch_size=32, optimizer="sgd", lr=0.5, random_state=0, **fewer)


def checks_of_scikit_learn():
    """All checks of one class without and one with clean data, and of the others those of the method."""
    for cls in WITHOUT_CLEAN_DATA + SELF_CLEANED:
        if not is_own(cls):
            continue
        for estimator, check in estimator_checks_generator(checked(cls)):
            name = check.func.__name__
            if name.startswith("check_sample_weight_equivalence"):
                continue  # weights are drawing probabilities: equal in the mean; test_sample_weight.py has exact cases
            has_forms = name.startswith("check_estimator_sparse_") or "readonly_memmap" in check.keywords
            if issubclass(cls, GLCClassifier) or (
                not has_forms and (OF_METHOD.match(name) or cls is CrossEntropyClassifier)
            ):
                options = [f"{key}={value}" for key, value in check.keywords.items()]
                yield pytest.param(estimator, check, id="-".join([cls.__name__, name, *options]))


@pytest.mark.parametrize(("estimator", "check"), checks_of_scikit_learn())
def test_scikit_learn(estimator, check):
    check(estimator)


# ---------------------------------------------------------------------------- clean data
@some
def test_the_ways_to_give_clean_data_agree_to_the_bit(cls, blobs, plain):
    """test_verified_rows.py tests verified samples of X."""
    X, y, X_clean, y_clean, *_ = blobs
    both, labels = np.concatenate([X, X_clean]), np.concatenate([y, y_clean])
    is_clean = np.arange(len(both)) >= len(X)
    verified, given = (
        np.where(is_clean, labels, -1),
        [None if clean else y for y, clean in zip(labels, is_clean, strict=True)],
    )
    by_pair = plain(cls)
    assert_same(by_pair, small(cls).fit(X, y, X_clean=X_clean, y_clean=y_clean), X)
    assert_same(by_pair, small(cls).fit(both, given, y_verified=verified), X)


@pytest.mark.parametrize("cls", [cls for cls in NEED_CLEAN_DATA if not cls._does_without])
def test_without_clean_data_the_error_says_what_to_pass(cls, blobs):
    X, y = blobs[:2]
    with refused("needs clean data"):
        small(cls).fit(X, y)


def test_clean_rows_as_many_as_X_are_not_cut_in_a_search_as_a_pair(blobs):
    X, y, *_ = blobs
    meta, rows = (X[::-1], np.roll(y, 7)), np.arange(300)
    search = GridSearchCV(small(GLCClassifier), {"lr": [0.1]}, cv=[(rows[:150], rows[150:])], error_score="raise")
    search.fit(X, y, meta=meta)
    by_hand = small(GLCClassifier, lr=0.1).fit(X[:150], y[:150], meta=meta)
    assert search.cv_results_["split0_test_score"][0] == by_hand.score(X[150:], y[150:])
    with refused("150 labels"):
        by_hand.fit(X, y, meta=meta, y_clean_noisy=y[:150])


@some
def test_an_unscaled_clean_set_is_warned_of(cls, blobs):
    X, y, X_clean, y_clean, *_ = blobs
    with pytest.warns(UserWarning, match="not scaled in the same way"):
        small(cls).fit(X, y, meta=(X_clean + 100, y_clean))


@some
def test_clean_rows_that_are_in_X_are_warned_of(cls, blobs):
    X, y, X_clean, y_clean, *_ = blobs
    with pytest.warns(UserWarning, match=f"{len(X_clean)} of the .* also in X"):
        small(cls).fit(
            np.concatenate([X, X_clean]), np.concatenate([y, y_clean]), meta=(X_clean.astype(float), y_clean)
        )
    of_few_values = (np.abs(X) > 1).astype(float)  # rows are the same by chance
    with warnings.catch_warnings(record=True) as warned:
        small(cls).fit(of_few_values[10:], y[10:], meta=(of_few_values[:10], y[:10]))
    assert not [w for w in warned if "also in X" in str(w.message)]


# ---------------------------------------------------------------------------- labels and tables
@pytest.mark.parametrize(
    ("cls", "names"),
    with_options(
        [
            np.array(["ant", "bee", "cat"], dtype=object),
            np.array(["ant", "bee", "cat"]),
            np.array([-7, 10, 300]),
            np.array([1.0, 2.0, 3.0]),
        ]
    ),
)
def test_labels_of_any_kind(cls, blobs, plain, names):
    X, y, X_clean, y_clean, *_ = blobs
    named = small(cls).fit(X, names[y], meta=(X_clean, names[y_clean]))
    np.testing.assert_array_equal(named.classes_, names)
    assert_same(plain(cls), named, X)
    np.testing.assert_array_equal(named.predict(X), names[plain(cls).predict(X)])


@some
def test_bool_labels(cls, blobs):
    X, y, X_clean, y_clean, *_ = blobs
    clf, numbers = (small(cls).fit(X, kind(y > 0), meta=(X_clean, kind(y_clean > 0))) for kind in (np.asarray, np.intp))
    assert clf.predict(X).dtype == bool
    np.testing.assert_array_equal(clf.predict(X), numbers.predict(X).astype(bool))
    assert_same(clf, numbers, X)


@some
def test_integers_that_became_floats_are_the_same_classes(cls, blobs, plain):
    X, y, X_clean, y_clean, *_ = blobs
    clf = small(cls).fit(X, y, meta=(X_clean, y_clean.astype(float)))
    assert clf.classes_.dtype == y.dtype
    np.testing.assert_array_equal(clf.classes_, [0, 1, 2])
    assert_same(clf, plain(cls), X)


@every
def test_a_class_that_is_missing_from_the_noisy_or_from_the_clean_rows_is_a_class(cls, blobs):
    X, y, X_clean, y_clean, *_ = blobs
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        for noisy, clean in ((y != 2, y_clean >= 0), (y >= 0, y_clean != 2)):
            clf = small(cls).fit(X[noisy], y[noisy], meta=(X_clean[clean], y_clean[clean]))
            assert clf.classes_.tolist() == [0, 1, 2]
            assert clf.predict_proba(X).shape == (len(X), 3)


@some
def test_data_frames_are_checked_by_column(cls, blobs, plain):
    X, y, X_clean, y_clean, *_ = blobs
    columns = ["a", "b", "c", "d"]
    frame, meta = pd.DataFrame(X, columns=columns), pd.DataFrame(X_clean, columns=columns)
    clf = small(cls).fit(frame, pd.Series(y), meta=(meta, pd.Series(y_clean)))
    assert clf.feature_names_in_.tolist() == columns
    np.testing.assert_array_equal(clf.predict_proba(frame), plain(cls).predict_proba(X))
    with refused("feature names"):
        small(cls).fit(frame, y, meta=(meta[columns[::-1]], y_clean))
    with pytest.raises(ValueError, match="feature names"):
        clf.predict(frame[columns[::-1]])


@pytest.mark.parametrize(("cls", "dtype"), with_options(["string", "int64", "Int64", "category", "boolean"]))
def test_columns_of_a_data_frame_keep_their_labels(cls, blobs, plain, dtype):
    X, y, X_clean, y_clean, *_ = blobs
    y, y_clean = (labels > 0 if dtype == "boolean" else labels for labels in (y, y_clean))
    column, meta_column = (pd.Series(labels).astype(dtype) for labels in (y, y_clean))
    clf = small(cls).fit(X, column, meta=(X_clean, meta_column))
    assert clf.classes_.tolist() == sorted(column.unique())
    assert type(clf.classes_.tolist()[0]) is {"boolean": bool, "string": str}.get(dtype, int)
    assert_same(clf, small(cls).fit(X, y, meta=(X_clean, y_clean)) if dtype == "boolean" else plain(cls), X)


# ---------------------------------------------------------------------------- parameters
@every
def test_names_are_skorch_s_and_typos_are_met_at_once(cls):
    clf = cls(module__hidden=8, optimizer="sgd", lr=0.1, optimizer__momentum=0.9)
    assert clf.get_params()["module__hidden"] == 8
    assert clone(clf).set_params(module__hidden=4).get_params()["module__hidden"] == 4
    for name in ("modul__hidden", "max_epoch", "criterion", "criterion__weight", "classes", "warm_start"):
        with pytest.raises(TypeError, match=f"no parameter '{name}'"):
            cls(**{name: 1})
        with pytest.raises(ValueError, match=f"no parameter '{name}'"):
            clf.set_params(**{name: 1})


@every
def test_names_reach_the_net(cls, blobs):
    groups = []

    class Note(Callback):
        def on_train_begin(self, net, **kwargs):
            groups.append(net.optimizer_.param_groups[-1])

    given = {"momentum": 0.5, "weight_decay": 0.1}
    clf = fit(cls, blobs, module__hidden=12, **{f"optimizer__{k}": v for k, v in given.items()}, callbacks=[Note()])
    assert clf.net_.module_[1].out_features == 12
    assert given.items() <= groups[0].items()


def documented(cls):
    """Names in the section "Parameters" of a class, without ``**net_params``."""
    listed = NumpyDocString(inspect.getdoc(cls))["Parameters"]
    return {name for entry in listed for name in entry.name.split(", ") if not name.startswith("*")}


@every
def test_documented_parameters_survive_get_params_clone_and_set_params(cls):
    names = set().union(*(documented(base) for base in cls.__mro__ if base.__doc__ and base is not object))
    given, others = ({name: f"{value} {name}" for name in names} for value in ("one", "another"))
    clf = cls(**given)
    for same in (clf, clone(clf), clone(clone(clf).set_params(**others)).set_params(**given)):
        assert given.items() <= same.get_params().items()
        assert given == {name: getattr(same, name) for name in names}
    changed = clone(clf).set_params(**others)
    assert others.items() <= changed.get_params().items()
    assert given.items() <= clf.get_params().items()


class Widened:
    """A mixin with a parameter of its own."""

    def __init__(self, *args, width=1, **kwargs):
        super().__init__(*args, **kwargs)
        self.width = width


class Deep(CrossEntropyClassifier):
    def __init__(self, module="mlp", *, depth=2, **net_params):
        super().__init__(module, **net_params)
        self.depth = depth


class Wide(CrossEntropyClassifier):
    def __init__(self, module="mlp", *, width=3, lr=0.5, **net_params):
        super().__init__(module, lr=lr, **net_params)
        self.width = width


class DeepAndWide(Deep, Wide):
    pass


class WidenedDeep(Widened, Deep):
    pass


@pytest.mark.parametrize("cls", [DeepAndWide, WidenedDeep])
def test_parameters_of_all_parents_are_kept(cls):
    clf = clone(cls(depth=7, width=9, max_epochs=4).set_params(lr=0.25))
    assert {"depth": 7, "width": 9, "max_epochs": 4, "lr": 0.25}.items() <= clf.get_params().items()
    assert clf.set_params(width=8, depth=1).get_params()["width"] == 8
    assert "depth=1" in repr(clf)


def test_defaults_are_those_of_the_constructor_that_is_called():
    class Both(Deep, Wide):
        def __init__(self, module="mlp", **net_params):
            super().__init__(module, **net_params)

    assert {"lr": 0.5, "width": 3, "depth": 2}.items() <= Both().get_params().items()
    assert inspect.signature(Both.__init__).parameters["lr"].default == 0.5
    assert repr(Both()) == "Both()"


@pytest.mark.parametrize("cls", METHODS.values())
def test_every_parameter_is_documented_in_the_class_or_a_parent(cls):
    names = set().union(*(documented(base) for base in cls.__mro__ if base.__doc__ and base is not object))
    assert names == set(cls().get_params())


# ---------------------------------------------------------------------------- repeatable, copyable
@every
def test_a_seed_repeats_a_fit_to_the_bit_and_leaves_the_global_generators_alone(cls, blobs, plain):
    torch.manual_seed(5)
    before, numpy_before = torch.get_rng_state(), np.random.get_state()[1].copy()  # noqa: NPY002
    first = fit(cls, blobs)
    first.predict_proba(blobs[0])
    assert torch.equal(before, torch.get_rng_state())
    np.testing.assert_array_equal(numpy_before, np.random.get_state()[1])  # noqa: NPY002
    torch.manual_seed(6)
    assert_same(first, plain(cls), blobs[0])
    assert not np.array_equal(first.predict_proba(blobs[0]), fit(cls, blobs, random_state=1).predict_proba(blobs[0]))


@some
def test_without_a_seed_torch_s_global_one_decides(cls, blobs):
    fits = []
    for seed in (1, 1, 2):
        torch.manual_seed(seed)
        fits.append(fit(cls, blobs, random_state=None, max_epochs=1).predict_proba(blobs[0]))
    np.testing.assert_array_equal(fits[0], fits[1])
    assert not np.array_equal(fits[0], fits[2])


@every
def test_pickles_predict_the_same_and_hold_no_data(cls, blobs, plain):
    text = pickle.dumps(plain(cls))
    assert_same(plain(cls), pickle.loads(text), blobs[0])
    assert blobs[2][:5].tobytes() not in text
    assert blobs[0][:5].tobytes() not in text


@some
def test_a_module_instance_is_never_changed(cls, blobs):
    module = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    before = [p.clone() for p in module.parameters()]
    first = fit(cls, blobs, module=module)
    assert all(torch.equal(a, b) for a, b in zip(before, module.parameters(), strict=True))
    assert_same(first, fit(cls, blobs, module=module), blobs[0])


@some
def test_a_refit_that_fails_leaves_nothing_fitted(cls, blobs):
    X, y, X_clean, y_clean, *_ = blobs
    clf = fit(cls, blobs)
    with refused("NaN"):
        clf.fit(np.full_like(X, np.nan), y, meta=(X_clean, y_clean))
    with pytest.raises(NotFittedError):
        clf.predict(X)
    assert not hasattr(clf, "classes_")
    assert not hasattr(clf, "transition_matrix_")


# ---------------------------------------------------------------------------- searches and pipelines
@pytest.mark.xdist_group("workers")
@some
def test_searches_over_the_net_s_parameters_in_two_processes(cls, blobs):
    X, y, X_clean, y_clean, *_ = blobs
    grid = [
        {"lr": [0.01], "module__hidden": [8], "optimizer__momentum": [0.0]},
        {"lr": [0.1], "module__hidden": [16], "optimizer__momentum": [0.9]},
    ]
    serial, parallel = (
        GridSearchCV(small(cls), grid, cv=2, n_jobs=n, error_score="raise").fit(X, y, meta=(X_clean, y_clean))
        for n in (1, 2)
    )
    np.testing.assert_array_equal(serial.cv_results_["mean_test_score"], parallel.cv_results_["mean_test_score"])
    assert parallel.best_estimator_.net_.module_[1].out_features == parallel.best_params_["module__hidden"]


@some
def test_cross_validation_trains_on_the_other_folds_and_all_clean_rows(cls, blobs):
    X, y, X_clean, y_clean, *_ = blobs
    proba = cross_val_predict(small(cls), X, y, cv=2, method="predict_proba", params={"meta": (X_clean, y_clean)})
    for train, test in StratifiedKFold(2).split(X, y):
        by_hand = small(cls).fit(X[train], y[train], meta=(X_clean, y_clean))
        np.testing.assert_allclose(proba[test], by_hand.predict_proba(X[test]), rtol=1e-6)


IN_TWO_PROCESSES = pytest.param(MetaTransitionClassifier, 2, marks=pytest.mark.xdist_group("workers"))


@pytest.mark.parametrize(("cls", "n_jobs"), [*((cls, 1) for cls in WITH_TRANSITION), IN_TWO_PROCESSES])
def test_a_search_by_the_error_of_T_picks_the_smallest(cls, blobs, n_jobs):
    """T is fixed: by a step size of 0, in EM by a strong prior."""
    X, y, X_clean, y_clean, _, _, T = blobs
    starts = [T, np.eye(3) * 0.7 + 0.1, np.full((3, 3), 1 / 3)]
    fixed = {"transition_lr": 0.0, "revision_lr": 1e-30}
    matrix = "prior" if "prior" in cls().get_params() else "transition_init"
    search = GridSearchCV(
        small(cls, **{name: value for name, value in fixed.items() if name in cls().get_params()}),
        {matrix: starts},
        cv=2,
        n_jobs=n_jobs,
        scoring=make_transition_scorer(T),
    ).fit(X, y, meta=(X_clean, y_clean))
    assert np.array_equal(search.best_params_[matrix], T)
    if cls.__name__ not in ("EMTransitionClassifier", "EpochEMClassifier"):  # T is the same in all folds
        score = make_transition_scorer(T)(search, X, y)
        assert score == pytest.approx(search.cv_results_["mean_test_score"].max())


@some
def test_a_pipeline_scales_X_meta_with_routing(cls, blobs, routing):
    X, y, X_clean, y_clean, *_ = blobs
    pipe = make_pipeline(StandardScaler(), small(cls), transform_input=["X_clean"])
    X, X_clean = X * 50 + 7, X_clean * 50 + 7
    scaler = StandardScaler().fit(X)
    by_hand = small(cls).fit(scaler.transform(X), y, meta=(scaler.transform(X_clean), y_clean))
    assert_same(by_hand, pipe.fit(X, y, X_clean=X_clean, y_clean=y_clean)[-1], X)
    if cls is GLCClassifier:
        search = GridSearchCV(pipe, {"glcclassifier__lr": [0.1]}, cv=2, error_score="raise")
        assert_same(by_hand, search.fit(X, y, X_clean=X_clean, y_clean=y_clean).best_estimator_[-1], X)


@every
def test_iris(cls):
    X, y = load_iris(return_X_y=True)
    X = StandardScaler().fit_transform(X)
    clf = checked(cls, 15).set_params(lr=0.3)
    scores = cross_val_score(clf, X, y, cv=2, params={"meta": (X[::5], y[::5])})
    assert scores.mean() > 0.8


# ---------------------------------------------------------------------------- T, or none
@every
def test_only_methods_with_a_T_have_its_attributes(cls, plain):
    attributes = ("transition_matrix_", "transition_init_", "transition_history_", "noisy_class_counts_")
    attributes += ("predict_noisy_proba", "find_label_issues", "relabel", "transition_summary", "transition_interval")
    assert {hasattr(plain(cls), name) for name in attributes} == {cls in WITH_TRANSITION}


@pytest.mark.parametrize("cls", [cls for cls in CLASSIFIERS if cls not in WITH_TRANSITION])
def test_without_a_T_there_is_no_score_of_it(cls, blobs, plain):
    with pytest.raises(AttributeError, match="transition_matrix_"):
        make_transition_scorer(blobs[-1])(plain(cls))


@pytest.mark.parametrize("cls", WITH_TRANSITION)
def test_all_that_is_read_off_T_follows_from_it(cls, blobs, plain):
    X, y, clf = *blobs[:2], plain(cls)
    for matrix in (clf.transition_matrix_, clf.transition_init_, *clf.transition_history_):
        assert matrix.dtype == np.float64
        assert (matrix >= 0).all()
        np.testing.assert_allclose(matrix.sum(1), 1)
    np.testing.assert_array_equal(clf.transition_history_[0], clf.transition_init_)
    np.testing.assert_allclose(clf.predict_noisy_proba(X), clf.predict_proba(X) @ clf.transition_matrix_)
    posterior = clf.label_posterior(X, y)
    proba = getattr(clf, "oof_proba_", clf.predict_proba(X))
    np.testing.assert_allclose(posterior, label_posterior(proba, y, clf.transition_matrix_))
    assert set(clf.find_label_issues(X, y).position) == set(np.flatnonzero(posterior[np.arange(len(y)), y] < 0.5))
    np.testing.assert_array_equal(clf.relabel(X, y, threshold=0), posterior.argmax(axis=1))
    assert clf.noisy_class_counts_.sum() == pytest.approx(len(y))


@pytest.mark.parametrize("cls", WITHOUT_CLEAN_DATA)
def test_clean_rows_are_not_trained_on_where_they_are_not_needed(cls, blobs):
    """Each sample has its own one-hot column, so weights of unused samples keep their initial values."""
    y, y_clean = blobs[1], blobs[3]
    n, m = 60, 20
    rows = np.eye(n + m)
    module = nn.Linear(n + m, 3)
    before = module.weight.detach().numpy()[:, n:].copy()
    clf = (
        small(cls, module=module, optimizer="sgd", lr=0.1, optimizer__momentum=0.0, transition_init="diagonal")
        if cls in WITH_TRANSITION
        else (small(cls, module=module, optimizer="sgd", lr=0.1, optimizer__momentum=0.0))
    )
    clf.fit(rows[:n], y[:n], meta=(rows[n:], y_clean[:m]))
    after = clf.net_.module_.weight.detach().numpy()
    np.testing.assert_array_equal(after[:, n:], before)
    assert not np.array_equal(after[:, :n], module.weight.detach().numpy()[:, :n])
