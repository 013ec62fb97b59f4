"""Networks and trainings of the zoo: parameters of a classifier, by the numbers of columns and classes."""

import torch
from torch import nn


def linear(n_columns, n_classes):
    """Logistic regression."""
    return {
        "module": nn.Linear,
        "module__in_features": n_columns,
        "module__out_features": n_classes,
        "batch_size": 64,
    }


NETWORKS = {
    "linear": linear,
    "default": lambda *_: {},
    "MLP 64-64": lambda *_: {"module__hidden": (64, 64), "batch_size": 64},
    "memorising": lambda *_: {
        "module__hidden": 256,
        "batch_size": 128,
        "max_epochs": 100,
        "optimizer__momentum": 0.9,
    },
    "under-trained": lambda *_: {"module__hidden": 64, "batch_size": 64, "lr": 0.01},
    "two epochs": lambda *_: {"max_epochs": 2},
    "Adam": lambda *_: {"module__hidden": 64, "batch_size": 64, "optimizer": torch.optim.Adam, "lr": 1e-3},
}

#: trained too little, on purpose
TOO_SHORT = ("under-trained", "two epochs")
