"""Time fits of EM and their parts, compared with cross-entropy (for `speed.py`)."""

import re
import time
from collections import Counter
from unittest import mock

import numpy as np
from speed_turns import ratio, turns

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier
from noisytransition.fitting._run import Run
from noisytransition.methods import _em_transition
from noisytransition.transition import flip_labels, pair_noise

N_TURNS = 5
# patterns of stages, and the parts of a fit
PARTS = {
    "warm_up": "warm-up, for the start of T",
    r"fold_\d": "three folds",
    r"(clean_fold|fold)_\d_.*|fine_tuned.*|clean_rows": "trainings on the clean rows",
    "em|continued": "network through T",
    "(continued_on_)?noisy_rows": "networks that clean rows judge",
}


def fits():
    """Time of EM's fit with default parameters, and of its parts, relative to a fit of cross-entropy; five turns."""
    rng = np.random.default_rng(0)
    for n in (1000, 5000, 20_000):
        y = rng.integers(10, size=n + 500)
        X = (0.35 * rng.normal(size=(10, 64))[y] + rng.normal(size=(n + 500, 64))).astype(np.float32)
        y_noisy, meta = flip_labels(y, pair_noise(10, 0.4), random_state=0)[500:], (X[:500], y[:500])
        parts = []
        calls = {
            "cross-entropy": lambda X=X, y=y_noisy: CrossEntropyClassifier(random_state=0).fit(X[500:], y),
            "EM": lambda X=X, y=y_noisy, m=meta, p=parts: p.append(seconds_of_parts(X[500:], y, m)),
        }
        times = turns(calls, N_TURNS)
        case, one = f"{n:,} rows of 64 columns", times["cross-entropy"]
        yield ratio(case, "EM at its defaults / cross-entropy", times["EM"], one, 6)
        for part in parts[-1]:
            taken = np.array([of_turn[part] for of_turn in parts[-N_TURNS:]])
            yield ratio(case, f"{part} / cross-entropy", taken, one)


def seconds_of_parts(X, y, meta):
    """Fit EM; return the CPU seconds of its parts."""
    seconds = Counter()
    trained = counted(Run._fit, seconds, stage)
    estimated = counted(_em_transition.estimate_transition, seconds, lambda *args: "T from the posteriors")
    with mock.patch.object(Run, "_fit", trained), mock.patch.object(_em_transition, "estimate_transition", estimated):
        EMTransitionClassifier(random_state=0).fit(X, y, meta=meta)
    return seconds


def counted(function, seconds, part_of):
    """Wrap a function so that it adds its CPU seconds to a part."""

    def call(*args, **params):
        started = time.process_time()
        result = function(*args, **params)
        seconds[part_of(*args)] += time.process_time() - started
        return result

    return call


def stage(run, nets, *args):
    """Return the part of a training."""
    name = next(iter(nets))
    return next(part for pattern, part in PARTS.items() if re.fullmatch(pattern, name))
