"""
Compare methods on your data
============================

Fit several methods with the same network, data and seeds, and compare the results.
"""

# %%
# The data, as a function of the seed
# -----------------------------------
# Wine from three vineyards, with 40 % wrong labels. Each seed draws other noisy, clean
# and test samples.
import numpy as np
from sklearn.datasets import load_wine

from noisytransition.datasets import make_noisy_data
from noisytransition.transition import pair_noise

X, y = load_wine(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)


def wine(seed):
    """Draw 50 test samples, 24 clean samples, and noisy labels for the others."""
    order = np.random.default_rng(seed).permutation(len(y))
    test, train = order[:50], order[50:]
    return make_noisy_data(
        X[train],
        y[train],
        X[test],
        y[test],
        noise=pair_noise(3, 0.4),
        n_meta=24,
        random_state=seed,
    )


# %%
# The methods
# -----------
# GCE and Forward need no clean samples; GCE and fine-tuning do not estimate T. Use
# ``METHODS["GLC"].as_published()`` for a method exactly as in its paper.
from noisytransition import compare
from noisytransition.methods import METHODS

names = ["GCE", "forward", "fine-tuning", "GLC", "EM"]
methods = {name: METHODS[name](max_epochs=15) for name in names}
table = compare(wine, methods, seeds=range(3))
table.groupby("method", sort=False)[["accuracy", "transition_error", "steps"]].mean()

# %%
# Each dot is a seed. The row "identity" has the error of T without any noise, and
# "sampling limit" the expected error of counting with the true labels.
import matplotlib.pyplot as plt

_, panels = plt.subplots(1, 2, sharey=True, figsize=(9, 3), layout="constrained")
for ax, column in zip(panels, ["accuracy", "transition_error"], strict=True):
    ax.plot(table[column], table["method"], "o", alpha=0.5)
    ax.set(xlabel=column)
    ax.grid(axis="x", linewidth=0.4)

# %%
# Differences
# -----------
# Differences are paired over the seeds, with 95 % intervals. If the interval contains
# 0, these seeds do not show which method is better.
from scipy.stats import ttest_rel

wide = table.pivot(index="seed", columns="method", values="accuracy")
for name in names:
    if name != "fine-tuning":
        test = ttest_rel(wide[name], wide["fine-tuning"])
        low, high = test.confidence_interval()
        difference = (wide[name] - wide["fine-tuning"]).mean()
        print(f"{name:12} {difference:+.3f} [{low:+.3f}, {high:+.3f}]")
