"""
Read T and its error bars
=========================

Read the intervals of T, and see how verified samples shorten them.
"""

# %%
# Three types of tumour, simulated as overlapping Gaussian classes. A third of type B is
# labelled A.
import numpy as np

from noisytransition import flip_labels

rng = np.random.default_rng(0)
names = np.array(["A", "B", "C"])
codes = rng.integers(3, size=1200)
X = rng.normal(size=(1200, 2)) + 3 * np.array([[0, 0], [0, 1], [1, 0]])[codes]
y = names[codes]
T = np.array([[0.95, 0.05, 0.0], [0.33, 0.67, 0.0], [0.0, 0.1, 0.9]])
y_noisy = flip_labels(y, T, random_state=0)

# %%
# The summary
# -----------
# Each line is a flip: true class, noisy class, probability and 90 % interval. If the
# interval begins at 0, the flip may not exist.
from noisytransition import EMTransitionClassifier

fits = {}
for n_verified in (30, 200):
    verified = np.arange(1200) < n_verified
    clf = EMTransitionClassifier(max_epochs=10, batch_size=128, random_state=0)
    fits[n_verified] = clf.fit(X, y_noisy, y_verified=np.where(verified, y, None))
    print(f"{n_verified} verified samples\n{clf.transition_summary(least=0)}\n")

# %%
# ``transition_interval`` returns the bounds as arrays for any level.
# ``transition_std_`` has standard errors.
low, high = fits[200].transition_interval(level=0.99)
print(low.round(2), high.round(2), fits[200].transition_std_.round(3), sep="\n\n")

# %%
# More verified samples, shorter intervals
# ----------------------------------------
import matplotlib.pyplot as plt

flips = [(i, j) for i in range(3) for j in range(3) if i != j]
fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for k, (n_verified, clf) in enumerate(fits.items()):
    low, high = clf.transition_interval()
    estimate = np.array([clf.transition_matrix_[flip] for flip in flips])
    below = estimate - [low[flip] for flip in flips]
    above = [high[flip] for flip in flips] - estimate
    place = np.arange(6) + 0.2 * k - 0.1
    label = f"{n_verified} verified samples"
    ax.errorbar(place, estimate, [below, above], fmt="o", capsize=3, label=label)
ax.plot([T[flip] for flip in flips], "k_", markersize=34, label="true T")
ax.set_xticks(range(6), [f"{names[i]} → {names[j]}" for i, j in flips])
ax.set(ylabel="P(noisy label | true label)", ylim=(0, None))
ax.legend()

# %%
# The fraction of wrong labels
# ----------------------------
# T and ``noisy_class_counts_``, the expected number of samples of each true class, give
# the fraction of wrong labels.
for n_verified, clf in fits.items():
    share = clf.noisy_class_counts_ / clf.noisy_class_counts_.sum()
    wrong = 1 - share @ clf.transition_matrix_.diagonal()
    print(f"{n_verified} verified samples: {wrong:.1%} wrong")
print(f"true fraction: {np.mean(y != y_noisy):.1%}")

# %%
# Reasons not to trust T
# ----------------------
# ``diagnostics_`` lists reasons not to trust T. Here, a class has no clean sample:
import warnings

no_c = (np.arange(1200) < 100) & (y != "C")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the same text as diagnostics_
    clf = EMTransitionClassifier(max_epochs=10, batch_size=128, random_state=0)
    clf.fit(X, y_noisy, y_verified=np.where(no_c, y, None))
for reason, text in clf.diagnostics_.items():
    print(f"{reason}: {text}")
