"""
Several annotators
==================

Three of six annotators label each picture. Pass one column for each annotator: each
gets a T, and the classifier learns from all labels.
"""

# %%
# The labels
# ----------
# Digits 0 to 3. Three annotators are careful, two are careless, and one labels most 3s
# as 2. A hundred pictures are verified.
import numpy as np
import pandas as pd
from sklearn.datasets import load_digits

from noisytransition import flip_labels
from noisytransition.transition import flip_noise, symmetric_noise

rng = np.random.default_rng(0)
X, y = load_digits(n_class=4, return_X_y=True)
X = X / 16
train, test = np.split(rng.permutation(len(y)), [500])
people = {
    "Ann": symmetric_noise(4, 0.1),
    "Ben": symmetric_noise(4, 0.15),
    "Eve": symmetric_noise(4, 0.15),
    "Joe": symmetric_noise(4, 0.6),
    "Kim": flip_noise({(3, 2): 0.8}, n_classes=4),
    "Pat": symmetric_noise(4, 0.5),
}
table = pd.DataFrame(
    {who: flip_labels(y[train], T, random_state=rng) for who, T in people.items()}
)
asked = rng.random(table.shape).argsort(axis=1) < 3
table = table.where(asked)
table["verified"] = pd.Series(y[train]).where(np.arange(len(train)) < 100)
table.iloc[[0, 1, 2, -2, -1]]

# %%
# The fit
# -------
# `TransitionClassifierCV` takes the same table, with any scikit-learn classifier.
from noisytransition import EMTransitionClassifier

clf = EMTransitionClassifier(max_epochs=15, random_state=0).fit(X[train], table)
print(f"test accuracy: {clf.score(X[test], y[test]):.3f}")

# %%
# Who labels well?
# ----------------
# The summary has the fraction of correct labels of each annotator, with a 90 %
# interval, and the most probable flip. The data are simulated, so the true fraction is
# known.
summary = clf.source_summary()
share = np.bincount(y[train]) / len(train)
summary["true"] = {who: share @ T.diagonal() for who, T in people.items()}
summary[["n_labels", "right", "lower", "upper", "true", "worst_flip", "flip"]].round(2)

# %%
import matplotlib.pyplot as plt
from sklearn.metrics import ConfusionMatrixDisplay

model = clf.noise_model_
fig, axes = plt.subplots(2, 3, figsize=(8, 5.6), layout="compressed")
for ax, who, T in zip(
    axes.flat, model.sources_.names, model.sources_.matrices, strict=True
):
    display = ConfusionMatrixDisplay(T)
    display.plot(cmap="Blues", values_format=".2f", ax=ax, colorbar=False)
    title = f"{who}: {summary.loc[who, 'right']:.0%} correct"
    ax.set(title=title, xlabel="noisy label", ylabel="true label")

# %%
# Combine the labels
# ------------------
# Compare the majority label with the posterior given the features and all three labels.
# The posterior of the samples of the fit uses out-of-fold probabilities ``oof_proba_``,
# since the classifier was trained on these samples.
posterior = clf.label_posterior()
majority = table.drop(columns="verified").mode(axis=1)[0]
open_rows = table["verified"].isna()
for name, labels in {
    "majority": majority,
    "classifier": clf.oof_proba_.argmax(axis=1),
    "classifier and all labels": posterior.argmax(axis=1),
}.items():
    print(f"{np.mean((labels == y[train])[open_rows]):.1%} correct: {name}")

# %%
# Majority labels that are probably wrong, given all labels:
clf.find_label_issues().head()
