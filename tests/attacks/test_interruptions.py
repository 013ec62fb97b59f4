"""Fits that are killed at random moments, once or twice, and resumed give the same bits.

Each runs in a process of its own, forked from this one.
"""

import multiprocessing
import os
import signal
import sys
import time
from functools import partial

import joblib
import numpy as np
import pytest
from estimators import small

from noisytransition.methods import METHODS

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked"),
    pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork"),
]
# each kind of state: one training, weights of rows, trainings after each other, networks of weights and of T, folds
NAMES = ("GCE", "T-Revision", "MW-Net", "meta-transition", "EM")
JOBS = {name: {} for name in NAMES} | {"EM, 2 processes": {"n_jobs": 2}}
# trials of each job; a thousand take an hour
N_TRIALS = 2
# a trial that has not ended by then hangs
SECONDS = 60


@pytest.fixture(scope="module")
def problem():
    rng = np.random.default_rng(0)
    y = np.arange(100) % 3
    X = rng.normal(size=(100, 4)) + 2 * np.eye(3, 4)[y]
    return X[:80], np.where(rng.random(80) < 0.3, (y[:80] + 1) % 3, y[:80]), (X[80:], y[80:])


def bits(name, problem, path):
    """Hash of a fit that is saved in `path`."""
    X, y, meta = problem
    with joblib.parallel_config(backend="multiprocessing"):  # processes that are forked start at once
        clf = small(METHODS[name.split(",")[0]], batch_size=16, **JOBS[name]).fit(X, y, meta=meta, state=path)
    return joblib.hash([clf.predict_proba(X), getattr(clf, "transition_matrix_", None)])


def killed_in_a_write(path, at):
    """Die at the n-th file that is opened for writing, moved or deleted near `path`."""
    seen = []

    def hook(event, args):
        writes = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
        if (writes or event in ("os.rename", "os.remove")) and str(args[0]).startswith(str(path)):
            seen.append(event)
            if len(seen) > at:
                os.killpg(os.getpgrp(), signal.SIGKILL)  # multiprocessing waits for a worker that died

    sys.addaudithook(hook)


def attacked(name, problem, path, prepare, seconds):
    """Run a fit in another process, and kill it with all its child processes after some seconds."""

    def work():
        os.setpgrp()
        prepare()
        bits(name, problem, path)

    process = multiprocessing.get_context("fork").Process(target=work)
    process.start()
    process.join(seconds)
    if process.is_alive():
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:  # it has no group of its own yet, and no children
            process.kill()
    process.join(SECONDS)
    assert process.exitcode in (0, -signal.SIGKILL)


@pytest.mark.slow
@pytest.mark.parametrize("name", JOBS)
def test_killed_fits_resume_to_the_same_bits(name, problem, tmp_path):
    rng, began = np.random.default_rng(len(name)), time.perf_counter()
    whole = bits(name, problem, tmp_path / "whole")
    duration = time.perf_counter() - began
    for i in range(N_TRIALS):
        path = tmp_path / str(i)
        in_a_write = partial(killed_in_a_write, path, int(rng.integers(30)))
        for _ in range(rng.integers(1, 3)):
            prepare, seconds = (in_a_write, SECONDS) if i % 2 else (lambda: None, rng.uniform(0, duration))
            attacked(name, problem, path, prepare, seconds)
        assert bits(name, problem, path) == whole
