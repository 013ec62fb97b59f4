"""Kill, interrupt and fill up fits at random moments; resumed, they must give the same bits.

    python tests/attacks/interruptions.py                        # 1,000 kills, 1,000 of Ctrl-C, 200 full disks
    python tests/attacks/interruptions.py --kill 20 --seed 7     # some of them

Every trial runs in processes of its own, forked from this one (so not on Windows): one is hit, perhaps twice, and a
last one resumes. It prints how many ended as they should, and each that did not: "lost" (other bits), "error" (an
error instead of a result), "left behind" (an interrupted classifier keeps attributes, or torch is not as before).
"""

import argparse
import contextlib
import errno
import os
import pickle
import resource
import select
import shutil
import signal
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from functools import partial
from pathlib import Path
from typing import NamedTuple

import joblib
import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
from estimators import small

from noisytransition import ComparisonData
from noisytransition.classifiers import METHODS
from noisytransition.transition import flip_labels, pair_noise

# default numbers of trials of the long form
TRIALS = {"kill": 1000, "kill in a write": 200, "interrupt": 1000, "full disk": 200}
# a trial that has not ended by then hangs
SECONDS = 60


# ---------------------------------------------------------------------------- what is attacked
def rows(seed=0):
    """Three Gaussian classes with pair noise."""
    rng = np.random.default_rng(seed)
    y = rng.integers(3, size=120)
    X = rng.normal(size=(120, 4)) + 2 * np.eye(3, 4)[y]
    y_noisy = flip_labels(y[:80], pair_noise(3, 0.3), random_state=seed)
    return ComparisonData(X[:80], y_noisy, X[80:100], y[80:100], X[100:], y[100:])


def fitted(name, path, n_jobs=None):
    """Bits of a method's fit that is saved in `path`."""
    data, cls = rows(), METHODS[name]
    clf = small(cls, batch_size=16, **({} if n_jobs is None else {"n_jobs": n_jobs}))
    with joblib.parallel_config(backend="multiprocessing"):  # processes that are forked start at once
        try:
            clf.fit(data.X, data.y, meta=(data.X_meta, data.y_meta), state=path)
        except KeyboardInterrupt:
            left = [k for k in vars(clf) if k.endswith("_") and not k.startswith("_")]
            raise Interrupted(f"attributes {left}" if left else "") from None
    return joblib.hash([clf.predict_proba(data.X_test), getattr(clf, "transition_matrix_", None)])


class Interrupted(Exception):
    """Ctrl-C came through; says what the classifier kept."""


JOBS = {name: partial(fitted, name) for name in METHODS}
JOBS["EM, 2 processes"] = partial(fitted, "EM", n_jobs=2)


# ---------------------------------------------------------------------------- a process that is hit
class Outcome(NamedTuple):
    """How a process ended: "result" and its bits, "interrupted", "error" and its text, or "killed"."""

    kind: str
    text: str = ""


def run(job, path, prepare=None, after=None):
    """Run a job in a process of its own; send it a signal after some seconds, or let `prepare` set a trap."""
    reading, writing = os.pipe()
    if (pid := os.fork()) == 0:
        _child(job, path, prepare, writing)
    os.close(writing)
    with os.fdopen(reading, "rb") as pipe:
        if after is not None:
            time.sleep(after[1])
            _send(pid, after[0])
        ended, _, _ = select.select([pipe], [], [], SECONDS)
        said = pipe.read() if ended else pickle.dumps(Outcome("error", f"no end after {SECONDS} seconds"))
        _send(pid, signal.SIGKILL)
    os.waitpid(pid, 0)
    return pickle.loads(said) if said else Outcome("killed")


def _send(pid, signal_number):
    """A kill also hits all that the process has started; Ctrl-C the process alone, as in a notebook."""
    with contextlib.suppress(ProcessLookupError):
        (os.killpg if signal_number == signal.SIGKILL else os.kill)(pid, signal_number)


def _child(job, path, prepare, writing):
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    before = _torch_state()
    try:
        if prepare is not None:
            prepare(path)
        outcome = _outcome(job, path)
    except BaseException:
        outcome = Outcome("error", traceback.format_exc())
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if outcome.kind == "interrupted" and (changed := [k for k, v in _torch_state().items() if v != before[k]]):
        outcome = Outcome("interrupted", f"{outcome.text} torch's {changed} changed")
    with os.fdopen(writing, "wb") as pipe:
        pickle.dump(outcome, pipe)
    os._exit(0)


def _outcome(job, path):
    try:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        return Outcome("result", job(path))
    except Interrupted as interrupted:
        return Outcome("interrupted", str(interrupted))
    except KeyboardInterrupt:
        return Outcome("interrupted")


def _torch_state():
    generator = joblib.hash(torch.get_rng_state().numpy())
    return {"gradient mode": torch.is_grad_enabled(), "threads": torch.get_num_threads(), "generator": generator}


# ---------------------------------------------------------------------------- traps
def killed_in_a_write(path, at):
    """Die at the n-th file that is opened for writing, moved or deleted near `path`."""
    seen, near = [], str(Path(path).parent)

    def hook(event, args):
        writes = event == "open" and isinstance(args[1], str) and set(args[1]) & set("wax+")
        if (writes or event in ("os.rename", "os.remove")) and str(args[0]).startswith(near):
            seen.append(event)
            if len(seen) > at:
                os.killpg(os.getpgrp(), signal.SIGKILL)  # multiprocessing waits for a worker that died

    sys.addaudithook(hook)


def full_disk(path, limit):
    """Let no file grow beyond a size, as on a disk that is full."""
    signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))


# ---------------------------------------------------------------------------- trials
def trial(kind, name, seconds, rng, folder):
    """Hit a job once or twice, resume it; return what is wrong, with the bits it gave."""
    path = Path(folder) / "saved"
    for _ in range(rng.integers(1, 3)):
        outcome = hit(kind, JOBS[name], path, seconds, rng)
        if outcome.kind == "error" and not (kind == "full disk" and _no_space(outcome.text)):
            return f"error: {outcome.text}", None
        if outcome.kind == "interrupted" and outcome.text:
            return f"left behind: {outcome.text}", None
    outcome = run(JOBS[name], path)
    return ("", outcome.text) if outcome.kind == "result" else (f"{outcome.kind}: {outcome.text}", None)


def hit(kind, job, path, seconds, rng):
    """One attack on a job that takes about so many seconds."""
    if kind in ("kill", "interrupt"):
        number = signal.SIGKILL if kind == "kill" else signal.SIGINT
        return run(job, path, after=(number, rng.uniform(0, 1.1 * seconds)))
    if kind == "kill in a write":
        return run(job, path, partial(killed_in_a_write, at=int(rng.integers(30))))
    return run(job, path, partial(full_disk, limit=int(10 ** rng.uniform(1, 5))))


def _no_space(text):
    return any(word in text for word in (f"[Errno {errno.EFBIG}]", "File too large", "could not be written"))


def attack(numbers, seed=0):
    """All trials; return how many ended well by kind, and the others as texts."""
    rng, references = np.random.default_rng(seed), {}
    with tempfile.TemporaryDirectory() as folder:
        for name in METHODS:  # what a first fit imports, processes that are forked have already
            fitted(name, Path(folder) / f"first {name}")
        for name, job in JOBS.items():
            started = time.perf_counter()
            references[name] = run(job, Path(folder) / name.replace(" ", "_")), time.perf_counter() - started
    if broken := {name: reference.text for name, (reference, _) in references.items() if reference.kind != "result"}:
        raise RuntimeError(f"not attacked, and failed: {broken}")
    well, wrong = Counter(), []
    for kind, number in numbers.items():
        for i in range(number):
            name = list(JOBS)[i % len(JOBS)]
            reference, seconds = references[name]
            folder = tempfile.mkdtemp()
            problem, bits = trial(kind, name, seconds, rng, folder)
            problem = problem or ("" if bits == reference.text else "lost: other bits")
            shutil.rmtree(folder)
            well[kind] += not problem
            if problem:
                wrong.append(f"{kind}, {name}: {problem}")
                print(f"\n{wrong[-1]}", flush=True)
            if sys.stdout.isatty():
                print(f"\r{kind} {i + 1} of {number}, {len(wrong)} wrong", end="", flush=True)
    return well, wrong


def attack_and_report(numbers=TRIALS, seed=0):
    """All trials; print the counts, and return how many did not end well."""
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    well, wrong = attack(numbers, seed)
    kinds = Counter(text.split(": ")[1] for text in wrong)
    print(*(f"\n{kind}: {well[kind]} of {number} as they should" for kind, number in numbers.items()))
    print(f"lost {kinds['lost']}, error {kinds['error']}, left behind {kinds['left behind']}")
    return len(wrong)


def main():
    """Run the trials that the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for kind in TRIALS:
        parser.add_argument(f"--{kind.replace(' ', '-')}", dest=kind, type=int, help="number of trials")
    parser.add_argument("--seed", type=int, default=0)
    asked = vars(parser.parse_args())
    seed = asked.pop("seed")
    numbers = {kind: number for kind, number in asked.items() if number is not None} or TRIALS
    sys.exit(bool(attack_and_report(numbers, seed)))


if __name__ == "__main__":
    main()
