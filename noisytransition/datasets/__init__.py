"""Data sets of the literature on noisy labels, as `ComparisonData`: noisy rows, clean meta set, test set.

Files are read from a folder of the user's. Nothing is downloaded, unless ``download=True`` is passed where torchvision
can do it. Images need the extra ``vision`` (torchvision).
"""

from ._cifar import load_cifar10, load_cifar100
from ._cinic10 import load_cinic10
from ._classes import CIFAR10_CLASSES, CIFAR100_CLASSES, CIFAR100_SUPERCLASS_NAMES, CIFAR100_SUPERCLASSES
from ._clothing1m import CleanPart, load_clothing1m, load_clothing1m_part
from ._images import ImageFiles
from ._npy import load_npy
from ._people import load_cifar10h, load_cifar10n
from ._split import make_noisy_data
from ._test_sets import load_cifar10_1
from ._tiny_imagenet import load_tiny_imagenet

__all__ = [
    "CIFAR10_CLASSES",
    "CIFAR100_CLASSES",
    "CIFAR100_SUPERCLASSES",
    "CIFAR100_SUPERCLASS_NAMES",
    "CleanPart",
    "ImageFiles",
    "load_cifar10",
    "load_cifar10_1",
    "load_cifar10h",
    "load_cifar10n",
    "load_cifar100",
    "load_cinic10",
    "load_clothing1m",
    "load_clothing1m_part",
    "load_npy",
    "load_tiny_imagenet",
    "make_noisy_data",
]
