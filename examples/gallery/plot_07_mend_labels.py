"""
Find and correct wrong labels
=============================

Rank labels by the probability that they are correct, inspect the worst ones, and
replace labels that are almost certainly wrong.
"""

# %%
# Digits 5 to 9. 40 % of the labels of three digits are wrong, each in one direction.
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from noisytransition import EMTransitionClassifier, flip_labels

X, y = load_digits(return_X_y=True)
X, y = X[y >= 5] / 16, y[y >= 5]
T = np.array(
    [
        [0.6, 0.4, 0, 0, 0],  # 5 is labelled 6
        [0, 1, 0, 0, 0],
        [0, 0, 0.6, 0, 0.4],  # 7 is labelled 9
        [0, 0, 0, 1, 0],
        [0, 0, 0, 0.4, 0.6],  # 9 is labelled 8
    ]
)
y_noisy = flip_labels(y, T, random_state=0)
labels = pd.DataFrame({"label": y_noisy})
labels.loc[:79, "verified"] = y[:80]  # verified samples
clf = EMTransitionClassifier(max_epochs=10, batch_size=64, random_state=0)
clf.fit(X, labels)
print(clf.transition_summary())

# %%
# The probability that a label is correct
# ---------------------------------------
# `label_quality` is the posterior probability of the given label; without arguments, of
# the samples of the fit. The true labels of the unverified samples show how well it
# separates wrong from correct labels.
import matplotlib.pyplot as plt

quality = pd.Series(clf.label_quality())[80:]
wrong = (y_noisy != y)[80:]
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.hist([quality[~wrong], quality[wrong]], bins=20, label=["correct", "wrong"])
ax.set(xlabel="label quality", ylabel="labels", yscale="log")
ax.legend()

# %%
# The worst labels
# ----------------
# `find_label_issues` returns a data frame of probably wrong labels, the worst first,
# without verified samples.
issues = clf.find_label_issues()
issues.head(8).assign(true_label=y[issues.position[:8]])

# %%
# The images show every eighth of them:
fig, axes = plt.subplots(2, 8, figsize=(9, 3.2))
for ax, issue in zip(axes.flat, issues[: 16 * 8 : 8].itertuples(), strict=True):
    ax.imshow(X[issue.position].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{issue.given_label} → {issue.suggested_label}")
    ax.axis("off")

# %%
# How many samples to inspect?
# ----------------------------
# The mean of ``1 - quality`` over the first samples estimates the fraction of wrong
# labels among them. It needs no true labels.
for n in (50, 100, 150, 200):
    rows = quality.nsmallest(n).index
    expected, observed = np.mean(1 - quality[rows]), np.mean((y_noisy != y)[rows])
    print(f"first {n}: {expected:.0%} wrong expected, {observed:.0%} observed")

# %%
# Correct labels
# --------------
# `relabel` replaces a label if another class has a posterior of at least ``threshold``,
# and sets the true label of verified samples.
print(f"given labels: {np.mean(y_noisy == y):.1%} correct")
for threshold in (0.99, 0.9, 0.5):
    corrected = clf.relabel(threshold=threshold)
    changed = corrected != y_noisy
    print(
        f"threshold {threshold}: {np.mean(corrected == y):.1%} correct, "
        f"{changed.sum()} replaced, "
        f"{np.mean((corrected == y)[changed]):.1%} of these correctly"
    )
