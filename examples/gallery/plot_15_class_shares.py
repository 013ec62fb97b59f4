"""
Estimate class shares
=====================

Counts of noisy labels are biased, and a hundred verified labels are few. Combined with
features, they give class shares with valid intervals.
"""

# %%
# Support tickets
# ---------------
# 3000 simulated tickets of three types. Customers file a third of the complaints as
# questions.
import numpy as np
import pandas as pd

from noisytransition import flip_labels

rng = np.random.default_rng(0)
names = np.array(["complaint", "order", "question"])
centres = np.array([[0, 0], [2.5, 0], [0, 2.5]])


def tickets(shares, n=3000):
    """Draw features, true types and the noisy types that customers chose."""
    codes = rng.choice(3, p=shares, size=n)
    X = centres[codes] + rng.normal(size=(n, 2))
    T = [[0.6, 0.05, 0.35], [0.0, 0.95, 0.05], [0.05, 0.05, 0.9]]
    noisy = flip_labels(codes, T, random_state=int(rng.integers(1000)))
    return X, names[codes], names[noisy]


X, y, y_noisy = tickets([0.3, 0.5, 0.2])
labels = pd.DataFrame({"label": y_noisy})
checked = rng.choice(len(y), 100, replace=False)
labels["verified"] = pd.Series(y[checked], index=checked)

# %%
# The model
# ---------
# `LabelNoiseModel` takes out-of-sample probabilities of any classifier that was trained
# on the noisy labels.
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict

from noisytransition import LabelNoiseModel

classifier = LogisticRegression()
proba = cross_val_predict(classifier, X, y_noisy, method="predict_proba")
model = LabelNoiseModel().fit(proba, labels)
shares = model.class_shares(level=0.9)
print(shares.round(3))

# %%
# The accuracy of the noisy labels and of the classifier, with intervals:
for of in ("labels", "classifier"):
    print(of, "{:.2f} [{:.2f}, {:.2f}]".format(*model.accuracy_interval(of=of)))

# %%
# The next month
# --------------
# There are many more complaints, and no verified labels. The probabilities of the same
# classifier are sufficient; noisy labels, if available, help.
X_now, y_now, _ = tickets([0.6, 0.25, 0.15])
classifier.fit(X, y_noisy)
now = model.class_shares(proba=classifier.predict_proba(X_now))
print(now.round(3))

# %%
# Comparison
# ----------
# Black crosses are the true shares. Verified tickets alone have wide intervals. Counts
# of noisy labels are biased. The next month has no verified tickets.
import matplotlib.pyplot as plt
from scipy.stats import beta

k = pd.Series(y[checked]).value_counts()[names].to_numpy()
low, high = beta.ppf([[0.05], [0.95]], k + 0.5, 100 - k + 0.5)
alone = pd.DataFrame({"share": k / 100, "lower": low, "upper": high}, index=names)

fig, axes = plt.subplots(1, 2, figsize=(9, 3.4), sharey=True, layout="constrained")
months = {
    "This month": (y, {"100 verified alone": alone, "class_shares": shares}),
    "The next month": (y_now, {"class_shares": now}),
}
counts = {"This month": y_noisy}
colours = {"100 verified alone": "tab:orange", "class_shares": "tab:blue"}
for ax, (month, (truth, tables)) in zip(axes, months.items(), strict=True):
    for offset, (name, table) in zip((-0.15, 0.15), tables.items(), strict=False):
        error = np.abs(table[["lower", "upper"]].to_numpy().T - table.share.to_numpy())
        places = np.arange(3) + offset
        ax.errorbar(
            places,
            table.share,
            error,
            fmt="o",
            capsize=4,
            color=colours[name],
            label=name,
        )
    if month in counts:
        share = pd.Series(counts[month]).value_counts(normalize=True)[names]
        ax.plot(range(3), share, "v", color="tab:red", label="counts of labels")
    share = pd.Series(truth).value_counts(normalize=True)[names]
    ax.plot(range(3), share, "kx", ms=9, label="truth")
    ax.set(title=month, xticks=range(3), xticklabels=names, xlim=(-0.5, 2.5))
    ax.legend()
axes[0].set_ylabel("share")
plt.show()
