"""
Labels from a language model, with a confidence
===============================================

A language model labels texts and states its confidence. Check its calibration, and
estimate one T for confident labels and one for the other labels.
"""

# %%
# The labels
# ----------
# The data are simulated: features represent embeddings of reviews. The "model" labels
# many neutral reviews positive, more often if its confidence is low. It is
# overconfident.
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
# Calibration of the confidence
# -----------------------------
# The verified samples show which labels are correct. Below the dashed line, the model
# is overconfident.
import matplotlib.pyplot as plt

right = (y_model == y)[verified]
bins = np.digitize(confidence[verified], [0.85, 0.92, 0.96])
said = [confidence[verified][bins == k].mean() for k in range(4)]
observed = [right[bins == k].mean() for k in range(4)]
fig, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
ax.plot([0.6, 1], [0.6, 1], color="0.6", linestyle="--", label="calibrated")
ax.plot(said, observed, "o-", label="this model")
ax.set(xlabel="confidence of the model", ylabel="fraction of correct labels")
ax.legend()
for confident, share in zip(said, observed, strict=True):
    print(f"confidence {confident:.2f}: {share:.0%} of the labels are correct")

# %%
# Does T depend on the confidence?
# --------------------------------
# The test compares the noisy labels of verified samples with the same true class.
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
# A T for confident labels, a T for uncertain labels
# --------------------------------------------------
# The classifier need not be fitted again: `em_transition_matrix` estimates the T of any
# subset from the out-of-fold probabilities ``oof_proba_``.
from noisytransition import em_transition_matrix

labels = np.searchsorted(clf.classes_, y_model[~verified])
proba = clf.oof_proba_[~verified]
sure = confidence[~verified] > 0.9
matrices = {
    "uncertain": em_transition_matrix(proba[~sure], labels[~sure]),
    "confident": em_transition_matrix(proba[sure], labels[sure]),
}
for name, T in matrices.items():
    print(f"{name}\n{T.round(2)}")

# %%
from sklearn.metrics import ConfusionMatrixDisplay

fig, axes = plt.subplots(1, 2, figsize=(8, 3.6), layout="compressed")
for ax, (name, T) in zip(axes, matrices.items(), strict=True):
    display = ConfusionMatrixDisplay(T, display_labels=clf.classes_)
    display.plot(cmap="Blues", values_format=".2f", ax=ax, colorbar=False)
    ax.set(title=f"{name} labels", xlabel="noisy label", ylabel="true label")

# %%
# Wrong labels
# ------------
# `label_posterior` combines the probabilities, the label and the T of its group.
from noisytransition import label_posterior

one_T = label_posterior(proba, labels, clf.transition_matrix_)
two_T = one_T.copy()
for rows, T in [(sure, matrices["confident"]), (~sure, matrices["uncertain"])]:
    two_T[rows] = label_posterior(proba[rows], labels[rows], T)
true = y[~verified]
print(f"correct labels of the model: {np.mean(y_model[~verified] == true):.1%}")
for name, posterior in [("one T", one_T), ("a T for each group", two_T)]:
    corrected = clf.classes_[posterior.argmax(axis=1)]
    print(f"corrected with {name}: {np.mean(corrected == true):.1%}")
