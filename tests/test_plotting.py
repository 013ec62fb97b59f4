"""Plots of T: panels, labels, colours and numbers; plots from estimators."""

import numpy as np
import pytest
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from noisytransition.plotting import TransitionMatrixDisplay

matplotlib = pytest.importorskip("matplotlib")
matplotlib.use("Agg")
from matplotlib import pyplot as plt  # noqa: E402
from matplotlib.colors import PowerNorm  # noqa: E402

T_TRUE = np.array([[0.7, 0.3, 0.0], [0.0, 0.9, 0.1], [0.2, 0.0, 0.8]])
T_LEARNED = np.array([[0.65, 0.348, 0.002], [0.004, 0.896, 0.1], [0.25, 0.05, 0.7]])
NAMES = ["cat", "dog", "frog"]


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def drawn(T, *, true_matrix=None, display_labels=None, **params):
    return TransitionMatrixDisplay(T, true_matrix=true_matrix, display_labels=display_labels).plot(**params)


def random_matrix(n_classes, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(n_classes, 0.3), n_classes)


# ---------------------------------------------------------------------------- the matrix
def test_one_panel_without_the_true_matrix():
    display = drawn(T_LEARNED, display_labels=NAMES)
    assert list(display.axes_) == [display.ax_]
    assert (display.ax_.get_xlabel(), display.ax_.get_ylabel()) == ("noisy label", "true label")
    for axis in (display.ax_.xaxis, display.ax_.yaxis):
        assert [label.get_text() for label in axis.get_ticklabels()] == NAMES
    np.testing.assert_array_equal(display.im_.get_array(), T_LEARNED)
    assert display.im_.get_clim() == (0, 1)


def test_three_panels_with_the_true_matrix():
    display = drawn(T_LEARNED, true_matrix=T_TRUE)
    assert [ax.get_title() for ax in display.axes_] == ["true", "learned", "learned - true"]
    for ax, matrix in zip(display.axes_, (T_TRUE, T_LEARNED, T_LEARNED - T_TRUE), strict=True):
        np.testing.assert_allclose(ax.images[0].get_array(), matrix)
    assert display.axes_[2].images[0].get_clim() == pytest.approx((-0.1, 0.1))
    assert display.ax_ is display.axes_[1]
    assert [len(ax.child_axes) for ax in display.axes_] == [0, 1, 1], "one colour bar for each scale"
    assert not any(ax.child_axes for ax in drawn(T_LEARNED, colorbar=False).axes_)


def test_an_exact_matrix_has_a_white_difference():
    display = drawn(T_TRUE * 0.9999 + 0.0001 / 3, true_matrix=T_TRUE)
    image = display.axes_[2].images[0]
    assert image.to_rgba(image.get_array())[..., :3].min() > 0.95
    assert not any(text.get_text() for text in display.axes_[2].texts)  # no negative zero either


def test_numbers_are_rounded_and_zeros_are_blank():
    text = drawn(T_LEARNED).text_
    assert [t.get_text() for t in text[0]] == ["0.65", "0.35", ""]
    assert text[0, 1].get_position() == (1, 0)  # x is the noisy label, y the true one
    assert [t.get_text() for t in drawn(T_LEARNED, values_format=".1%").text_[0]] == ["65.0%", "34.8%", "0.2%"]


@pytest.mark.parametrize(
    ("n_classes", "include_values", "written"), [(15, "auto", True), (40, "auto", False), (3, False, False)]
)
def test_numbers_where_legible(n_classes, include_values, written):
    display = drawn(random_matrix(n_classes), true_matrix=random_matrix(n_classes, 1), include_values=include_values)
    assert all(bool(ax.texts) == written for ax in display.axes_)
    display.figure_.draw_without_rendering()
    for ax in display.axes_:
        assert all(text.get_window_extent().width < ax.get_window_extent().width / n_classes for text in ax.texts)


def test_given_axes_and_image_keywords():
    figure, axes = plt.subplots(1, 3)
    display = drawn(T_LEARNED, true_matrix=T_TRUE, ax=axes, im_kw={"vmax": 0.5, "cmap": "magma"})
    assert list(display.axes_) == list(axes)
    assert display.figure_ is figure
    assert (display.im_.get_clim(), display.im_.get_cmap().name) == ((0, 0.5), "magma")
    norm = PowerNorm(0.5, vmin=0, vmax=1)
    assert drawn(T_LEARNED, im_kw={"norm": norm}).im_.norm is norm


def test_dollar_signs_in_names_are_text():
    names = ["$\\frac$", "<$50K", "50 $ to 100 $"]
    display = drawn(T_LEARNED, display_labels=names)
    display.figure_.canvas.draw()
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == names


def test_a_frame_of_the_true_T_is_read_by_its_names():
    pd = pytest.importorskip("pandas")
    order = [2, 0, 1]
    frame = pd.DataFrame(T_TRUE, NAMES, NAMES).iloc[order, order]
    display = TransitionMatrixDisplay(T_LEARNED, true_matrix=frame, display_labels=(name for name in NAMES))
    np.testing.assert_array_equal(display.true_matrix, T_TRUE)


# ---------------------------------------------------------------------------- estimators
class LearnsT(ClassifierMixin, BaseEstimator):
    """Replacement for a classifier of the library, with a given T."""

    def __init__(self, weight=0.5):
        self.weight = weight

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        eye = np.eye(len(self.classes_))
        self.transition_matrix_ = (1 - self.weight) * eye + self.weight / len(eye)
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


DATA = np.arange(60.0).reshape(30, 2), np.array(NAMES)[np.arange(30) % 3]
SEARCH = GridSearchCV(LearnsT(), {"weight": [0.3]}, cv=2)


@pytest.mark.parametrize(
    "estimator", [LearnsT(0.3), make_pipeline(StandardScaler(), LearnsT(0.3)), SEARCH, make_pipeline(SEARCH)]
)
def test_from_an_estimator_a_pipeline_or_a_search(estimator):
    display = TransitionMatrixDisplay.from_estimator(estimator.fit(*DATA), true_matrix=T_TRUE, values_format=".1f")
    np.testing.assert_array_equal(display.transition_matrix, LearnsT(0.3).fit(*DATA).transition_matrix_)
    assert display.display_labels == NAMES
    assert display.text_[0, 0].get_text() == "0.8"


def test_estimators_without_T():
    for unfitted in (LearnsT(), make_pipeline(LearnsT()), GridSearchCV(LearnsT(), {"weight": [0.3]})):
        with pytest.raises(NotFittedError, match="not fitted"):
            TransitionMatrixDisplay.from_estimator(unfitted)
    with pytest.raises(ValueError, match="LogisticRegression"):
        TransitionMatrixDisplay.from_estimator(LogisticRegression().fit(*DATA))


# ---------------------------------------------------------------------------- refused; others are in tests/attacks
def test_a_name_for_each_class():
    with pytest.raises(ValueError, match="number of labels"):
        TransitionMatrixDisplay(T_LEARNED, display_labels=NAMES[:2]).plot()


def test_three_panels_need_three_axes():
    with pytest.raises(ValueError, match="1 Axes"):
        TransitionMatrixDisplay(T_LEARNED, true_matrix=T_TRUE).plot(ax=plt.gca())
