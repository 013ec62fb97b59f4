"""
Is one T enough?
================

One T assumes that the noise depends on the true class only. Test this on samples with
both labels, and estimate one T for each group if it does not hold.
"""

# %%
# Two hospitals
# -------------
# Simulated data. One hospital labels "mild" as "none" four times as often.
import numpy as np

from noisytransition import GLCClassifier, class_conditional_test, flip_labels

rng = np.random.default_rng(1)
n = 1500
names = np.array(["mild", "none", "severe"])
codes = rng.integers(3, size=n)
X = rng.normal(size=(n, 2)) + 2 * np.array([[0, 0], [0, 1], [1, 0]])[codes]
y = names[codes]
hospital = rng.choice(["North", "South"], n)
matrices = {
    where: np.array([[1 - rate, rate, 0], [0.1, 0.9, 0], [0.1, 0, 0.9]])
    for where, rate in {"North": 0.15, "South": 0.6}.items()
}
y_noisy = y.copy()
for where, T in matrices.items():
    rows = hospital == where
    y_noisy[rows] = flip_labels(y[rows], T, random_state=rng)
verified = np.arange(n) < 400

# %%
# The test by group
# -----------------
# The test permutes noisy labels within each true class, so the p-value is exact.
known = y[verified], y_noisy[verified]
found = class_conditional_test(*known, groups=hospital[verified], random_state=0)
print(f"p = {found.pvalue}")

# %%
import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(5.5, 3), layout="constrained")
place = np.arange(2)
observed, expected = zip(*found.noise.values(), strict=True)
ax.bar(place - 0.2, observed, 0.4, label="observed")
ax.bar(place + 0.2, expected, 0.4, label="expected with one T")
ax.set_xticks(place, found.noise)
ax.set_ylabel("fraction of wrong labels")
ax.legend(loc="upper left")

# %%
# The test without groups
# -----------------------
# If you have no groups, test the probabilities of a classifier. This classifier does
# not know the hospital, and a large p-value only concerns the tested variables.
clf = GLCClassifier(max_epochs=10, random_state=0)
clf.fit(X, y_noisy, y_verified=np.where(verified, y, None))
proba = clf.predict_proba(X[verified])
print(class_conditional_test(*known, proba=proba, random_state=0))

# %%
# A T for each group
# ------------------
# With enough verified samples, count their pairs of true and noisy labels. The T of
# both hospitals together is wrong for each of them.
from sklearn.metrics import ConfusionMatrixDisplay

from noisytransition import count_transition_matrix

true_codes, noisy_codes = (np.searchsorted(names, labels) for labels in known)
groups = {where: hospital[verified] == where for where in matrices}
groups = {"both": np.ones(400, dtype=bool), **groups}
fig, axes = plt.subplots(1, 3, figsize=(10, 3.2), layout="compressed")
for ax, (where, rows) in zip(axes, groups.items(), strict=True):
    T = count_transition_matrix(true_codes[rows], noisy_codes[rows], n_classes=3)
    display = ConfusionMatrixDisplay(T, display_labels=names)
    display.plot(cmap="Blues", values_format=".2f", ax=ax, colorbar=False)
    ax.set(title=where, xlabel="noisy label", ylabel="true label")
    print(f"{where}, {rows.sum()} verified samples\n{T.round(2)}")
