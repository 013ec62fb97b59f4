"""Rows and labels in the forms that users have: which of them are refused, and by what message."""

import warnings
from functools import partial
from itertools import product

import numpy as np
import pandas as pd
import pytest
import torch
from estimators import NEED_CLEAN_DATA, small
from torch.utils.data import TensorDataset
from training import refused

from noisytransition import ForwardClassifier, GLCClassifier, MWNetClassifier, find_label_issues, transition_error


# ---------------------------------------------------------------------------- rows
@pytest.mark.parametrize("cls", NEED_CLEAN_DATA)
@pytest.mark.parametrize("wrap", [lambda X: X, lambda X: TensorDataset(torch.tensor(X))])
def test_clean_rows_of_another_shape_are_refused(cls, wrap):
    images, y = np.random.default_rng(0).normal(size=(60, 2, 3)).astype(np.float32), np.arange(60) % 2
    with refused(r"rows of X_meta have the shape \(2, 2\), and rows of X \(2, 3\); give all the same"):
        small(cls).fit(wrap(images), y, meta=(images[:20, :, :2], y[:20]))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda X: np.where(np.arange(X.size).reshape(X.shape) == 0, np.nan, X), "Input X_meta contains NaN"),
        (lambda X: X[:, :1], "X_meta has 1 features"),
        (lambda X: X[:0], "X_meta: Found array with 0 sample"),
    ],
)
def test_errors_of_clean_rows_name_them(change, message, blobs):
    X, y, X_meta, y_meta, *_ = blobs
    with refused(message):
        small(GLCClassifier).fit(X, y, meta=(change(X_meta), y_meta[: len(change(X_meta))]))


def test_nan_in_a_tensor_dataset_is_found(blobs):
    X, y, X_meta, y_meta, *_ = blobs
    wrong = torch.tensor(X)
    wrong[20, 1] = torch.nan
    with refused("X contains NaN or infinity"):
        small(GLCClassifier).fit(TensorDataset(wrong), y, meta=(X_meta, y_meta))


@pytest.mark.parametrize("wrap", [list, np.array, pd.Series])
def test_texts_are_refused_with_what_to_do(wrap):
    y = np.arange(20) % 2
    with refused("X has text.*TfidfVectorizer"):
        small(GLCClassifier).fit(wrap(["a film", "a song"] * 10), y, trusted=np.arange(20) < 10)


# ---------------------------------------------------------------------------- labels
@pytest.mark.parametrize("kind", [bool, int, float])
@pytest.mark.parametrize("wrap", [partial(pd.Series, dtype=object), list, partial(np.array, dtype=object)])
def test_objects_are_labels_of_the_type_that_all_have(kind, wrap):
    values = (np.arange(30) % 2).astype(kind).tolist()
    X = np.random.default_rng(0).normal(size=(30, 2))
    clf = small(GLCClassifier, max_epochs=1).fit(X, wrap(values), trusted=np.arange(30) % 3 == 1)
    assert clf.classes_.tolist() == [kind(0), kind(1)]
    assert clf.classes_.dtype == np.array(values).dtype


def test_encoded_noisy_labels_beside_names_are_refused_with_what_encodes_them(blobs):
    X, y, X_meta, y_meta, *_ = blobs
    with refused("predict_proba.*LabelEncoder"):
        small(GLCClassifier).fit(X, y, meta=(X_meta, np.array(["a", "b", "c"])[y_meta]))


# ---------------------------------------------------------------------------- order


@pytest.mark.parametrize("name", ["y", "trusted", "y_meta"])
def test_a_series_with_the_rows_in_another_order_is_warned_of(name):
    rng = np.random.default_rng(0)
    y, X = rng.integers(2, size=40), pd.DataFrame(rng.normal(size=(40, 2)))
    given = {"y": pd.Series(y), "trusted": pd.Series(np.arange(40) < 20), "y_meta": pd.Series(y[:20])}
    fit = small(GLCClassifier, max_epochs=1).fit
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "the index of")
        fit(X, **given)
        fit(X, **given | {name: given[name].to_numpy()})
        fit(X, **given | {name: given[name].set_axis(given[name].index + 100)})  # other names say nothing
    with pytest.warns(UserWarning, match=f"the index of {name} names the rows in another order"):
        fit(X, **given | {name: given[name].sample(frac=1, random_state=0)})


@pytest.mark.parametrize(
    ("form", "name"),
    [*product(["meta", "X_meta"], ["y_meta", "y_meta_noisy"]), ("trusted", "y_meta_noisy")],
)
def test_labels_of_clean_rows_in_another_order_are_warned_of(form, name):
    rng = np.random.default_rng(0)
    y, X = rng.integers(2, size=60), pd.DataFrame(rng.normal(size=(60, 2)))
    clean, other = pd.Series(y[40:], X.index[40:]), pd.Series(1 - y[40:], X.index[40:])

    def fit(y_meta, y_meta_noisy):
        clf = small(GLCClassifier, max_epochs=1)
        if form == "trusted":
            return clf.fit(X, y, trusted=np.arange(60) >= 40, y_meta_noisy=y_meta_noisy)
        given = {"meta": (X[40:], y_meta)} if form == "meta" else {"X_meta": X[40:], "y_meta": y_meta}
        return clf.fit(X[:40], y[:40], y_meta_noisy=y_meta_noisy, **given)

    moved = {"y_meta": (clean[::-1], other), "y_meta_noisy": (clean, other[::-1])}[name]
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "the index of")
        fit(clean, other)
    rows = "X and y" if form == "trusted" else "X_meta"
    said = rf"the index of {name} names the rows in another order than {rows} do.*into the order of {rows} \(reindex\)"
    with pytest.warns(UserWarning, match=said):
        fit(*moved)


def test_weights_in_another_order_are_warned_of():
    y, X = np.arange(40) % 2, pd.DataFrame(np.random.default_rng(0).normal(size=(40, 2)))
    with pytest.warns(UserWarning, match="the index of sample_weight names the rows in another order"):
        small(GLCClassifier, max_epochs=1).fit(
            X, y, trusted=np.arange(40) < 20, sample_weight=pd.Series(1.0, X.index[::-1])
        )


ROWS = np.random.default_rng(0).normal(size=(60, 2))
CLASSES, NOISY = np.arange(60) % 2, np.arange(60) % 4 // 2
FRAME = pd.DataFrame(ROWS, index=[f"row {i}" for i in range(60)])
TRUE, GIVEN, HALF = (pd.Series(column, FRAME.index) for column in (CLASSES, NOISY, np.arange(60) < 30))

# method with labels of rows -> what it is called with, and the rows that the warning names
WITH_LABELS = {
    "label_posterior": ({"X": FRAME, "y_noisy": GIVEN}, "X"),
    "label_quality": ({"X": FRAME, "y_noisy": GIVEN}, "X"),
    "find_label_issues": ({"X": FRAME, "y_noisy": GIVEN}, "X"),
    "relabel": ({"X": FRAME, "y_noisy": GIVEN}, "X"),
    "noise_report": ({"X": FRAME, "y_noisy": GIVEN, "X_meta": FRAME, "y_meta": TRUE, "y_meta_noisy": GIVEN}, "X"),
    "score": ({"X": FRAME, "y": GIVEN, "sample_weight": TRUE, "trusted": HALF, "y_meta": TRUE}, "X and y"),
}
CALLS = [
    (method, name)
    for method, (given, _) in WITH_LABELS.items()
    for name, value in given.items()
    if isinstance(value, pd.Series)
]


@pytest.fixture(scope="module")
def of_frame():
    return small(GLCClassifier, max_epochs=1).fit(FRAME.to_numpy(), NOISY, meta=(ROWS, CLASSES))


@pytest.mark.parametrize(("method", "name"), CALLS)
def test_methods_warn_of_another_order_too(method, name, of_frame):
    given, rows = WITH_LABELS[method]
    call, column = getattr(of_frame, method), given[name]
    rows = "X_meta" if name.startswith("y_meta") and method == "noise_report" else rows
    with warnings.catch_warnings():
        warnings.filterwarnings("error", "the index of")
        call(**given)
        call(**given | {name: column.to_numpy()[::-1]})
        call(**given | {name: column[::-1].set_axis(np.arange(60))})  # other names say nothing
    said = rf"the index of {name} names the rows in another order than {rows} do.*into the order of {rows} \(reindex\)"
    with pytest.warns(UserWarning, match=said) as caught:
        call(**given | {name: column[::-1]})
    assert [warning.filename for warning in caught] == [__file__]


def test_weights_of_meta_weight_net_warn_too():
    clf = small(MWNetClassifier, max_epochs=1).fit(ROWS, NOISY, meta=(ROWS, CLASSES))
    with pytest.warns(UserWarning, match="the index of y_noisy names the rows in another order than X do"):
        clf.sample_weights(FRAME, GIVEN[::-1])


def test_labels_of_some_trusted_rows_have_the_order_of_these(of_frame):
    few = TRUE[HALF]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        of_frame.score(FRAME, GIVEN, trusted=HALF, y_meta=few)
    with pytest.warns(UserWarning, match="the index of y_meta names"):
        of_frame.score(FRAME, GIVEN, trusted=HALF, y_meta=few[::-1])


# ---------------------------------------------------------------------------- data frames with names
NAMES = ["a", "b", "c"]
T = pd.DataFrame([[0.9, 0.1, 0], [0, 0.5, 0.5], [0.3, 0, 0.7]], index=NAMES, columns=NAMES)
OTHER = T.loc[["c", "a", "b"], ["b", "a", "c"]]


def test_a_start_of_T_is_read_by_the_names_of_the_classes(blobs):
    X, y, *_ = blobs
    starts = [
        small(ForwardClassifier, max_epochs=1, transition_init=start).fit(X, np.array(NAMES)[y]).transition_init_
        for start in (T.to_numpy(), T, OTHER)
    ]
    np.testing.assert_array_equal(starts[1], starts[0])
    np.testing.assert_array_equal(starts[2], starts[0])


@pytest.mark.parametrize("frame", [OTHER.to_numpy(), OTHER.set_axis(["p", "q", "r"])])
def test_other_names_say_nothing_of_the_order(frame, blobs):
    X, y, *_ = blobs
    rows_of = pd.DataFrame(np.eye(3) * 0.5 + 0.5 / 3)
    clf = small(ForwardClassifier, max_epochs=1, transition_init=rows_of).fit(X, np.array(NAMES)[y])
    np.testing.assert_allclose(clf.transition_init_, rows_of)
    assert transition_error(frame, frame) == 0


def test_frames_with_the_same_names_are_compared_by_them():
    assert transition_error(T, OTHER) == 0
    assert transition_error(T, OTHER.to_numpy()) > 0.1


@pytest.mark.parametrize("classes", [NAMES, ["c", "b", "a"]])
def test_label_issues_are_read_by_the_names_of_the_classes(classes):
    y = np.random.default_rng(0).integers(3, size=200)
    proba = pd.DataFrame(np.random.default_rng(1).dirichlet(np.ones(3), 200), columns=NAMES)
    expected = find_label_issues(proba.to_numpy(), np.array(NAMES)[y], T.to_numpy(), classes=NAMES)
    found = find_label_issues(proba[["b", "c", "a"]], np.array(NAMES)[y], OTHER, classes=classes)
    assert found.tolist() == expected.tolist()
    assert len(found) > 10
