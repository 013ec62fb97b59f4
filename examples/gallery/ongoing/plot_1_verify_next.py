"""
Which samples to verify next
============================

Verify some samples, fit, and let the model suggest more, until the interval of the
accuracy is short enough.
"""

# %%
# 4000 simulated samples of two classes, with noisy labels. Most are easy; 30 % are
# close to the other class.
import numpy as np

from noisytransition import flip_labels

rng = np.random.default_rng(0)
y = rng.choice(2, size=4000, p=[0.3, 0.7])
distance = np.where(rng.random(4000) < 0.7, 3.0, 0.5)
X = rng.normal(size=(4000, 2))
X[:, 0] += distance * (2 * y - 1)
y_noisy = flip_labels(y, [[0.8, 0.2], [0.1, 0.9]], random_state=1)

# %%
# Verify 50 random samples first. ``plan_verification`` estimates how many more are
# needed to know the accuracy of the classifier within ± 0.02.
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from noisytransition import LabelNoiseModel

proba = cross_val_predict(LogisticRegression(), X, y_noisy, method="predict_proba")
first = rng.choice(4000, 50, replace=False)
verified = np.full(4000, -1)  # -1: not verified
verified[first] = y[first]  # in practice: a person verifies these samples
model = LabelNoiseModel().fit(proba, y_noisy, y_verified=verified)
print("{:.3f} [{:.3f}, {:.3f}]".format(*model.accuracy_interval()))
print(model.plan_verification("accuracy", width=0.02))

# %%
# Suggested samples
# -----------------
# ``suggest_samples`` prefers samples for which the correctness of the classifier is
# uncertain. Half of the draw is random.
import matplotlib.pyplot as plt

chosen = model.suggest_samples(200, target="accuracy", random_state=0).position
fig, ax = plt.subplots(figsize=(6, 4), layout="constrained")
ax.scatter(*X.T, s=5, color="lightgrey", label="all samples")
ax.scatter(*X[chosen].T, s=16, color="tab:orange", label="suggested")
ax.set(xlabel="first feature", ylabel="second feature")
ax.legend()

# %%
# Verify, fit, stop
# -----------------
# Each suggestion has the probability of its draw. The next fit weights the samples by
# its inverse, so the accuracy remains unbiased. The simple way verifies random samples.


def verify(suggest, width=0.02, step=25):
    """Verify samples in steps until the interval is short enough."""
    verified, probability = np.full(4000, -1), np.ones(4000)
    verified[first] = y[first]
    while True:
        model = LabelNoiseModel().fit(
            proba, y_noisy, y_verified=verified, verified_probability=probability
        )
        interval = model.accuracy_interval()
        n_verified = np.sum(verified >= 0)
        if interval.upper - interval.lower <= 2 * width:
            predicted = model.calibrate(proba).argmax(axis=1)
            return n_verified, interval, np.mean(predicted == y)
        if suggest:
            more = model.suggest_samples(step, "accuracy", random_state=n_verified)
            probability[more.position] = more.probability
            position = more.position
        else:
            position = rng.choice(np.flatnonzero(verified < 0), step, replace=False)
        verified[position] = y[position]


for name, suggest in {"suggested": True, "random": False}.items():
    n_verified, (estimate, low, high), true = verify(suggest)
    print(f"{n_verified} {name} samples")
    print(f"accuracy {estimate:.3f} [{low:.3f}, {high:.3f}], true {true:.3f}")

# %%
# The saving depends on the data: it is large if few samples are uncertain, and zero if
# all are. For T, random samples are as good. :doc:`/which_samples` has results.
