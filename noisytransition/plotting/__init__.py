"""Plots of a transition matrix, and of its values during training.

``T[i, j] = P(noisy label = j | true label = i)``: a row is a true label, a column a noisy one, both in sorted
class order. matplotlib is imported on use: ``pip install noisytransition[plot]``.
"""

from ._display import TransitionMatrixDisplay
from ._history import plot_transition_history

__all__ = ["TransitionMatrixDisplay", "plot_transition_history"]
