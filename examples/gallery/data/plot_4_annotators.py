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
# as 2. Fifty pictures are verified.
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
table["verified"] = pd.Series(y[train]).where(np.arange(len(train)) < 50)
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
# interval, and the most probable flip. The labels are simulated, so the true fraction
# is known.
summary = clf.source_summary()
share = np.bincount(y[train]) / len(train)
summary["true"] = {who: share @ T.diagonal() for who, T in people.items()}
summary[["n_labels", "right", "lower", "upper", "true", "worst_flip", "flip"]].round(2)

# %%
# Combine the labels
# ------------------
# The simple way is the majority label. The posterior combines the features and all
# three labels.
posterior = clf.label_posterior().argmax(axis=1)
majority = table.drop(columns="verified").mode(axis=1)[0]
for name, found in {"majority": majority, "posterior": posterior}.items():
    print(f"{np.mean((found == y[train])[50:]):.1%} correct: {name}")

# %%
# The figure shows 25 pictures with different labels: one colour for each label, white
# if the annotator was not asked.
import matplotlib.pyplot as plt

shown = table.drop(columns="verified").assign(
    majority=majority, posterior=posterior, truth=y[train]
)
disputed = (table.nunique(axis=1) > 1) & table["verified"].isna()
fig, ax = plt.subplots(figsize=(8, 3.6), layout="constrained")
colours = plt.get_cmap("viridis", 4)
image = ax.imshow(shown[disputed][:25].T, cmap=colours, vmin=-0.5, vmax=3.5)
fig.colorbar(image, ticks=range(4), label="label", shrink=0.8)
ax.set(xlabel="picture", xticks=[], yticks=range(9), yticklabels=shown.columns)
ax.axhline(5.5, color="white", linewidth=6)
