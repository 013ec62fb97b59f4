"""
Is one T enough?
================

One T assumes that the noise depends on the true class only. Test this on samples with
both labels, and estimate one T for each group if it does not hold.
"""

# %%
# Two hospitals
# -------------
# Simulated data. The hospital in the south labels "mild" as "none" four times as often.
import numpy as np

from noisytransition import class_conditional_test, flip_labels

rng = np.random.default_rng(1)
n = 1500
names = np.array(["mild", "none", "severe"])
codes = rng.integers(3, size=n)
X = rng.normal(size=(n, 2)) + 2 * np.array([[0, 0], [0, 1], [1, 0]])[codes]
y = names[codes]
hospital = rng.choice(["north", "south"], n)
y_noisy = y.copy()
for where, rate in {"north": 0.15, "south": 0.6}.items():
    here = hospital == where
    T = [[1 - rate, rate, 0], [0.1, 0.9, 0], [0.1, 0, 0.9]]
    y_noisy[here] = flip_labels(y[here], T, random_state=rng)
verified = np.arange(n) < 200

# %%
# The test
# --------
# The test permutes noisy labels within each true class, so the p-value is exact. A
# small p-value says that T differs between the groups.
pairs = y[verified], y_noisy[verified]
found = class_conditional_test(*pairs, groups=hospital[verified], random_state=0)
print(f"p = {found.pvalue}")

# %%
import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(5, 3.6), layout="constrained")
place = np.arange(2)
observed, expected = zip(*found.noise.values(), strict=True)
ax.bar(place - 0.2, observed, 0.4, label="observed", color="tab:purple")
ax.bar(place + 0.2, expected, 0.4, label="expected with one T", color="thistle")
ax.set(xticks=place, xticklabels=found.noise, ylabel="fraction of wrong labels")
ax.legend(loc="upper left")

# %%
# The test without groups
# -----------------------
# If you have no groups, test the probabilities of a classifier. This classifier does
# not know the hospital: a large p-value concerns the tested variables only.
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

classifier = LogisticRegression()
proba = cross_val_predict(classifier, X, y_noisy, method="predict_proba")
test = class_conditional_test(*pairs, proba=proba[verified], random_state=0)
print(f"p = {test.pvalue:.2f}")

# %%
# A T for each hospital
# ---------------------
# ``sources`` has the hospital of each label. The most probable class of each sample is
# compared with the simple ways.
from noisytransition import LabelNoiseModel

true = np.where(verified, y, None)
one_T = LabelNoiseModel().fit(proba, y_noisy, y_verified=true)
two_T = LabelNoiseModel().fit(proba, y_noisy, y_verified=true, sources=hospital)
print(
    two_T.source_summary()[["right", "lower", "upper", "worst_flip", "flip"]].round(2)
)
verified_only = classifier.fit(X[verified], y[verified]).predict(X)
results = {
    "given labels": y_noisy,
    "classifier, ignoring the noise": names[proba.argmax(axis=1)],
    "classifier, verified only": verified_only,
    "one T": names[one_T.label_posterior().argmax(axis=1)],
    "a T for each hospital": names[two_T.label_posterior().argmax(axis=1)],
}
for name, labels in results.items():
    print(f"{np.mean((labels == y)[~verified]):.1%} correct: {name}")
