"""
Labels by a language model, with a confidence
=============================================

A language model labels a text and says how sure it is. Measure what its confidence is
worth, and learn a T for sure and for unsure labels.
"""

# %%
# The labels
# ----------
# Made data: no language model ran. The features stand for embeddings of reviews. The
# "model" calls many neutral reviews positive, more often so where it is less sure, and
# it is far too sure of itself.
import numpy as np

rng = np.random.default_rng(0)
n = 1500
names = np.array(["negative", "neutral", "positive"])
codes = rng.integers(3, size=n)
X = rng.normal(size=(n, 8)) + 1.6 * np.eye(8)[codes]
y = names[codes]
doubt = rng.random(n)
confidence = 1 - 0.2 * doubt
polite = (y == "neutral") & (rng.random(n) < doubt)
other = rng.random(n) < 0.3 * doubt
y_model = np.where(polite, "positive", np.where(other, rng.choice(names, n), y))
verified = np.isin(np.arange(n), rng.choice(n, 300, replace=False))

# %%
# What the confidence is worth
# ----------------------------
# Of the verified rows we know which labels are right. Below the dashed line the model
# is too sure.
import matplotlib.pyplot as plt

right = (y_model == y)[verified]
bins = np.digitize(confidence[verified], [0.85, 0.92, 0.96])
said = [confidence[verified][bins == k].mean() for k in range(4)]
observed = [right[bins == k].mean() for k in range(4)]
fig, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
ax.plot([0.6, 1], [0.6, 1], color="0.6", linestyle="--", label="as sure as right")
ax.plot(said, observed, "o-", label="this model")
ax.set(xlabel="confidence of the model", ylabel="share of right labels")
ax.legend()
for confident, share in zip(said, observed, strict=True):
    print(f"confidence {confident:.2f}: {share:.0%} of the labels are right")

# %%
# Does T depend on the confidence?
# --------------------------------
# The test compares the labels of verified rows of the same true class.
from noisytransition import EMTransitionClassifier, class_conditional_test

clf = EMTransitionClassifier(max_epochs=10, batch_size=64, random_state=0)
clf.fit(X, y_model, y_verified=np.where(verified, y, None))
print(clf.transition_summary(), end="\n\n")
test = class_conditional_test(
    y[verified],
    y_model[verified],
    features=confidence[verified, None],
    random_state=0,
)
print(f"p = {test.pvalue}: T depends on the confidence.")

# %%
# One T for sure labels, one for unsure labels
# --------------------------------------------
# The classifier does not need to be fitted again: `em_transition_matrix` finds the T of
# any part of the rows from the classifier's held-out posteriors ``oof_proba_``.
from noisytransition import em_transition_matrix

labels = np.searchsorted(clf.classes_, y_model[~verified])
proba = clf.oof_proba_[~verified]
sure = confidence[~verified] > 0.9
matrices = {
    "unsure": em_transition_matrix(proba[~sure], labels[~sure]),
    "sure": em_transition_matrix(proba[sure], labels[sure]),
}
for name, T in matrices.items():
    print(f"{name}\n{T.round(2)}")

# %%
from noisytransition import TransitionMatrixDisplay

fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="compressed")
for ax, (name, T) in zip(axes, matrices.items(), strict=True):
    display = TransitionMatrixDisplay(T, display_labels=clf.classes_)
    display.plot(ax=ax, colorbar=False)
    ax.set_title(f"labels that are {name}")

# %%
# Wrong labels
# ------------
# `label_posterior` joins the classifier, the label and the T of the label's group.
from noisytransition import label_posterior

one_T = label_posterior(proba, labels, clf.transition_matrix_)
two_T = one_T.copy()
for rows, T in [(sure, matrices["sure"]), (~sure, matrices["unsure"])]:
    two_T[rows] = label_posterior(proba[rows], labels[rows], T)
true = y[~verified]
print(f"labels of the model: {np.mean(y_model[~verified] == true):.1%} are right")
for name, posterior in [("one T", one_T), ("a T for each group", two_T)]:
    mended = clf.classes_[posterior.argmax(axis=1)]
    print(f"mended with {name}: {np.mean(mended == true):.1%} are right")
