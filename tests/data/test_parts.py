"""Inputs with several parts: the fit equals that of one array, which the module splits."""

import collections
import dataclasses
import functools
import pickle

import numpy as np
import pandas as pd
import pytest
import torch
from estimators import small
from scipy.sparse import csr_array
from sklearn.model_selection import GridSearchCV, cross_val_predict
from skorch.helper import SliceDict
from torch import nn
from torch.utils.data import Dataset, TensorDataset
from training import StopAfter, assert_same, refused

from noisytransition import (
    CrossEntropyClassifier,
    FineTuningClassifier,
    GLCClassifier,
    MetaTransitionClassifier,
    VerifiedKFold,
    load,
)
from noisytransition.methods import METHODS

N, LENGTH, WORDS = 150, 6, 20


class Bag(nn.Module):
    """Mean of the embeddings of the words that the mask keeps."""

    def __init__(self):
        super().__init__()
        self.embed, self.out = nn.Embedding(WORDS, 8), nn.Linear(8, 2)

    def forward(self, ids, mask):
        mask = mask[..., None].to(self.out.weight.dtype)
        return self.out((self.embed(ids) * mask).sum(1) / mask.sum(1))


class Packed(Bag):
    """The same, of one array."""

    def forward(self, x):
        return super().forward(x[:, :LENGTH], x[:, LENGTH:])


@dataclasses.dataclass
class ModelOutput:
    """Output of a model of transformers."""

    logits: torch.Tensor
    loss: object = None


class Wrapped(Bag):
    def forward(self, **batch):
        return ModelOutput(super().forward(**batch))


class BatchEncoding(collections.UserDict):
    """Output of a tokenizer of transformers: its length is the number of parts, and integers do not index samples."""

    def __getitem__(self, key):
        if isinstance(key, int):
            raise KeyError("there are no fast tokens")
        return self.data[key]


class Samples(Dataset):
    """Dataset that computes samples from the parts and the label of each row."""

    def __init__(self, make, y):
        self.make, self.y = make, y

    def __len__(self):
        return len(self.y)

    def __getitem__(self, i):
        return self.make(torch.tensor(IDS[i]), torch.tensor(MASK[i]), int(self.y[i]))


def data():
    rng = np.random.default_rng(0)
    y = rng.integers(2, size=N)
    ids = np.where(rng.random((N, LENGTH)) < 0.5, rng.integers(1, 5, (N, LENGTH)) + 5 * y[:, None], 15)
    mask = (np.arange(LENGTH) < rng.integers(3, LENGTH + 1, N)[:, None]).astype(int)
    verified = np.where(np.arange(N) < 40, y, -1)
    return ids, mask, y, np.where(rng.random(N) < 0.3, 1 - y, y), verified


IDS, MASK, Y, NOISY, VERIFIED = data()
PARTS, PACKED = {"ids": IDS, "mask": MASK}, np.hstack([IDS, MASK])


def as_dict(ids, mask, y):
    return {"ids": ids, "mask": mask}


IN_MEMORY = {
    "other order": {"mask": MASK, "ids": IDS},
    "tensors": {"ids": torch.tensor(IDS), "mask": torch.tensor(MASK)},
    "lists": {"ids": IDS.tolist(), "mask": MASK.tolist()},
    "small types": {"ids": IDS.astype(np.int16), "mask": MASK.astype(bool)},
    "BatchEncoding": BatchEncoding(PARTS),
    "list of dicts": [{"ids": i, "mask": m} for i, m in zip(IDS, MASK, strict=True)],
}
DATASETS = {
    "dicts": Samples(as_dict, NOISY),
    "tuples": Samples(lambda ids, mask, y: (ids, mask), NOISY),
    "TensorDataset": TensorDataset(torch.tensor(IDS), torch.tensor(MASK)),
}
LABELLED = {
    "dict and label": Samples(lambda *parts: (as_dict(*parts), parts[2]), NOISY),
    "tuple and label": Samples(lambda ids, mask, y: ((ids, mask), y), NOISY),
    "parts and label": Samples(lambda ids, mask, y: (ids, mask, y), NOISY),
    "arrays": Samples(lambda ids, mask, y: [ids.numpy(), mask.numpy(), np.int64(y)], NOISY),
    "TensorDataset": TensorDataset(torch.tensor(IDS), torch.tensor(MASK), torch.tensor(NOISY)),
}


def rows(X, which):
    return {name: part[which] for name, part in X.items()} if isinstance(X, dict) else X[which]


def fit(cls, module=Bag, X=PARTS, y=NOISY, **given):
    return small(cls, module=module).fit(X, y, **({"y_verified": VERIFIED} | given))


@functools.cache
def packed_fit(cls):
    """The same of one array, which tests must not change."""
    return fit(cls, Packed, PACKED)


# ---------------------------------------------------------------------------- fits
@pytest.mark.parametrize("cls", METHODS.values())
def test_each_method_gives_what_it_gives_for_one_array(cls):
    clf, packed = fit(cls), packed_fit(cls)
    assert_same_proba(clf, packed)
    assert clf.score(PARTS, Y) == packed.score(PACKED, Y)
    expected = packed.score(PACKED, NOISY, y_verified=VERIFIED)
    assert clf.score(BatchEncoding(PARTS), NOISY, y_verified=VERIFIED) == expected


def assert_same_proba(clf, packed, X=PARTS):
    np.testing.assert_array_equal(clf.predict_proba(X), packed.predict_proba(PACKED))


def test_clean_rows_beside_them_or_beside_a_dataset():
    clean, labelled = (rows(PARTS, slice(40)), Y[:40]), Samples(lambda *parts: (as_dict(*parts), parts[2]), Y[:40])
    given = [{"meta": clean}, {"X": DATASETS["dicts"], "meta": clean}, {"meta": labelled}]
    packed = fit(GLCClassifier, Packed, PACKED, y_verified=None, meta=(PACKED[:40], Y[:40]))
    for of in given:
        assert_same_proba(fit(GLCClassifier, y_verified=None, **of), packed)


@pytest.mark.parametrize("form", IN_MEMORY | DATASETS)
def test_forms(form):
    X = (IN_MEMORY | DATASETS)[form]
    assert_same_proba(fit(GLCClassifier, X=X), packed_fit(GLCClassifier), X)


@pytest.mark.parametrize("form", LABELLED)
def test_datasets_with_labels(form):
    X, packed = LABELLED[form], packed_fit(GLCClassifier)
    clf = fit(GLCClassifier, X=X, y=None)
    assert_same_proba(clf, packed, X)
    assert clf.score(X) == packed.score(PACKED, NOISY)
    assert clf.score(X, y_verified=VERIFIED) == packed.score(PACKED[:40], Y[:40])


def test_an_output_with_logits():
    assert_same_proba(fit(MetaTransitionClassifier, Wrapped), packed_fit(MetaTransitionClassifier))


def test_real_parts_are_cast_and_others_are_not():
    class Types(Bag):
        def forward(self, ids, mask, age, image):
            found.append([part.dtype for part in (ids, mask, age, image)])
            return super().forward(ids, mask)

    X = PARTS | {"mask": MASK > 0, "age": np.zeros(N), "image": np.zeros((N, 2, 2), dtype=np.uint8)}
    for dtype, real in (("auto", torch.float32), ("float64", torch.float64)):
        found = []
        small(CrossEntropyClassifier, module=Types, dtype=dtype).fit(X, NOISY)
        assert all(types == [torch.int64, torch.bool, real, real] for types in found)


def test_a_batch_transform_gets_all_parts():
    def hide(batch):
        return batch | {"mask": torch.ones_like(batch["mask"])}

    clf = small(CrossEntropyClassifier, module=Bag, batch_transform=hide).fit(PARTS, NOISY)
    other = small(CrossEntropyClassifier, module=Bag).fit(PARTS | {"mask": np.ones_like(MASK)}, NOISY)
    np.testing.assert_array_equal(clf.predict_proba(PARTS), other.predict_proba(PARTS))


# ---------------------------------------------------------------------------- cross-validation and searches
TABLE = pd.DataFrame({"label": NOISY, "verified": VERIFIED})
FORMS = {"SliceDict": SliceDict(**PARTS), "tuples": DATASETS["tuples"]}


@functools.cache
def searched(module, form):
    """Scores of a search and predictions of other folds."""
    X = PACKED if form is None else FORMS[form]
    given = {"cv": VerifiedKFold(2), "error_score": "raise"}
    search = GridSearchCV(small(FineTuningClassifier, module=module), {"lr": [0.1, 0.01]}, **given)
    clf = small(CrossEntropyClassifier, module=module)
    proba = cross_val_predict(clf, X, NOISY, cv=2, method="predict_proba")
    return search.fit(X, TABLE).cv_results_["mean_test_score"], proba


@pytest.mark.parametrize("form", FORMS)
def test_cross_validation_and_searches(form):
    for found, expected in zip(searched(Bag, form), searched(Packed, None), strict=True):
        np.testing.assert_array_equal(found, expected)


# ---------------------------------------------------------------------------- what a fitted classifier does
def test_saved_and_resumed(tmp_path):
    cls, given = FineTuningClassifier, {"y_verified": VERIFIED, "state": tmp_path / "fit"}
    clf = fit(cls)
    clf.save(tmp_path / "clf")
    for again in (load(tmp_path / "clf", module=Bag()), pickle.loads(pickle.dumps(clf))):
        np.testing.assert_array_equal(again.predict_proba(PARTS), clf.predict_proba(PARTS))
    with pytest.raises(KeyboardInterrupt):
        small(cls, module=Bag, callbacks=[StopAfter(1)]).fit(PARTS, NOISY, **given)
    assert_same(fit(cls, **given), clf, PARTS)
    with refused("differs.*X, y"):
        fit(cls, X=PARTS | {"mask": np.ones_like(MASK)}, **given)


@pytest.mark.parametrize("X", [BatchEncoding(PARTS), DATASETS["tuples"]], ids=["encoding", "dataset"])
def test_methods_that_follow_from_T(X):
    clf, packed = fit(GLCClassifier, X=X), packed_fit(GLCClassifier)
    for method in ("label_posterior", "label_quality", "relabel"):
        np.testing.assert_array_equal(getattr(clf, method)(X, NOISY), getattr(packed, method)(PACKED, NOISY))
    report = clf.noise_report(X, NOISY, rows(PARTS, slice(40)), Y[:40])
    assert report.facts["label_issues"]["n_issues"] == len(clf.find_label_issues(X, NOISY)) > 0


# ---------------------------------------------------------------------------- errors before a training
@pytest.mark.parametrize(
    ("X", "message"),
    [
        ({}, "parts"),
        ({0: IDS, 1: MASK}, "named"),
        (PARTS | {"mask": MASK[1:]}, "equally long"),
        (PARTS | {"mask": [row[: 2 + i % 2] for i, row in enumerate(MASK.tolist())]}, "equally long"),
        (PARTS | {"mask": np.full((N, LENGTH), "a")}, "numbers"),
        (PARTS | {"mask": np.where(MASK, np.nan, 1.0)}, "NaN"),
        (PARTS | {"mask": csr_array(MASK)}, "dense"),
        (PARTS | {"more": MASK}, "more"),
        ({"ids": IDS}, "mask"),
        ([{"ids": IDS[i], "mask": MASK[i]} if i else {"ids": IDS[i]} for i in range(N)], "mask"),
        ([{} for i in range(N)], "does not accept"),
    ],
)
def test_parts_that_cannot_be_trained_on(X, message):
    with refused(message):
        fit(CrossEntropyClassifier, X=X, y_verified=None)


def test_errors_of_parts_and_other_data():
    for X in (PARTS, DATASETS["tuples"]):
        with refused("Pass a module"):
            small(CrossEntropyClassifier).fit(X, NOISY)
    with refused("X_clean"):
        fit(CrossEntropyClassifier, y_verified=None, meta=({"ids": IDS[:9]}, Y[:9]))
