"""
No verified labels
==================

Estimate T without any verified label. Then let the model suggest fifty samples to
verify, and compare.
"""

# %%
# Noisy digits
# ------------
# A random forest is trained on the noisy labels. Each sample gets its probabilities
# from a forest that was not trained on it.
import numpy as np
from sklearn.datasets import load_digits
from sklearn.ensemble import RandomForestClassifier
from sklearn.model_selection import cross_val_predict

from noisytransition import flip_labels
from noisytransition.transition import digits_noise

X, y = load_digits(return_X_y=True)
T = digits_noise(0.4)
y_noisy = flip_labels(y, T, random_state=0)
forest = RandomForestClassifier(random_state=0)
proba = cross_val_predict(forest, X, y_noisy, method="predict_proba")

# %%
# Without verified labels
# -----------------------
# ``proba_of="noisy"`` says that the probabilities are those of noisy labels. The model
# warns: nothing confirms that they are good, or that one T holds for all samples.
import warnings

from noisytransition import LabelNoiseModel

with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    unverified = LabelNoiseModel(proba_of="noisy").fit(proba, y_noisy)
print(caught[-1].message)

# %%
# Fifty samples to verify
# -----------------------
# `suggest_samples` prefers samples of uncertain class. It returns the probability of
# each draw. The next fit reads it in the column ``verified_probability`` of the labels,
# as the fit of a classifier does.
import pandas as pd

chosen = unverified.suggest_samples(50, random_state=0)
rows = chosen.position
labels = pd.DataFrame({"label": y_noisy})
labels.loc[rows, "verified"] = y[rows]  # in practice: a person looks at them
labels.loc[rows, "verified_probability"] = chosen.probability.to_numpy()
model = LabelNoiseModel().fit(proba, labels)

# %%
# Fifty verified labels also give valid intervals, for example of the share of correct
# labels:
estimate, low, high = model.accuracy_interval(of="labels")
print(f"estimated: {estimate:.1%} of the labels are correct [{low:.1%}, {high:.1%}]")
print(f"counted: {np.mean(y_noisy == y):.1%}")

# %%
# Comparison
# ----------
# Each label is replaced by the most probable class. The simple ways predict it by a
# forest, trained on all noisy labels or on the true labels of fifty random samples.
from noisytransition import transition_error

rest = labels.verified.isna()
random = np.random.default_rng(0).choice(len(y), 50, replace=False)
few = RandomForestClassifier(random_state=0).fit(X[random], y[random])
results = {
    "noisy labels as given": y_noisy,
    "forest, ignoring the noise": proba.argmax(axis=1),
    "forest, fifty true labels only": few.predict(X),
    "model, none verified": unverified.label_posterior().argmax(axis=1),
    "model, fifty verified": model.label_posterior().argmax(axis=1),
}
for name, found in results.items():
    print(f"{np.mean((found == y)[rest]):.1%} correct: {name}")

# %%
# The points are the entries of T. Without verified labels, one flip of 0.4 is
# estimated as 0.2.
import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(5, 4.5), layout="constrained")
for name, fit in {"none verified": unverified, "fifty verified": model}.items():
    found = fit.transition_matrix_
    ax.scatter(T, found, s=50, alpha=0.6, label=name)
    print(f"error of T, {name}: {transition_error(T, found):.3f}")
ax.plot([0, 1], [0, 1], color="grey", linewidth=1)
ax.set(xlabel="true entry of T", ylabel="estimated entry of T")
ax.legend()
