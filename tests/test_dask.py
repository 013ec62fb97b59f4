"""Folds, searches and comparisons on a Dask cluster of two worker processes, with the same bits."""

import os

import joblib
import numpy as np
import pytest
from estimators import small
from sklearn.model_selection import GridSearchCV
from training import assert_same, fit

from noisytransition import ComparisonData, EMTransitionClassifier, GLCClassifier, compare
from noisytransition.classifiers._run import Run

distributed = pytest.importorskip("distributed", reason="needs the extra 'distributed'")
pytestmark = pytest.mark.xdist_group("dask")  # one cluster


@pytest.fixture(scope="module")
def client():
    """A client of a cluster whose workers are processes with one thread each."""
    settings = {"n_workers": 2, "threads_per_worker": 1, "processes": True, "dashboard_address": None}
    with distributed.LocalCluster(**settings) as cluster, distributed.Client(cluster) as client:
        client.wait_for_workers(2)
        assert len({os.getpid(), *client.run(os.getpid).values()}) == 3
        yield client


@pytest.fixture
def trained_here(monkeypatch):
    """Stages that are trained in this process."""
    names, train = [], Run.train
    monkeypatch.setattr(
        Run, "train", lambda run, stage, *args, **kw: names.append(stage) or train(run, stage, *args, **kw)
    )
    return names


def test_folds(client, blobs, plain, trained_here):
    with joblib.parallel_config("dask"):
        clf = fit(EMTransitionClassifier, blobs)
    assert trained_here == ["warm_up", "em"]
    assert_same(clf, plain(EMTransitionClassifier), blobs[0])
    np.testing.assert_array_equal(clf.oof_proba_, plain(EMTransitionClassifier).oof_proba_)


def test_a_search(client, blobs, trained_here):
    X, y, X_meta, y_meta, *_ = blobs
    search = GridSearchCV(small(GLCClassifier), {"lr": [0.01, 0.1]}, cv=2, refit=False)
    with joblib.parallel_config("dask"):
        found = search.fit(X, y, meta=(X_meta, y_meta)).cv_results_["mean_test_score"]
    assert trained_here == []
    np.testing.assert_array_equal(found, search.fit(X, y, meta=(X_meta, y_meta)).cv_results_["mean_test_score"])


def test_a_comparison(client, blobs, trained_here):
    data, methods = ComparisonData(*blobs), {"GLC": small(GLCClassifier)}
    with joblib.parallel_config("dask"):
        found = compare(data, methods, seeds=[0, 1])
    assert trained_here == []
    plain = compare(data, methods, seeds=[0, 1])
    assert found.drop(columns="seconds").equals(plain.drop(columns="seconds"))
