"""
Your own network, images, augmentation
======================================

Train your own convolutional network on noisy images, with random shifts as
augmentation.
"""

# %%
# The images show the digits 0 to 4, as bytes. 40 % of the labels are the next digit.
# 100 samples are verified.
import numpy as np
from sklearn.datasets import load_digits
from sklearn.model_selection import train_test_split

from noisytransition import flip_labels
from noisytransition.transition import pair_noise

images, y = load_digits(n_class=5, return_X_y=True)
images = (images * 255 / 16).astype(np.uint8).reshape(-1, 1, 8, 8)
X, X_test, y, y_test = train_test_split(images, y, random_state=0)
T = pair_noise(5, 0.4)
y_noisy = flip_labels(y, T, random_state=0)
checked = np.where(np.arange(len(y)) < 100, y, -1)  # true labels; -1: not verified

# %%
# The network
# -----------
# Use any torch module that returns logits. Bytes are converted to floats without
# scaling, so the module divides them by 255.
from torch import nn


class SmallCNN(nn.Module):
    """Two convolutions and a linear layer."""

    def __init__(self, channels=16):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, channels, 3, padding=1),
            nn.ReLU(),
            nn.Conv2d(channels, channels, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(channels * 16, 5),
        )

    def forward(self, x):
        """Logits of shape (n_images, 5)."""
        return self.layers(x / 255)


# %%
# Augmentation
# ------------
# ``batch_transform`` transforms a batch of training images on the device of the
# network. Predictions do not use it.
import torch


def random_shift(x):
    """Shift the images of a batch by up to one pixel, with zero padding."""
    down, right = torch.randint(3, (2,)).tolist()
    padded = nn.functional.pad(x, (1, 1, 1, 1))
    return padded[..., down : down + 8, right : right + 8]


# %%
# The fit
# -------
# ``cv=None`` reduces EM to three trainings instead of five.
# Parameters of skorch and of the optimiser have skorch's names.
from noisytransition import EMTransitionClassifier, transition_error

shared = {
    "module__channels": 16,
    "optimizer": torch.optim.Adam,
    "lr": 0.003,
    "max_epochs": 15,
    "random_state": 0,
}
for name, transform in [("no augmentation", None), ("random shifts", random_shift)]:
    clf = EMTransitionClassifier(SmallCNN, batch_transform=transform, cv=None, **shared)
    clf.fit(X, y_noisy, y_verified=checked)
    error = transition_error(T, clf.transition_matrix_)
    print(f"{name}: accuracy {clf.score(X_test, y_test):.3f}, error of T {error:.3f}")

# %%
print(clf.transition_matrix_.round(2))

# %%
# Wrong labels
# ------------
# Each title shows the noisy label and the most probable true label.
import matplotlib.pyplot as plt

issues = clf.find_label_issues(X, y_noisy, y_verified=checked)[:100]
fig, axes = plt.subplots(2, 6, figsize=(8, 3.4))
for ax, issue in zip(axes.flat, issues[::8].itertuples(), strict=False):
    ax.imshow(X[issue.position, 0], cmap="gray_r")
    ax.set_title(f"{issue.given_label} → {issue.suggested_label}")
    ax.axis("off")
