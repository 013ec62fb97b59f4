"""
Several processors
==================

Fit several seeds at the same time, or the folds of one fit, and get the same result to
the bit.
"""

# %%
# A small network gains little from torch's threads, and more from processes.
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
# Any loop over fits can be a loop over processes. On a cluster,
# ``joblib.parallel_config("dask")`` or ``"ray"`` around the call is all that changes.


def fit(seed):
    """Learn T from noisy labels that are drawn with this seed."""
    clf = EMTransitionClassifier(
        max_epochs=8, cv=None, fine_tune=False, random_state=seed
    )
    y_noisy = flip_labels(y, T, random_state=seed)
    clf.fit(X, y_noisy, y_verified=np.where(verified, y, -1))
    return clf.transition_matrix_


matrices = joblib.Parallel(n_jobs=2)(joblib.delayed(fit)(seed) for seed in range(4))
for seed, found in enumerate(matrices):
    print(f"seed {seed}: error of T {transition_error(T, found):.3f}")

# %%
# T with these labels, and how much it varies with the draw of the noise:
import matplotlib.pyplot as plt

from noisytransition import TransitionMatrixDisplay

fig, axes = plt.subplots(1, 2, figsize=(8, 3.4), layout="compressed")
TransitionMatrixDisplay(np.mean(matrices, axis=0)).plot(ax=axes[0])
image = axes[1].imshow(np.std(matrices, axis=0), cmap="Oranges")
fig.colorbar(image, cax=axes[1].inset_axes((1.04, 0, 0.05, 1)))
axes[0].set_title("mean of T over the seeds")
axes[1].set(title="standard deviation", xlabel="noisy label", xticks=range(4))
axes[1].set(ylabel="true label", yticks=range(4))

# %%
# The folds of one fit
# --------------------
# ``n_jobs`` is that of joblib. The processes are there already; to start them takes
# some seconds, so that a fit as small as this one gains nothing.
import time

y_noisy = flip_labels(y, T, random_state=0)
fits = {}
for n_jobs in (1, 2):
    start = time.perf_counter()
    clf = EMTransitionClassifier(
        max_epochs=10, fine_tune=False, n_jobs=n_jobs, random_state=0
    )
    fits[n_jobs] = clf.fit(X, y_noisy, y_verified=np.where(verified, y, -1))
    print(f"n_jobs={n_jobs}: {time.perf_counter() - start:.1f} seconds")

# %%
# The result does not depend on ``n_jobs``:
for n_jobs, clf in fits.items():
    print(f"n_jobs={n_jobs}\n{clf.transition_summary()}\n")
difference = fits[1].transition_matrix_ - fits[2].transition_matrix_
print(f"largest difference of T: {np.abs(difference).max()}")
