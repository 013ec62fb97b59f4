"""The path of T over epochs."""

from types import SimpleNamespace

import numpy as np
import pytest
from pictures import NAMES, T_LEARNED, T_TRUE, plt

from noisytransition.plotting import plot_transition_history
from noisytransition.transition import transition_error


@pytest.fixture
def history():
    return np.stack([(1 - w) * np.eye(3) + w * T_LEARNED for w in np.linspace(0, 1, 6)])


def test_history_draws_the_largest_entries(history):
    ax = plot_transition_history(history, top=2, display_labels=NAMES)
    lines = ax.get_lines()
    assert [line.get_label() for line in lines] == ["cat → dog", "frog → cat"]
    np.testing.assert_array_equal(lines[0].get_xdata(), np.arange(6))
    np.testing.assert_array_equal(lines[0].get_ydata(), history[:, 0, 1])
    np.testing.assert_array_equal(lines[1].get_ydata(), history[:, 2, 0])
    assert ax.get_xlabel() == "epoch"
    assert [text.get_text() for text in ax.get_legend().get_texts()] == ["cat → dog", "frog → cat"]


def test_history_beside_the_truth(history):
    panels = plot_transition_history(history, true_matrix=T_TRUE, top=2)
    error, identity = panels[0].get_lines()
    np.testing.assert_allclose(error.get_ydata(), [np.abs(T - T_TRUE).sum() / T_TRUE.sum() for T in history])
    np.testing.assert_allclose(error.get_ydata()[-1], transition_error(T_TRUE, T_LEARNED))
    np.testing.assert_allclose(identity.get_ydata(), transition_error(T_TRUE, np.eye(3)))
    assert identity.get_label() == "identity"
    entry, true_value, *_ = panels[1].get_lines()
    np.testing.assert_array_equal(true_value.get_ydata(), T_TRUE[0, 1])
    assert entry.get_color() == true_value.get_color()
    assert entry.get_label() == "0 → 1"


def test_an_entry_that_was_missed_is_drawn(history):
    truth = np.array([[0.5, 0.0, 0.5], [0, 1, 0], [0, 0, 1.0]])
    panels = plot_transition_history(history, true_matrix=truth, top=1)
    assert panels[1].get_lines()[0].get_label() == "0 → 2"


def test_history_of_some_classes(history):
    ax = plot_transition_history(history, classes=["dog"], display_labels=NAMES)
    assert [line.get_label() for line in ax.get_lines()] == ["dog → frog", "dog → cat"]


def test_history_from_an_estimator_like_object():
    fitted = SimpleNamespace(transition_history_=np.stack([np.eye(2)] * 3), classes_=np.array([1, 7]))
    labels = [line.get_label() for line in plot_transition_history(fitted).get_lines()]
    assert labels == ["1 → 7", "7 → 1"]


def test_history_in_given_axes(history):
    _, ax = plt.subplots()
    assert plot_transition_history(history, ax=ax) is ax
    _, axes = plt.subplots(1, 2)
    assert list(plot_transition_history(history, true_matrix=T_TRUE, ax=axes)) == list(axes)
    with pytest.raises(ValueError, match="ax holds 1 Axes but the panels are 2"):
        plot_transition_history(history, true_matrix=T_TRUE, ax=ax)


def test_invalid_histories(history):
    with pytest.raises(ValueError, match=r"shape \(3, 3\).*n_epochs \+ 1"):
        plot_transition_history(T_LEARNED)
    with pytest.raises(ValueError, match="true_matrix has 2 classes"):
        plot_transition_history(history, true_matrix=np.eye(2))
    with pytest.raises(ValueError, match="top=0"):
        plot_transition_history(history, top=0)
    with pytest.raises(ValueError, match=r"'cow'.*'frog'"):
        plot_transition_history(history, classes=["cow"], display_labels=NAMES)
