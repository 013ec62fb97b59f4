"""Data sets with noisy labels: CIFAR, and `make_noisy_data` for your own labelled data.

CIFAR requires torchvision: ``pip install noisytransition[vision]``.
"""

from ._cifar import (
    CIFAR10_CLASSES,
    CIFAR100_SUPERCLASSES,
    load_cifar10,
    load_cifar10h,
    load_cifar10n,
    load_cifar100,
)
from ._split import ComparisonData, make_noisy_data

__all__ = [
    "CIFAR10_CLASSES",
    "CIFAR100_SUPERCLASSES",
    "ComparisonData",
    "load_cifar10",
    "load_cifar10h",
    "load_cifar10n",
    "load_cifar100",
    "make_noisy_data",
]
