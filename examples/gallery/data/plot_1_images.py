"""
Images: your own network, augmentation
======================================

Train your own convolutional network on images with wrong labels, with random shifts as
augmentation, and show the wrong labels as pictures.
"""

# %%
# The images show handwritten digits, as bytes. 40 % of the labels are the next digit.
# 100 samples are verified.
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from noisytransition import flip_labels
from noisytransition.transition import pair_noise

images, y = load_digits(return_X_y=True)
images = (images * 255 / 16).astype(np.uint8).reshape(-1, 1, 8, 8)
X, X_test, y, y_test = train_test_split(images, y, random_state=0)
y_noisy = flip_labels(y, pair_noise(10, 0.4), random_state=0)
checked = np.where(np.arange(len(y)) < 100, y, -1)  # true labels; -1: not verified

# %%
# The network
# -----------
# Use any torch module that returns logits. Bytes are converted to floats without
# scaling, so the module divides them by 255.
import torch
from torch import nn


class SmallCNN(nn.Module):
    """A convolution and a linear layer."""

    def __init__(self, channels=16):
        super().__init__()
        self.convolution = nn.Conv2d(1, channels, 3, padding=1)
        self.linear = nn.Linear(channels * 16, 10)

    def forward(self, x):
        """Logits of shape (n_images, 10)."""
        x = nn.functional.max_pool2d(self.convolution(x / 255).relu(), 2)
        return self.linear(x.flatten(1))


# %%
# Augmentation
# ------------
# ``batch_transform`` transforms a batch of training images on the device of the
# network. Predictions do not use it.


def random_shift(x):
    """Shift the images of a batch by up to one pixel, with zero padding."""
    down, right = torch.randint(3, (2,)).tolist()
    padded = nn.functional.pad(x, (1, 1, 1, 1))
    return padded[..., down : down + 8, right : right + 8]


# %%
# The fit
# -------
# Parameters of skorch and of the optimiser have skorch's names. The simple ways train
# the same network on all labels as if they were correct, or on the verified labels.
from noisytransition import CrossEntropyClassifier, EMTransitionClassifier

shared = {"batch_transform": random_shift, "lr": 0.005, "random_state": 0}
clf = EMTransitionClassifier(SmallCNN, max_epochs=12, **shared)
clf.fit(X, y_noisy, y_verified=checked)
ignoring = CrossEntropyClassifier(SmallCNN, max_epochs=12, **shared)
ignoring.fit(X, y_noisy)
verified_only = CrossEntropyClassifier(SmallCNN, max_epochs=400, **shared)
verified_only.fit(X[:100], y[:100])
print(f"test accuracy: {clf.score(X_test, y_test):.3f}")
print(f"ignoring the noise: {ignoring.score(X_test, y_test):.3f}")
print(f"verified labels only: {verified_only.score(X_test, y_test):.3f}")

# %%
# Wrong labels
# ------------
# Each title shows the given and the suggested label.
import matplotlib.pyplot as plt

issues = clf.find_label_issues()
wrong = (y_noisy != y)[issues.position].mean()
print(f"{len(issues)} labels are listed, and {wrong:.0%} of them are wrong")
fig, axes = plt.subplots(2, 4, figsize=(6, 3.6), layout="constrained")
for ax, issue in zip(axes.flat, issues[::50].itertuples(), strict=False):
    ax.imshow(X[issue.position, 0], cmap="gray_r")
    ax.set_title(f"{issue.given_label} → {issue.suggested_label}", color="tab:red")
    ax.axis("off")
