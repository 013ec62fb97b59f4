"""
First fit
=========

Train a classifier and estimate the noise transition matrix T from digits with 20 %
wrong labels, using 100 verified labels.
"""

# %%
# Noisy labels
# ------------
# Handwritten digits. A 7 is often labelled 1, a 2 is labelled 7, a 3 is labelled 8, and
# 5 and 6 are exchanged. Your labels are noisy already; here we add the noise, to
# compare with the true labels.
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from noisytransition import flip_labels
from noisytransition.transition import digits_noise

X, y = load_digits(return_X_y=True)
X, X_test, y, y_test = train_test_split(X / 16, y, random_state=0)
y_noisy = flip_labels(y, digits_noise(0.4), random_state=0)
print(f"{np.mean(y_noisy != y):.0%} of {len(y)} labels are wrong")

# %%
# Verified labels
# ---------------
# 100 random samples are verified. A second column has their true labels, and NaN in all
# other rows.
import pandas as pd

checked = np.random.default_rng(0).choice(len(y), 100, replace=False)
labels = pd.DataFrame({"label": y_noisy})
labels.loc[checked, "verified"] = y[checked]
labels.head()

# %%
# The fit
# -------
# By default, the classifier trains a small MLP. The simple ways train the same MLP on
# all labels as if they were correct, or on the verified labels only.
from noisytransition import CrossEntropyClassifier, EMTransitionClassifier

clf = EMTransitionClassifier(random_state=0).fit(X, labels)
ignoring = CrossEntropyClassifier(random_state=0).fit(X, y_noisy)
verified_only = CrossEntropyClassifier(random_state=0).fit(X[checked], y[checked])
print(f"test accuracy: {clf.score(X_test, y_test):.3f}")
print(f"ignoring the noise: {ignoring.score(X_test, y_test):.3f}")
print(f"verified labels only: {verified_only.score(X_test, y_test):.3f}")

# %%
# The noise transition matrix
# ---------------------------
# The most probable flips, with 90 % intervals:
print(clf.transition_summary(top=8))

# %%
# Rows of T are true labels, columns are noisy labels. All five flips are found, with
# probabilities near 0.4:
from sklearn.metrics import ConfusionMatrixDisplay

display = ConfusionMatrixDisplay(clf.transition_matrix_)
display.plot(cmap="Blues", values_format=".2f")
display.ax_.set(xlabel="noisy label", ylabel="true label")

# %%
# Wrong labels
# ------------
# `find_label_issues` returns a data frame of probably wrong labels, the worst first.
# The images show every 30th:
import matplotlib.pyplot as plt

issues = clf.find_label_issues()
wrong = (y_noisy != y)[issues.position]
print(f"{len(issues)} labels are listed, and {wrong.mean():.0%} of them are wrong")
print(issues.head())
fig, axes = plt.subplots(1, 8, figsize=(9, 1.8))
for ax, issue in zip(axes, issues[:240:30].itertuples(), strict=True):
    ax.imshow(X[issue.position].reshape(8, 8), cmap="gray_r")
    ax.set_title(f"{issue.given_label} → {issue.suggested_label}")
    ax.axis("off")
