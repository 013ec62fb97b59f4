"""Time whole fits: EM and its parts, and TransitionClassifierCV (for `speed.py`)."""

import re
import time
from collections import Counter
from functools import partial
from unittest import mock

import numpy as np
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from speed_turns import ratio, turns

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, LabelNoiseModel, TransitionClassifierCV
from noisytransition.fitting._run import FitContext
from noisytransition.transition import flip_labels, pair_noise

N_TURNS = 5
# goals of EM / cross-entropy, by the number of noisy samples
GOALS = {1000: 8, 5000: 5, 20_000: 4}
# patterns of stages, and the parts of a fit
PARTS = {
    "warm_up": "warm-up, for the initial T",
    r"fold_\d": "three folds",
    r"(fold_\d_)?clean": "trainings on the clean samples",
    "em": "network through T",
}


def fits():
    """Time of EM's fit with default parameters, and of its parts, relative to a fit of cross-entropy; five turns.

    TransitionClassifierCV is compared with its estimator alone. There are 500 clean samples.
    """
    for n, goal in GOALS.items():
        X, y, meta = drawn(n)
        parts = []
        calls = {
            "cross-entropy": lambda X=X, y=y: CrossEntropyClassifier(random_state=0).fit(X, y),
            "EM": lambda X=X, y=y, m=meta, p=parts: p.append(seconds_of_parts(X, y, m)),
        }
        times = turns(calls, N_TURNS)
        case, one = f"{n:,} samples of 64 features", times["cross-entropy"]
        yield ratio(case, "EM at its defaults / cross-entropy", times["EM"], one, goal)
        for part in parts[-1]:
            taken = np.array([of_turn[part] for of_turn in parts[-N_TURNS:]])
            yield ratio(case, f"{part} / cross-entropy", taken, one)
    X, y, meta = drawn(5000)
    for estimator, goal in ((LogisticRegression(), 40), (RandomForestClassifier(random_state=0), 3)):
        calls = {
            "alone": lambda estimator=estimator: estimator.fit(X, y),
            "CV": lambda estimator=estimator: TransitionClassifierCV(estimator, random_state=0).fit(X, y, meta=meta),
        }
        times = turns(calls, N_TURNS)
        what = f"TransitionClassifierCV / {type(estimator).__name__}"
        yield ratio("5,000 samples of 64 features", what, times["CV"], times["alone"], goal)
    proba = cross_val_predict(LogisticRegression(), X, y, method="predict_proba")
    proba_clean = LogisticRegression().fit(X, y).predict_proba(meta[0])
    call = partial(LabelNoiseModel().fit, proba, y, proba_clean=proba_clean, y_clean=meta[1])
    seconds = turns({"fit": call}, N_TURNS)["fit"]
    yield ratio("5,000 samples, ten classes", "LabelNoiseModel, seconds", seconds, 1, 0.15)


def drawn(n):
    """Draw n noisy samples with pair noise, and 500 clean samples."""
    rng = np.random.default_rng(0)
    y = rng.integers(10, size=n + 500)
    X = (0.35 * rng.normal(size=(10, 64))[y] + rng.normal(size=(n + 500, 64))).astype(np.float32)
    return X[500:], flip_labels(y, pair_noise(10, 0.4), random_state=0)[500:], (X[:500], y[:500])


def seconds_of_parts(X, y, meta):
    """Fit EM; return the CPU seconds of its parts."""
    seconds = Counter()
    trained = counted(FitContext._train, seconds, lambda run, stage, *args: part_of(stage))
    estimated = counted(LabelNoiseModel._fit_candidates, seconds, lambda *args: "T from the posteriors")
    with (
        mock.patch.object(FitContext, "_train", trained),
        mock.patch.object(LabelNoiseModel, "_fit_candidates", estimated),
    ):
        EMTransitionClassifier(random_state=0).fit(X, y, meta=meta)
    return seconds


def counted(function, seconds, part):
    """Wrap a function so that it adds its CPU seconds to a part."""

    def call(*args, **params):
        started = time.process_time()
        result = function(*args, **params)
        seconds[part(*args)] += time.process_time() - started
        return result

    return call


def part_of(stage):
    """Return the part of a training."""
    return next(part for pattern, part in PARTS.items() if re.fullmatch(pattern, stage))
