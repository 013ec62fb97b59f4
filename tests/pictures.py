"""What tests of pictures share; where matplotlib is missing, a file that imports this is skipped."""

import numpy as np
import pytest

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.colors import PowerNorm, to_rgb  # noqa: E402

__all__ = ["NAMES", "T_LEARNED", "T_TRUE", "PowerNorm", "plt", "to_rgb"]

T_TRUE = np.array([[0.7, 0.3, 0.0], [0.0, 0.9, 0.1], [0.2, 0.0, 0.8]])
T_LEARNED = np.array([[0.65, 0.348, 0.002], [0.004, 0.896, 0.1], [0.25, 0.05, 0.7]])
NAMES = ["cat", "dog", "frog"]
