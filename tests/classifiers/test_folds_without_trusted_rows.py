"""Tools of scikit-learn that cut the mask of trusted rows: a fold without any is an error that says what to do."""

import warnings

import numpy as np
import pytest
from estimators import CLASSIFIERS, small
from sklearn import config_context
from sklearn.calibration import CalibratedClassifierCV
from sklearn.exceptions import FitFailedWarning
from sklearn.model_selection import KFold, StratifiedKFold, cross_validate, learning_curve
from training import refused

from noisytransition import FineTuningClassifier, GLCClassifier, TrustedKFold

SAYS = "no row is trusted.*TrustedKFold"
TOGETHER, LAST = np.arange(300) < 60, np.arange(300) >= 240
SHUFFLED = StratifiedKFold(3, shuffle=True, random_state=0)


@pytest.fixture
def rows(blobs, true_labels):
    """X, and labels that are true in the first 60 rows."""
    X, y = blobs[:2]
    return X, np.where(TOGETHER, true_labels, y)


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_a_fold_without_trusted_rows_is_refused(cls, rows):
    with refused(SAYS):
        cross_validate(small(cls), *rows, cv=KFold(5), params={"trusted": TOGETHER}, error_score="raise")
    with refused(SAYS):
        CalibratedClassifierCV(small(cls), cv=KFold(5)).fit(*rows, trusted=TOGETHER)


def test_scikit_learn_s_score_of_nan_comes_with_the_same_words(rows):
    clf = small(FineTuningClassifier)
    with pytest.warns(FitFailedWarning, match="(?s)1 fits failed.*" + SAYS):
        found = cross_validate(clf, *rows, cv=KFold(5), params={"trusted": TOGETHER})
    assert np.isnan(found["test_score"]).tolist() == [True, False, False, False, False]
    with refused(SAYS):
        learning_curve(clf, *rows, cv=3, train_sizes=[0.1], params={"trusted": LAST}, error_score="raise")


@pytest.mark.parametrize("cls", [FineTuningClassifier, GLCClassifier])
def test_what_the_error_says_helps(cls, rows):
    clf, mask = small(cls), {"trusted": TOGETHER}
    with warnings.catch_warnings():
        warnings.simplefilter("error", FitFailedWarning)
        for cv, more in ((SHUFFLED, {}), (TrustedKFold(3), {"groups": TOGETHER})):
            assert np.isfinite(cross_validate(clf, *rows, cv=cv, params=mask, **more)["test_score"]).all()
        with refused("mask of trusted rows as groups="):
            CalibratedClassifierCV(clf, cv=TrustedKFold(3)).fit(*rows, **mask)
        with config_context(enable_metadata_routing=True):
            CalibratedClassifierCV(clf, cv=TrustedKFold(3)).fit(*rows, **mask)
        calibrated = CalibratedClassifierCV(clf, cv=SHUFFLED).fit(*rows, **mask)
        assert calibrated.predict_proba(rows[0]).shape == (300, 3)
        sizes = {"train_sizes": [0.2, 1.0], "shuffle": True, "random_state": 0}
        assert np.isfinite(learning_curve(clf, *rows, cv=SHUFFLED, params=mask, **sizes)[2]).all()
        clean = {"meta": (rows[0][:60], rows[1][:60])}
        assert np.isfinite(learning_curve(clf, *rows, cv=3, params=clean, train_sizes=[0.2])[2]).all()
