"""Networks and training parameters of the zoo, as functions of the number of columns and classes."""

import torch
from torch import nn


def linear(n_columns, n_classes):
    """Return the parameters of logistic regression."""
    return {
        "module": nn.Linear,
        "module__in_features": n_columns,
        "module__out_features": n_classes,
        "batch_size": 64,
    }


class SmallCNN(nn.Sequential):
    """Network of two convolutions for images with one channel."""

    def __init__(self, n_classes):
        super().__init__(
            nn.Conv2d(1, 16, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.Conv2d(16, 32, 5, stride=2, padding=2),
            nn.ReLU(),
            nn.AdaptiveAvgPool2d(4),
            nn.Flatten(),
            nn.Linear(512, n_classes),
        )


NETWORKS = {
    "linear": linear,
    "default": lambda *_: {},
    "built-in linear": lambda *_: {"module": "linear"},
    "convolutions": lambda _, n_classes: {"module": SmallCNN, "module__n_classes": n_classes},
    "MLP 64-64": lambda *_: {"module__hidden": (64, 64), "batch_size": 64},
    "memorising": lambda *_: {
        "module__hidden": 256,
        "batch_size": 128,
        "max_epochs": 100,
        "optimizer": "sgd",
        "lr": 0.1,
        "optimizer__momentum": 0.9,
    },
    "under-trained": lambda *_: {"module__hidden": 64, "batch_size": 64, "optimizer": "sgd", "lr": 0.01},
    "two epochs": lambda *_: {"max_epochs": 2},
    "Adam": lambda *_: {"module__hidden": 64, "batch_size": 64, "optimizer": torch.optim.Adam, "lr": 1e-3},
}

#: too few epochs, on purpose
TOO_SHORT = ("under-trained", "two epochs")
