"""Measure the memory of fits, and training from disk, with a new process for each fit (for `speed.py`)."""

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from speed_turns import ratio

FITS = {
    "cross-entropy": "CrossEntropyClassifier(**p).fit(X, y)",
    "GLC": "GLCClassifier(**p).fit(X, y, meta=(X_clean, y_clean))",
    "meta-transition": "MetaTransitionClassifier(**p).fit(X, y, meta=(X_clean, y_clean))",
    "EM": "EMTransitionClassifier(**p).fit(X, y, meta=(X_clean, y_clean))",
    "EM, verified samples": "EMTransitionClassifier(**p).fit(X, y, y_verified=checked)",
}
MEMORY = """
import warnings
from pathlib import Path
import numpy as np
from noisytransition import *
def peak():  # of this process alone: ru_maxrss would start at its parent's
    return int(Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]) * 1024
warnings.simplefilter("ignore")
rng, p = np.random.default_rng(0), {{"module": "linear", "max_epochs": 1, "random_state": 0}}
X = rng.standard_normal((60_000, 1000), dtype=np.float32)  # a float64 copy would hide the fit's peak
y = rng.integers(10, size=60_000)
X[np.arange(60_000), y] += 3
X_clean, y_clean, checked = X[:1000].copy(), y[:1000], np.where(np.arange(60_000) < 1000, y, -1)
def fit(X, y, X_clean, y_clean, checked):
    {fit}
fit(X[:2000].copy(), y[:2000], X_clean, y_clean, checked[:2000])  # warm-up: loads modules
before = peak()
fit(X, y, X_clean, y_clean, checked)
print((peak() - before) / X.nbytes)
"""


def memory():
    """Peak memory of a fit in addition to the data, relative to the size of the data."""
    for name, fit in FITS.items():
        out = subprocess.run([sys.executable, "-c", MEMORY.format(fit=fit)], capture_output=True, text=True, check=True)
        yield ratio("60,000 samples of 1,000 features, linear", f"memory of {name} / data", float(out.stdout), 1, 0.15)


DISK = """
import sys, threading, time, warnings
from pathlib import Path
import numpy as np
import torch
from noisytransition import CrossEntropyClassifier
class Rows(torch.utils.data.Dataset):
    def __init__(self, X):
        self.X = X
    def __len__(self):
        return len(self.X)
    def __getitem__(self, i):
        return torch.from_numpy(np.array(self.X[i]))
def anonymous():  # without pages of the file, which the system can drop
    status = Path("/proc/self/status").read_text()
    return int(status.partition("RssAnon:")[2].split()[0]) * 1024
def watch():
    while not ended.wait(0.01):
        seen.append(anonymous())
torch.set_num_threads(1)
warnings.simplefilter("ignore")
form, folder = sys.argv[1:]
X = np.load(f"{folder}/X.npy", mmap_mode=None if form == "array in memory" else "r")
size, y, ended, seen = X.nbytes, np.load(f"{folder}/y.npy"), threading.Event(), []
X = Rows(X) if form == "Dataset" else X
part = torch.utils.data.Subset(X, range(2000)) if form == "Dataset" else X[:2000]
clf = CrossEntropyClassifier("linear", max_epochs=1, batch_size=512, random_state=0)
clf.fit(part, y[:2000])  # warm-up: loads modules
before, started, watching = anonymous(), time.process_time(), threading.Thread(target=watch)
watching.start()
clf.fit(X, y)
ended.set()
print(time.process_time() - started, (max(seen) - before) / size)
"""


def disk(n=1_000_000):
    """Time and memory of an epoch from disk (memory-mapped array or Dataset), relative to data in memory; one fit each.

    The file was just written, so it is in the cache of the operating system. Memory excludes this cache.
    """
    case, forms = f"{n:,} samples of 64 features, linear", ("array in memory", "memory-mapped array", "Dataset")
    with tempfile.TemporaryDirectory() as folder:
        rng = np.random.default_rng(0)
        np.save(Path(folder) / "X.npy", rng.standard_normal((n, 64), dtype=np.float32))
        np.save(Path(folder) / "y.npy", rng.integers(10, size=n))
        command = [sys.executable, "-c", DISK]
        outs = [subprocess.run([*command, form, folder], capture_output=True, text=True, check=True) for form in forms]
    (in_memory, _), *others = [map(float, out.stdout.split()) for out in outs]
    for form, (seconds, beyond) in zip(forms[1:], others, strict=True):
        yield ratio(case, f"time of {form} / array in memory", seconds, in_memory)
        yield ratio(case, f"memory of {form} / data", beyond, 1)
