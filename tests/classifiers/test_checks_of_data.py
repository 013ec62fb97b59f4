"""Warnings of labels that cannot be learned from, and modules for which the factored meta-gradient is exact."""

import warnings
from contextlib import suppress

import numpy as np
import pandas as pd
import pytest
import torch
from estimators import CLASSIFIERS, NEED_CLEAN_DATA, small
from scipy.sparse import csr_array
from sklearn.datasets import load_digits, load_wine
from sklearn.model_selection import GridSearchCV, cross_val_predict
from skorch.helper import SliceDataset
from torch import nn
from torch.nn.functional import cosine_similarity
from torch.utils.data import Subset, TensorDataset
from training import fit, no_training, refused

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    FineTuningClassifier,
    GLCClassifier,
    MetaTransitionClassifier,
    MWNetClassifier,
)
from noisytransition.classifiers._check_output import check_output
from noisytransition.classifiers._labels import class_codes
from noisytransition.losses import ForwardLoss
from noisytransition.meta_gradient import look_ahead
from noisytransition.nets import NoisyLabelNet, Rows
from noisytransition.transition import flip_labels, pair_noise, says_nothing, symmetric_noise


# ---------------------------------------------------------------------------- classes
def test_labels_that_scikit_learn_has_encoded_are_warned_of(blobs):
    X, y, X_meta, y_meta, *_ = blobs
    clf, kind = small(GLCClassifier, max_epochs=1), {"cv": 2, "method": "predict_proba"}
    y, y_meta = y % 2, y_meta % 2
    for codes in ([-1, 1], [1, 2]):
        names = np.array(codes)
        said = pytest.warns(UserWarning, match="y_meta has the classes .* give y as 0..c-1: encode y")
        with said, suppress(IndexError):  # scikit-learn's, with one class too many
            cross_val_predict(clf, X, names[y], params={"meta": (X_meta, names[y_meta])}, **kind)
    with refused(r"y_meta_noisy has labels \[2\].* give y as 0..c-1: encode y"):
        clf.fit(X, y, meta=(X_meta, y_meta), y_meta_noisy=y_meta * 2)
    with refused(r"y holds number labels .* bool labels .* give y as 0..c-1: encode y"):
        clf.fit(X, y, meta=(X_meta, y_meta == 1))


@pytest.mark.parametrize("cls", NEED_CLEAN_DATA)
def test_a_clean_class_without_noisy_labels_is_warned_of_with_its_likely_spelling(cls, blobs):
    X, y, X_meta, y_meta, *_ = blobs
    names, clean = np.array(["ant", "bee", "cat"]), np.array(["Ant", "bee", "cat"])
    with pytest.warns(UserWarning, match=r"\['Ant'\], which no noisy label has \('Ant' is close to 'ant'\)"):
        small(cls, max_epochs=1).fit(X, names[y], meta=(X_meta, clean[y_meta]))


def test_classes_that_all_have_noisy_labels_are_not_warned_of(blobs):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fit(MetaTransitionClassifier, blobs, max_epochs=1)


# ---------------------------------------------------------------------------- several labels for each row
VOTES = r"y should be a 1d array .* shape \(300, 2\): .*take the majority, or give one row for each label"


@pytest.mark.parametrize("form", [np.asarray, pd.DataFrame, np.ndarray.tolist])
@pytest.mark.parametrize("more", [{}, {"sample_weight": np.ones(300)}])
def test_several_labels_for_each_row_are_refused_with_what_to_do(form, more, blobs):
    X, y, *_ = blobs
    for rows in (X, TensorDataset(torch.tensor(X))):
        with refused(VOTES):
            small(CrossEntropyClassifier).fit(rows, form(np.column_stack([y, y])), **more)
        with refused(VOTES):
            small(CrossEntropyClassifier).fit(rows, form(np.column_stack([y, y])), trusted=np.arange(300) < 9, **more)


def test_clean_rows_have_one_label_each(blobs):
    X, y, X_meta, y_meta, *_ = blobs
    with refused(r"y_meta should be a 1d array with one label for each row, got the shape \(\d+, 3\)\.$"):
        small(CrossEntropyClassifier).fit(X, y, meta=(X_meta, np.eye(3)[y_meta]))


# ---------------------------------------------------------------------------- rows without a label
@pytest.mark.parametrize("cls", CLASSIFIERS)
@pytest.mark.parametrize(
    ("mark", "kind", "message"),
    [
        (np.nan, float, r"y has missing labels \(NaN\) in 10 of 300 rows: leave out.*pandas.notna\(y\)"),
        (None, object, r"y has missing labels \(None\) in 10 of 300 rows: leave out"),
        (
            -1,
            int,
            "y has the label -1 in 10 of 300 rows, beside 0 to 2: leave out.*keep those with y != -1; if -1 is a class",
        ),
        (-1, float, "y has the label -1 in 10 of 300 rows"),
    ],
)
def test_rows_without_a_label_are_refused_with_their_number(cls, blobs, mark, kind, message):
    X, y, X_meta, y_meta, *_ = blobs
    y = y.astype(kind)
    y[5:15] = mark
    with refused(message):
        small(cls).fit(X, y, meta=(X_meta, y_meta))


def test_several_marks_of_a_missing_label_are_all_named(blobs):
    X, y = blobs[0], np.array(["ant", "bee", "cat"], dtype=object)[blobs[1]]
    y[:3] = None, float("nan"), pd.NA
    with refused(r"missing labels \(<NA>, NaN, None\) in 3 of 300 rows"):
        small(CrossEntropyClassifier).fit(X, y)
    with refused("missing labels .* in 2 of 300 rows"):
        small(CrossEntropyClassifier).fit(X, pd.Series(blobs[1], dtype="Int64").where(np.arange(300) > 1))


def test_clean_rows_without_a_label_are_named_as_such(blobs):
    X, y, X_meta, y_meta, *_ = blobs
    y_meta = y_meta.copy()
    y_meta[:4] = -1
    with pytest.warns(UserWarning, match="which no noisy label has"), refused("y_meta has the label -1 in 4 of 60"):
        small(CrossEntropyClassifier).fit(X, y, meta=(X_meta, y_meta))


def test_labels_of_rows_that_are_not_trusted_may_be_missing(blobs):
    X, y, trusted = *blobs[:2], np.arange(300) < 50
    for kind, mark in ((int, -1), (float, np.nan)):
        labels = np.where(trusted, y.astype(kind), mark)
        with pytest.warns(UserWarning, match="a search"):
            small(CrossEntropyClassifier).fit(X, y, trusted=trusted, y_meta=labels)


def test_minus_one_may_be_a_class(blobs):
    X, y = blobs[:2]
    with pytest.warns(UserWarning, match="-1 in .* rows, beside 0 to 1, and it is taken as a class: if it is none"):
        assert small(CrossEntropyClassifier).fit(X, y - 1).classes_.tolist() == [-1, 0, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for classes in ([-1, 1, 2], [-2, -1, 0], [-1, 0, 2], [-1, 0, 0], [-1, 1, 1]):
            small(CrossEntropyClassifier).fit(X, np.array(classes)[y])


# ---------------------------------------------------------------------------- labels of chance
def digits(seed, n_clean=100):
    X, y = load_digits(return_X_y=True)
    order = np.random.default_rng(seed).permutation(len(X))
    clean, noisy = order[:n_clean], order[n_clean:]
    return X[noisy], y[noisy], X[clean], y[clean]


def spoken(y_of, n_clean=100, n_seeds=20):
    """Share of the seeds for which labels are found to say nothing."""
    found = []
    for seed in range(n_seeds):
        X, y, X_meta, y_meta = digits(seed, n_clean)
        found.append(says_nothing(X, y_of(y, seed), X_meta, y_meta) is not None)
    return np.mean(found)


@pytest.mark.parametrize("text", ["nan", "", " <NA> "])
def test_text_of_a_missing_label_is_a_class_with_a_warning(text):
    y = np.array(["ant", "bee", text] * 100)
    with pytest.warns(UserWarning, match=f"y has the label {text!r} in 100 of 300 rows, and it is taken as a class"):
        classes, _ = class_codes({"y": y})
    assert text in classes


@pytest.mark.parametrize("y", [["none", "nancy", "NA"], [0, 1, 2]])
def test_other_names_give_no_warning(y):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        class_codes({"y": np.array(y)})


def test_labels_of_chance_say_nothing():
    assert spoken(lambda y, seed: np.random.default_rng(seed + 100).integers(10, size=len(y))) > 0.8
    assert spoken(lambda y, seed: np.random.default_rng(seed + 100).permutation(y)) > 0.8


@pytest.mark.parametrize("T", [symmetric_noise(10, 0.6), symmetric_noise(10, 0.8), pair_noise(10, 0.45)])
def test_noisy_labels_say_something(T):
    assert spoken(lambda y, seed: flip_labels(y, T, random_state=seed)) == 0


def test_where_rows_are_too_few_to_tell_nothing_is_said():
    X, y, X_meta, y_meta = digits(0)
    chance = np.random.default_rng(5).integers(10, size=len(y))
    assert says_nothing(X, chance, X_meta, y_meta) is not None
    assert says_nothing(X[:40], chance[:40], X_meta, y_meta) is None  # too few noisy rows
    assert says_nothing(X, chance, X_meta[:10], y_meta[:10]) is None  # too few clean rows
    other = np.random.default_rng(0).normal(size=X.shape)
    assert says_nothing(other, chance, other[:100], y_meta) is None  # rows that do not show their classes


def test_of_large_images_some_pixels_are_looked_at():
    X, y, X_meta, y_meta = (rows.repeat(40, axis=1) if rows.ndim == 2 else rows for rows in digits(0))
    chance = np.random.default_rng(5).integers(10, size=len(y))
    assert says_nothing(X, chance, X_meta, y_meta) is not None
    assert says_nothing(X, y, X_meta, y_meta) is None


@pytest.mark.parametrize("scale", [1e-200, 1.0, 1e200])
def test_the_scale_of_columns_does_not_matter(scale):
    X, y, X_meta, y_meta = digits(0)
    chance = np.random.default_rng(5).integers(10, size=len(y))
    expected = says_nothing(X, chance, X_meta, y_meta)
    assert says_nothing(X * scale, chance, X_meta * scale, y_meta) == pytest.approx(expected)


@pytest.mark.parametrize("cls", NEED_CLEAN_DATA)
def test_methods_with_clean_rows_warn_of_labels_of_chance(cls):
    X, y, X_meta, y_meta = digits(0)
    chance = np.random.default_rng(5).integers(10, size=len(y))
    message = "say nothing about the classes.*clean rows alone"
    with no_training(), pytest.warns(UserWarning, match=message), pytest.raises(BaseException, match="was trained"):
        small(cls).fit(X, chance, meta=(X_meta, y_meta))


def unequal(shares, per_class, n=300):
    """Two columns, labels "a", "b", "c" in these shares, and so many clean rows of each."""
    rng = np.random.default_rng(0)
    y, y_meta = (np.repeat(["a", "b", "c"], counts) for counts in (np.multiply(shares, n).astype(int), per_class))
    X, X_meta = (np.float32(rng.normal(size=(len(of), 2)) + 3 * (of == "a")[:, None]) for of in (y, y_meta))
    return X, y, (X_meta, y_meta)


BY_EM = [EMTransitionClassifier, MetaTransitionClassifier]  # which find the shares of the classes themselves


@pytest.mark.parametrize("cls", [cls for cls in NEED_CLEAN_DATA if cls not in BY_EM])
def test_equally_many_clean_rows_of_unequal_classes_bring_a_warning(cls):
    X, y, meta = unequal([0.8, 0.1, 0.1], [10, 10, 10])
    message = "10 clean rows of each class, but 240 noisy labels 'a' and 30 'b'. .*draw them at random"
    with no_training(), pytest.warns(UserWarning, match=message), pytest.raises(BaseException, match="was trained"):
        small(cls).fit(X, y, meta=meta)


def told(clf, X, y, meta):
    """What a fit warns of before it trains."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        with no_training(), pytest.raises(BaseException, match="was trained"):
            clf.fit(X, y, meta=meta)
    return [str(warning.message) for warning in caught]


@pytest.mark.parametrize("cls", BY_EM)
def test_methods_that_find_the_shares_bring_none(cls):
    X, y, meta = unequal([0.8, 0.1, 0.1], [10, 10, 10])
    assert not told(cls(), X, y, meta)


@pytest.mark.parametrize(
    ("clf", "warns"),
    [
        (EMTransitionClassifier(), True),
        (EMTransitionClassifier(meta_sampling="by_class"), False),
        (MetaTransitionClassifier(), True),
        (MetaTransitionClassifier(meta_sampling="by_class"), False),
    ],
)
def test_they_do_not_look_for_them_with_many_classes(clf, warns):
    rng, y, clean = np.random.default_rng(0), np.repeat(np.arange(21), [60] + [5] * 20), np.repeat(np.arange(21), 2)
    X, X_meta = (np.float32(np.eye(21)[of] + rng.normal(size=(len(of), 21)) / 9) for of in (y, clean))
    assert any("meta_sampling='by_class'" in message for message in told(clf, X, y, (X_meta, clean))) == warns


@pytest.mark.parametrize(
    ("shares", "per_class"), [([0.6, 0.25, 0.15], [10] * 3), ([0.8, 0.1, 0.1], [20, 5, 5]), ([0.8, 0.1, 0.1], [1] * 3)]
)
def test_other_shares_bring_none(shares, per_class):
    X, y, meta = unequal(shares, per_class)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(FineTuningClassifier).fit(X, y, meta=meta)


# ---------------------------------------------------------------------------- modules
def test_the_checks_leave_weights_and_generators_as_they_are():
    torch.manual_seed(0)
    module = nn.Sequential(nn.Linear(4, 2), nn.ReLU())
    with torch.no_grad():
        module[0].bias += 50  # no output is negative at these weights
    net = NoisyLabelNet(module).initialize()
    before = [p.clone() for p in net.module_.parameters()]
    state = torch.get_rng_state()
    with pytest.raises(ValueError, match="no negative output"):
        check_output(net, Rows(np.zeros((3, 4), np.float32)), np.arange(2))
    assert all(torch.equal(a, b) for a, b in zip(before, net.module_.parameters(), strict=True))
    assert torch.equal(state, torch.get_rng_state())


def test_positive_logits_are_logits(blobs):
    module = nn.Linear(4, 3)
    with torch.no_grad():
        module.bias += 50
    fit(CrossEntropyClassifier, blobs, module=module, max_epochs=1, lr=1e-3)


def test_weights_may_start_at_zero(blobs):
    module = nn.Linear(4, 3)
    for weight in module.parameters():
        nn.init.zeros_(weight)
    fit(CrossEntropyClassifier, blobs, module=module, max_epochs=1)


def test_a_module_that_draws_random_numbers_to_predict_is_taken(blobs):
    class Noisy(nn.Linear):
        def forward(self, x):
            return super().forward(x) + torch.randn(len(x), 1)

    fit(CrossEntropyClassifier, blobs, module=Noisy(4, 3), max_epochs=1)


class Bounded(nn.Sequential):
    """Layers, and a function that is none of them."""

    def forward(self, x):
        return super().forward(x).tanh()


def hooked(add):
    module = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
    add(module)
    return module


def tied():
    module = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
    module[2].weight = module[0].weight
    return nn.Sequential(nn.Linear(4, 3), *module)


def repeated():
    layer, other, relu = nn.Linear(4, 3), nn.Linear(3, 4), nn.ReLU()
    return nn.Sequential(layer, relu, other, relu, layer)


def own_forward(module):
    module.forward = lambda x: module[2](module[0](x)).tanh()


OTHERS = {
    "dropout": nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 3)),
    "batch normalisation": nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3)),
    "layer normalisation": nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 3)),
    "convolution": nn.Sequential(nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 3, 4), nn.Flatten()),
    "tanh": nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)),
    "a plain layer": nn.Linear(4, 3),
    "its own forward pass": Bounded(nn.Linear(4, 3)),
    "the forward pass of an instance": hooked(own_forward),
    "shared weights": tied(),
    "layers that are repeated": repeated(),
    "a forward hook": hooked(lambda m: m[0].register_forward_hook(lambda *args: args[2] * 2)),
    "a hook before": hooked(lambda m: m[0].register_forward_pre_hook(lambda m, x: (x[0] * 2,))),
    "a backward hook": hooked(lambda m: m[1].register_full_backward_hook(lambda m, i, o: (i[0] * 2,))),
    "a backward hook before": hooked(lambda m: m[1].register_full_backward_pre_hook(lambda m, o: (o[0] * 2,))),
    "weight normalisation": nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))),
    "spectral normalisation": nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3))),
}
EXACT = {
    "logistic regression": nn.Sequential(nn.Linear(4, 3)),
    "one hidden layer": nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)),
    "without bias": nn.Sequential(nn.Flatten(), nn.Linear(4, 6, bias=False), nn.ReLU(inplace=True), nn.Linear(6, 3)),
    "the same ReLU": nn.Sequential(nn.Linear(4, 6), relu := nn.ReLU(), nn.Linear(6, 6), relu, nn.Linear(6, 3)),
}


def tangent(module, method):
    random = torch.Generator().manual_seed(0)
    x, y = torch.randn(16, 4, generator=random), torch.randint(3, (16,), generator=random)
    loss, rates = ForwardLoss(pair_noise(3, 0.3)), {name: 0.3 for name, _ in module.named_parameters()}
    torch.manual_seed(0)
    ahead = look_ahead(
        module.train(), x[:8], lambda z: loss.cotangent(z, y[:8]), (x[8:], y[8:]), rates, methods=(method,)
    )
    return ahead.tangent.flatten()


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("cls", [MetaTransitionClassifier, MWNetClassifier])
def test_the_factored_method_is_refused_for_other_modules(cls, name, blobs):
    with refused("meta_gradient_method='factored' is for Linear layers"):
        fit(cls, blobs, module=OTHERS[name], meta_gradient_method="factored")
    with pytest.raises(NotImplementedError, match="can differentiate"):
        tangent(OTHERS[name], "factored")


@pytest.mark.parametrize("name", EXACT)
def test_the_factored_method_is_exact_for_the_modules_that_it_takes(name, blobs):
    assert cosine_similarity(tangent(EXACT[name], "factored"), tangent(EXACT[name], "double-vjp"), dim=0) > 1 - 1e-5
    clf = fit(MetaTransitionClassifier, blobs, module=EXACT[name], meta_gradient_method="factored", max_epochs=1)
    assert clf.meta_gradient_method_ == "factored"


def test_the_factored_method_is_refused_for_a_weight_with_a_hook():
    module = nn.Sequential(nn.Linear(4, 3))
    module[0].weight.register_hook(lambda gradient: gradient * 2)
    with pytest.raises(NotImplementedError, match="can differentiate"):
        tangent(module, "factored")


def test_the_factored_method_needs_rows_of_one_axis(blobs):
    X, y, X_meta, y_meta, *_ = blobs
    module = nn.Sequential(nn.Linear(4, 3))
    with refused("one axis per row"):
        small(MetaTransitionClassifier, module=module, meta_gradient_method="factored").fit(
            X[:, None], y, meta=(X_meta[:, None], y_meta)
        )


LINEAR = {"module": nn.Linear, "module__in_features": 13, "module__out_features": 3}


def as_dataset(X):
    return TensorDataset(torch.tensor(X, dtype=torch.float32))


@pytest.mark.parametrize("params", [{}, LINEAR], ids=["default", "own"])
@pytest.mark.parametrize("form", [np.asarray, csr_array, as_dataset])
def test_columns_that_are_not_scaled_are_warned_of(form, params):
    X, y = load_wine(return_X_y=True)
    with pytest.warns(UserWarning, match=r"values of X are large .*Scale X"):
        CrossEntropyClassifier(max_epochs=0, **params).fit(form(X), y)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CrossEntropyClassifier(max_epochs=0, **params).fit(form(X / X.max(axis=0)), y)


class AnyOutput(nn.Module):
    """Takes images and tokens of any kind."""

    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(1, 3)

    def forward(self, X):
        return self.linear(X.flatten(1).float().mean(dim=1, keepdim=True))


@pytest.mark.parametrize("form", [np.asarray, lambda X: TensorDataset(torch.tensor(X)), Subset])
@pytest.mark.parametrize(("dtype", "shape"), [("uint8", (3, 4, 4)), ("int64", (7,)), ("bool", (7,))])
def test_images_and_tokens_for_a_module_of_the_user_s_are_not_warned_of(dtype, shape, form):
    X = np.random.default_rng(0).integers(256, size=(30, *shape)).astype(dtype)
    rows = Subset(TensorDataset(torch.tensor(X)), range(30)) if form is Subset else form(X)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CrossEntropyClassifier(AnyOutput, max_epochs=0).fit(rows, np.arange(30) % 3)


@pytest.mark.parametrize(
    ("table", "what"),
    [
        (pd.DataFrame({"age": [20.0, 30.0], "city": ["Oslo", "Bonn"]}), r"X has text \(.*'Oslo'\)"),
        (np.array([["Oslo"], ["Bonn"]]), r"X has text \("),
        (np.array([[b"Oslo"], [b"Bonn"]]), r"X has text \("),
        ([["Oslo"], ["Bonn"]], r"X has text \("),
        (pd.DataFrame({"city": pd.Categorical(["Oslo", "Bonn"])}), "X has text or categories"),
        (pd.DataFrame({"age": [20.0, 30.0], "city": pd.Categorical(["Oslo", "Bonn"])}), "X has text or categories"),
    ],
)
def test_columns_of_text_are_refused_with_what_to_do(table, what):
    with no_training(), refused(rf"{what}.*: encode it in a Pipeline \(OneHotEncoder"):
        CrossEntropyClassifier().fit(table, [0, 1])


def test_columns_of_dates_beside_numbers_are_refused_with_what_to_do():
    table = pd.DataFrame({"age": [20.0, 30.0], "since": pd.to_datetime(["2020-01-01", "2021-01-01"])})
    with no_training(), refused(r"X has columns of numbers and of others, such as dates .*: encode it in a Pipeline"):
        CrossEntropyClassifier().fit(table, [0, 1])
    table["city"] = ["Oslo", "Bonn"]
    with no_training(), refused("X has .*: encode it in a Pipeline"):
        CrossEntropyClassifier().fit(table, [0, 1])


def test_labels_of_bytes_are_refused_with_what_to_do():
    with no_training(), refused(r"y has labels of bytes; decode them, as y.astype\(str\)"):
        CrossEntropyClassifier().fit(np.eye(2), np.array([b"a", b"b"]))


def test_a_slice_dataset_is_refused_with_what_to_do():
    data = TensorDataset(torch.eye(2), torch.tensor([0, 1]))
    with no_training(), refused("X is a SliceDataset of skorch's; give the Dataset itself"):
        CrossEntropyClassifier().fit(SliceDataset(data), [0, 1])


@pytest.mark.parametrize("module", [None, "linear"])
def test_numbers_of_a_grid_of_arrays_are_taken(module, blobs):
    X, y, *_ = blobs
    grid = {"batch_size": np.array([8]), "max_epochs": np.array([2]), "lr": np.array([0.1])}
    grid |= {} if module else {"module__hidden": np.array([8])}
    search = GridSearchCV(CrossEntropyClassifier(module, random_state=0), grid, cv=2, error_score="raise").fit(X, y)
    plain = CrossEntropyClassifier(
        module, **{name: values.tolist()[0] for name, values in grid.items()}, random_state=0
    )
    np.testing.assert_array_equal(search.predict_proba(X), plain.fit(X, y).predict_proba(X))


def test_one_clean_row_for_each_of_many_classes_is_no_regression_problem():
    y = np.arange(200) % 25
    X = np.random.default_rng(0).normal(size=(200, 3)) + y[:, None] / 10
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        small(GLCClassifier, max_epochs=1).fit(X[25:], y[25:], meta=(X[:25], y[:25]), y_meta_noisy=y[1:26])
    with pytest.warns(UserWarning, match="number of unique classes"):
        small(GLCClassifier, max_epochs=1).fit(X, np.arange(200) % 150, meta=(X[:150], np.arange(150)))
