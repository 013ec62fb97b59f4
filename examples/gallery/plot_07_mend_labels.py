"""
Find and mend wrong labels
==========================

Rank labels by the probability that they are right, look at the first ones, and mend
those that are nearly certain.
"""

# %%
# Digits 5 to 9; 40 % of the labels of three digits are wrong, all in one direction.
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from noisytransition import EMTransitionClassifier, flip_labels

X, y = load_digits(return_X_y=True)
X, y = X[y >= 5] / 16, y[y >= 5]
T = np.array(
    [
        [0.6, 0.4, 0, 0, 0],  # 5 is called 6
        [0, 1, 0, 0, 0],
        [0, 0, 0.6, 0, 0.4],  # 7 is called 9
        [0, 0, 0, 1, 0],
        [0, 0, 0, 0.4, 0.6],  # 9 is called 8
    ]
)
y_noisy = flip_labels(y, T, random_state=0)
labels = pd.DataFrame({"label": y_noisy})
labels.loc[:79, "verified"] = y[:80]  # somebody looked at these rows
clf = EMTransitionClassifier(max_epochs=10, batch_size=64, random_state=0)
clf.fit(X, labels)
print(clf.transition_summary())

# %%
# The probability that a label is right
# -------------------------------------
# `label_quality` is the posterior of the given label. We know which labels are wrong,
# and can see how well it tells them apart in the rows that nobody looked at.
import matplotlib.pyplot as plt

quality = clf.label_quality(X, labels)[80:]
wrong = (y_noisy != y)[80:]
fig, ax = plt.subplots(figsize=(6, 3.2), layout="constrained")
ax.hist([quality[~wrong], quality[wrong]], bins=20, label=["right", "wrong"])
ax.set(xlabel="label quality", ylabel="labels", yscale="log")
ax.legend()

# %%
# The most doubtful labels
# ------------------------
# `find_label_issues` gives a data frame, the most probably wrong first. Verified rows
# are left out.
issues = clf.find_label_issues(X, labels)
issues.head(8).assign(true_label=y[issues.position[:8]])

# %%
# Every eighth of the first ones:
fig, axes = plt.subplots(2, 8, figsize=(9, 3.2))
for ax, issue in zip(axes.flat, issues[: 16 * 8 : 8].itertuples(), strict=True):
    ax.imshow(X[issue.position].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{issue.given_label} → {issue.suggested_label}")
    ax.axis("off")

# %%
# How many rows to look at?
# -------------------------
# The mean of ``1 - quality`` over the first rows is the share of wrong labels to expect
# among them, without knowing the truth.
for n in (50, 100, 150, 200):
    rows = quality.nsmallest(n).index
    expected, observed = np.mean(1 - quality[rows]), np.mean((y_noisy != y)[rows])
    print(f"first {n}: {expected:.0%} wrong expected, {observed:.0%} observed")

# %%
# Mend
# ----
# `relabel` replaces a label where another class has a posterior of at least
# ``threshold``, and gives verified rows their true label. Check the rest by hand, or
# leave it.
print(f"{np.mean(y_noisy == y):.1%} right, as given")
for threshold in (0.99, 0.9, 0.5):
    mended = clf.relabel(X, labels, threshold=threshold)
    changed = mended != y_noisy
    print(
        f"{np.mean(mended == y):.1%} right, threshold {threshold}: {changed.sum()} "
        f"labels replaced, {np.mean((mended == y)[changed]):.1%} of them rightly"
    )
