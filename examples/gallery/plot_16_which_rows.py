"""
Which samples to verify next
============================

Verify some samples, fit, and let the model suggest more, until the interval is short
enough.
"""

# %%
# Product reviews
# ---------------
# 4000 simulated reviews of two classes. A model has labelled them. We estimate its
# accuracy on the true labels, within ± 0.02.
import numpy as np

from noisytransition import flip_labels

rng = np.random.default_rng(0)
names = np.array(["bad", "good"])
codes = rng.choice(2, size=4000, p=[0.3, 0.7])
difficulty = np.where(rng.random(4000) < 0.7, 4.0, 0.6)  # most samples are easy
X = rng.normal(size=(4000, 5)) + 0.8 * (difficulty * (2 * codes - 1))[:, None] / 2
y_noisy = names[flip_labels(codes, [[0.8, 0.2], [0.1, 0.9]], random_state=1)]
y = names[codes]

# %%
# Compute out-of-sample probabilities of any classifier trained on the noisy labels:
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

proba = cross_val_predict(LogisticRegression(), X, y_noisy, method="predict_proba")

# %%
# Verify 50 random samples first. ``plan`` estimates how many more are needed.
from noisytransition import LabelNoiseModel

first = rng.choice(4000, 50, replace=False)
verified = np.full(4000, None)
verified[first] = y[first]  # in practice: a person verifies these samples
model = LabelNoiseModel().fit(proba, y_noisy, y_verified=verified)
print("{:.3f} [{:.3f}, {:.3f}]".format(*model.accuracy_interval()))
print(model.plan_verification("accuracy", width=0.02))

# %%
# Verify, fit, stop
# -----------------
# ``suggest_samples`` prefers samples for which the correctness of the classifier is
# uncertain. It returns the sampling probability of each, relative to a random draw. The
# next fit weights the samples by its inverse, so the accuracy remains unbiased.
import warnings


def loop(suggest, width=0.02, step=25):
    """Verify samples in steps; return their numbers and the intervals."""
    rows, probability, found = first, np.ones(4000), []
    while True:
        verified = np.full(4000, None)
        verified[rows] = y[rows]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about T, which is not used here
            model = LabelNoiseModel().fit(
                proba, y_noisy, y_verified=verified, verified_probability=probability
            )
        found.append([len(rows), *model.accuracy_interval()])
        if (found[-1][3] - found[-1][2]) / 2 <= width:
            return np.array(found)
        if suggest:
            more = model.suggest_samples(
                step, target="accuracy", random_state=len(rows)
            )
            probability[more.position] = more.probability
            new = more.position
        else:
            left = np.setdiff1d(np.arange(4000), rows)
            new = np.random.default_rng(len(rows)).choice(left, step, replace=False)
        rows = np.append(rows, new)


paths = {"suggested samples": loop(True), "random samples": loop(False)}
for name, path in paths.items():
    n, estimate, low, high = path[-1]
    print(f"{name}: {n:.0f} verified, accuracy {estimate:.3f} [{low:.3f}, {high:.3f}]")
predicted = names[model.calibrate(proba).argmax(axis=1)]
print(f"accuracy with all true labels: {np.mean(predicted == y):.3f}")

# %%
# Interval width against number of samples
# ----------------------------------------
import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(7, 3.4), layout="constrained")
for name, path in paths.items():
    ax.plot(path[:, 0], (path[:, 3] - path[:, 2]) / 2, "o-", label=name)
ax.axhline(0.02, color="k", lw=1, ls="--", label="target")
ax.set(xlabel="verified samples", ylabel="half width of the interval", ylim=(0, None))
ax.legend()

# %%
# The saving depends on the data: it is large if few samples are uncertain, and zero if
# all are. For T, random samples are as good. :doc:`/which_rows` has results.
