"""
Compare methods on your data
============================

Fit several methods with the same network, data and seeds, and look at every result.
"""

# %%
# The data, as a function of the seed
# -----------------------------------
# Wine from three vineyards, with 40 % of the labels wrong. Each seed has other noisy,
# clean and test rows.
import numpy as np
from sklearn.datasets import load_wine

from noisytransition import ComparisonData, flip_labels
from noisytransition.transition import pair_noise

X, y = load_wine(return_X_y=True)
X = (X - X.mean(axis=0)) / X.std(axis=0)


def wine(seed):
    """Draw 24 clean rows, 50 test rows, and noisy labels for the others."""
    order = np.random.default_rng(seed).permutation(len(y))
    clean, test, noisy = order[:24], order[24:74], order[74:]
    T = pair_noise(3, 0.4)
    labels = flip_labels(y[noisy], T, random_state=seed)
    return ComparisonData(
        X[noisy], labels, X[clean], y[clean], X[test], y[test], T, y_true=y[noisy]
    )


# %%
# The methods
# -----------
# Two need no clean rows (GCE, Forward), two learn no T (GCE, fine-tuning).
from noisytransition import (
    EMTransitionClassifier,
    FineTuningClassifier,
    ForwardClassifier,
    GCEClassifier,
    GLCClassifier,
    compare,
)

methods = {
    "GCE": GCEClassifier(),
    "Forward": ForwardClassifier(),
    "fine-tuning": FineTuningClassifier(),
    "GLC": GLCClassifier(),
    "EM": EMTransitionClassifier(),
}
result = compare(wine, methods, seeds=range(3), max_epochs=15, verbose=0)
print(result)

# %%
# A dot is a seed, a bar the mean. The dashed line is the error of the identity, as if
# there were no noise; the dotted line is the error of counting with the true labels.
result.plot()

# %%
# Differences
# -----------
# Paired over the seeds, with 95 % intervals. Where the interval has 0 in it, these
# seeds do not tell the two methods apart.
for row in result.differences("fine-tuning"):
    interval = f"[{row['low']:+.3f}, {row['high']:+.3f}]"
    print(f"{row['method']:30} {row['mean']:+.3f} {interval}")
