"""Plots of a transition matrix, of its values during training, and of comparisons.

``T[i, j] = P(noisy label = j | true label = i)``: a row is a true label, a column a noisy one, both in sorted
class order. matplotlib is imported on use: ``pip install noisytransition[plot]``.
"""

from ._comparison import plot_comparison
from ._display import TransitionMatrixDisplay
from ._history import plot_transition_history

__all__ = ["TransitionMatrixDisplay", "plot_comparison", "plot_transition_history"]
