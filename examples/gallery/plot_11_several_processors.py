"""
Several processors
==================

Run several seeds, or the folds of one fit, in parallel. The result is exactly the same.
"""

# %%
# Small networks gain more from processes than from torch's threads.
import joblib
import numpy as np
from sklearn.datasets import load_digits

from noisytransition import EMTransitionClassifier, flip_labels, transition_error
from noisytransition.transition import pair_noise

X, y = load_digits(n_class=4, return_X_y=True)
X, T = X / 16, pair_noise(4, 0.4)
verified = np.arange(len(y)) < 60

# %%
# Many fits
# ---------
# joblib runs a loop over fits in processes. On a cluster, run the same call within
# ``joblib.parallel_config("dask")`` or ``"ray"``.


def fit(seed):
    """Estimate T from noisy labels drawn with a seed."""
    clf = EMTransitionClassifier(max_epochs=8, cv=None, random_state=seed)
    y_noisy = flip_labels(y, T, random_state=seed)
    clf.fit(X, y_noisy, y_verified=np.where(verified, y, -1))
    return clf.transition_matrix_


matrices = joblib.Parallel(n_jobs=2)(joblib.delayed(fit)(seed) for seed in range(4))
for seed, found in enumerate(matrices):
    print(f"seed {seed}: error of T {transition_error(T, found):.3f}")

# %%
# The mean of T, and how much T varies with the drawn noise:
import matplotlib.pyplot as plt
from sklearn.metrics import ConfusionMatrixDisplay

fig, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="compressed")
shown = {"mean of T over the seeds": np.mean, "standard deviation": np.std}
for ax, (title, of_seeds) in zip(axes, shown.items(), strict=True):
    display = ConfusionMatrixDisplay(of_seeds(matrices, axis=0))
    display.plot(cmap="Blues", values_format=".2f", ax=ax, colorbar=False)
    ax.set(title=title, xlabel="noisy label", ylabel="true label")

# %%
# The folds of one fit
# --------------------
# ``n_jobs`` trains the folds of one fit in parallel, as in joblib. Starting processes
# takes seconds, so a small fit gains little.
import time

y_noisy = flip_labels(y, T, random_state=0)
fits = {}
for n_jobs in (1, 2):
    start = time.perf_counter()
    clf = EMTransitionClassifier(max_epochs=10, n_jobs=n_jobs, random_state=0)
    fits[n_jobs] = clf.fit(X, y_noisy, y_verified=np.where(verified, y, -1))
    print(f"n_jobs={n_jobs}: {time.perf_counter() - start:.1f} seconds")

# %%
# The result does not depend on ``n_jobs``:
for n_jobs, clf in fits.items():
    print(f"n_jobs={n_jobs}\n{clf.transition_summary()}\n")
difference = fits[1].transition_matrix_ - fits[2].transition_matrix_
print(f"largest difference of T: {np.abs(difference).max()}")
