"""
Read T and its error bars
=========================

Read the intervals of T, compare them with counts of verified samples, and see a reason
not to trust T.
"""

# %%
# Three types of tumour, simulated as overlapping Gaussian classes. A third of type B is
# labelled A. 60 samples are verified.
import numpy as np

from noisytransition import flip_labels

rng = np.random.default_rng(0)
names = np.array(["A", "B", "C"])
codes = rng.integers(3, size=1200)
X = rng.normal(size=(1200, 2)) + 3 * np.array([[0, 0], [0, 1], [1, 0]])[codes]
y = names[codes]
T = np.array([[0.95, 0.05, 0.0], [0.33, 0.67, 0.0], [0.0, 0.1, 0.9]])
y_noisy = flip_labels(y, T, random_state=0)
verified = np.arange(1200) < 60

# %%
# The summary
# -----------
# Each line is a flip: true class, noisy class, probability and 90 % interval. If the
# interval begins at 0, the flip may not exist.
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from noisytransition import LabelNoiseModel

proba = cross_val_predict(LogisticRegression(), X, y_noisy, method="predict_proba")
model = LabelNoiseModel()
model.fit(proba, y_noisy, y_verified=np.where(verified, y, None))
print(model.transition_summary(least=0))

# %%
# ``transition_interval`` returns the bounds as arrays for any level.
# ``transition_std_`` has standard errors.
low, high = model.transition_interval(level=0.9)
print(low.round(2), high.round(2), model.transition_std_.round(3), sep="\n\n")

# %%
# Verified samples alone
# ----------------------
# The simple way counts the pairs of true and noisy label of the verified samples.
# Jeffreys' intervals of these counts are wider, since T uses all samples.
from scipy.stats import beta

pairs = np.zeros((3, 3))
np.add.at(pairs, (codes[:60], np.searchsorted(names, y_noisy[:60])), 1)
others = pairs.sum(axis=1, keepdims=True) - pairs
count_low, count_high = beta.ppf([[[0.05]], [[0.95]]], pairs + 0.5, others + 0.5)
flips = ~np.eye(3, dtype=bool)
print(f"mean width of T's intervals: {(high - low)[flips].mean():.2f}")
print(f"mean width by counting: {(count_high - count_low)[flips].mean():.2f}")

# %%
import matplotlib.pyplot as plt

bounds = {
    "counts of verified samples": (count_low, count_high),
    "T from all samples": (low, high),
}
fig, ax = plt.subplots(figsize=(7, 3.6), layout="constrained")
for shift, (name, (bottom, top)) in zip((-0.15, 0.15), bounds.items(), strict=True):
    height = (top - bottom)[flips]
    ax.bar(np.arange(6) + shift, height, 0.25, bottom[flips], label=name, alpha=0.7)
ax.plot(T[flips], "k_", markersize=40, label="true T")
titles = [f"{names[i]} → {names[j]}" for i, j in np.argwhere(flips)]
ax.set(ylabel="P(noisy label | true label)", xticks=range(6), xticklabels=titles)
ax.legend(markerscale=0.5)

# %%
# Reasons not to trust T
# ----------------------
# ``diagnostics_`` lists reasons not to trust T. Here, no sample of class C is verified:
import warnings

no_c = (np.arange(1200) < 100) & (y != "C")
with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # the same text as diagnostics_
    model.fit(proba, y_noisy, y_verified=np.where(no_c, y, None))
for reason, text in model.diagnostics_.items():
    print(f"{reason}: {text}")
