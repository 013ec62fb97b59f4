"""Pictures of T: panels, labels, colours and numbers; from estimators, also of its path."""

import subprocess
import sys
from itertools import pairwise

import numpy as np
import pytest
from pictures import NAMES, T_LEARNED, T_TRUE, PowerNorm, plt, to_rgb
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.exceptions import NotFittedError
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from noisytransition.plotting import TransitionMatrixDisplay, plot_transition_history

CIFAR = ["airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck"]


class LearnsT(ClassifierMixin, BaseEstimator):
    """Stands for a classifier of the library: T is given, not learned."""

    def __init__(self, weight=0.5):
        self.weight = weight

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        eye = np.eye(len(self.classes_))
        steps = np.linspace(0, self.weight, 4)
        self.transition_history_ = np.stack([(1 - w) * eye + w / len(eye) for w in steps])
        self.transition_matrix_ = self.transition_history_[-1]
        return self

    def predict(self, X):
        return np.full(len(X), self.classes_[0])


@pytest.fixture
def data():
    X = np.arange(60.0).reshape(30, 2)
    return X, np.array(NAMES)[np.arange(30) % 3]


def tick_names(axis):
    return [label.get_text() for label in axis.get_ticklabels()]


def random_matrix(n_classes, seed=0):
    return np.random.default_rng(seed).dirichlet(np.full(n_classes, 0.3), n_classes)


def overlap(labels):
    """Whether horizontal texts of one axis cover each other."""
    boxes = [label.get_window_extent() for label in labels]
    return any(a.overlaps(b) for a, b in pairwise(boxes))


# --- the matrix ---------------------------------------------------------------------------------------------


def test_one_panel_without_the_true_matrix():
    display = TransitionMatrixDisplay(T_LEARNED, display_labels=NAMES)
    assert display.plot() is display
    assert list(display.axes_) == [display.ax_]
    assert display.figure_ is display.ax_.figure
    assert display.ax_.get_xlabel() == "noisy label"
    assert display.ax_.get_ylabel() == "true label"
    assert tick_names(display.ax_.xaxis) == NAMES
    assert tick_names(display.ax_.yaxis) == NAMES
    np.testing.assert_array_equal(display.im_.get_array(), T_LEARNED)
    assert display.im_.get_clim() == (0, 1)


def test_three_panels_with_the_true_matrix():
    display = TransitionMatrixDisplay.from_matrix(T_LEARNED, true_matrix=T_TRUE)
    assert [ax.get_title() for ax in display.axes_] == ["true", "learned", "learned - true"]
    true, learned, difference = (ax.images[0] for ax in display.axes_)
    np.testing.assert_array_equal(true.get_array(), T_TRUE)
    np.testing.assert_array_equal(learned.get_array(), T_LEARNED)
    np.testing.assert_allclose(difference.get_array(), T_LEARNED - T_TRUE)
    assert true.get_clim() == learned.get_clim() == (0, 1)
    assert difference.get_clim() == pytest.approx((-0.1, 0.1))
    assert display.im_ is learned
    assert display.ax_ is display.axes_[1]


def test_an_exact_matrix_has_a_white_difference():
    display = TransitionMatrixDisplay.from_matrix(T_TRUE, true_matrix=T_TRUE)
    image = display.axes_[2].images[0]
    low, high = image.get_clim()
    assert low == -high < 0
    assert image.to_rgba(image.get_array())[..., :3].min() > 0.95
    assert not any(text.get_text() for text in display.axes_[2].texts)


def test_numbers_are_rounded_and_zeros_are_blank():
    text = TransitionMatrixDisplay.from_matrix(T_LEARNED).text_
    assert [t.get_text() for t in text[0]] == ["0.65", "0.35", ""]
    assert text[0, 1].get_position() == (1, 0)  # x is the noisy label, y the true one
    percent = TransitionMatrixDisplay.from_matrix(T_LEARNED, values_format=".1%").text_
    assert [t.get_text() for t in percent[0]] == ["65.0%", "34.8%", "0.2%"]


def test_no_negative_zero_in_the_difference():
    near = T_TRUE * 0.999 + 0.001 / len(T_TRUE)
    display = TransitionMatrixDisplay.from_matrix(near, true_matrix=T_TRUE)
    assert {text.get_text() for text in display.axes_[2].texts} == {""}


@pytest.mark.parametrize(
    ("n_classes", "include_values", "written"),
    [(3, "auto", True), (12, "auto", True), (100, "auto", False), (3, False, False), (30, True, True)],
)
@pytest.mark.parametrize("with_truth", [False, True])
def test_numbers_where_legible(n_classes, include_values, written, with_truth):
    T, truth = random_matrix(n_classes), random_matrix(n_classes, seed=1) if with_truth else None
    display = TransitionMatrixDisplay.from_matrix(T, true_matrix=truth, include_values=include_values)
    assert (display.text_ is not None) == written
    assert all(bool(ax.texts) == written for ax in display.axes_)


@pytest.mark.parametrize("n_classes", [3, 10, 12])
def test_numbers_fit_their_cells(n_classes):
    truth = random_matrix(n_classes, seed=1)
    display = TransitionMatrixDisplay.from_matrix(random_matrix(n_classes), true_matrix=truth)
    display.figure_.draw_without_rendering()
    for ax in display.axes_:
        cell = ax.get_window_extent().width / n_classes
        assert max(text.get_window_extent().width for text in ax.texts) < cell


@pytest.mark.parametrize("cmap", ["Blues", "viridis", "gray"])
def test_numbers_contrast_with_their_cells(cmap):
    T = np.array([[0.02, 0.98], [0.95, 0.05]])
    display = TransitionMatrixDisplay.from_matrix(T, cmap=cmap)
    cells = display.im_.to_rgba(T)[..., :3].mean(axis=-1)
    texts = np.vectorize(lambda text: np.mean(to_rgb(text.get_color())))(display.text_)
    assert (np.abs(cells - texts) > 0.4).all()


@pytest.mark.parametrize("names", [None, CIFAR])
@pytest.mark.parametrize("with_truth", [False, True])
def test_nothing_is_clipped_and_colour_bars_are_as_tall_as_their_panel(names, with_truth):
    truth = random_matrix(10, seed=1) if with_truth else None
    display = TransitionMatrixDisplay.from_matrix(random_matrix(10), true_matrix=truth, display_labels=names)
    figure = display.figure_
    figure.draw_without_rendering()
    drawn, page = figure.get_tightbbox(), figure.bbox_inches
    assert drawn.x0 >= -0.01
    assert drawn.y0 >= -0.01
    assert drawn.x1 <= page.x1 + 0.01
    assert drawn.y1 <= page.y1 + 0.01
    for ax in display.axes_[-2:]:
        for bar in ax.child_axes:
            assert bar.get_window_extent().height == pytest.approx(ax.get_window_extent().height)


def test_colour_bars_one_per_scale():
    display = TransitionMatrixDisplay.from_matrix(T_LEARNED, true_matrix=T_TRUE)
    assert [len(ax.child_axes) for ax in display.axes_] == [0, 1, 1]
    display = TransitionMatrixDisplay.from_matrix(T_LEARNED, true_matrix=T_TRUE, colorbar=False)
    assert [len(ax.child_axes) for ax in display.axes_] == [0, 0, 0]


def test_many_classes_thin_the_ticks():
    display = TransitionMatrixDisplay.from_matrix(random_matrix(100))
    display.figure_.draw_without_rendering()
    for axis in (display.ax_.xaxis, display.ax_.yaxis):
        assert 5 <= len(axis.get_ticklabels()) <= 25
        assert not overlap(axis.get_ticklabels())
        assert [float(name) for name in tick_names(axis)] == list(axis.get_ticklocs())


@pytest.mark.parametrize(
    ("labels", "rotation", "angle"),
    [(None, "auto", 0), (CIFAR, "auto", 45), (CIFAR, "vertical", 90), (CIFAR, 30, 30), (CIFAR, "horizontal", 0)],
)
def test_rotation_of_the_column_labels(labels, rotation, angle):
    display = TransitionMatrixDisplay.from_matrix(random_matrix(10), display_labels=labels, xticks_rotation=rotation)
    assert {label.get_rotation() for label in display.ax_.get_xticklabels()} == {angle}


def test_given_axes_are_used():
    _, ax = plt.subplots()
    display = TransitionMatrixDisplay.from_matrix(T_LEARNED, ax=ax)
    assert display.ax_ is ax
    figure, axes = plt.subplots(1, 3)
    display = TransitionMatrixDisplay.from_matrix(T_LEARNED, true_matrix=T_TRUE, ax=axes)
    assert list(display.axes_) == list(axes)
    assert display.figure_ is figure
    assert plt.get_fignums() == [1, 2]


def test_image_keywords_win():
    display = TransitionMatrixDisplay.from_matrix(T_LEARNED, im_kw={"vmax": 0.5, "cmap": "magma"})
    assert display.im_.get_clim() == (0, 0.5)
    assert display.im_.get_cmap().name == "magma"
    norm = PowerNorm(0.5, vmin=0, vmax=1)
    assert TransitionMatrixDisplay.from_matrix(T_LEARNED, im_kw={"norm": norm}).im_.norm is norm


def test_a_single_class_and_the_grid_style():
    with plt.style.context({"axes.grid": True}):
        display = TransitionMatrixDisplay.from_matrix([[1.0]])
    display.figure_.draw_without_rendering()
    assert not any(line.get_visible() for line in display.ax_.get_xgridlines())


# --- estimators ---------------------------------------------------------------------------------------------


def test_from_a_bare_estimator(data):
    fitted = LearnsT().fit(*data)
    display = TransitionMatrixDisplay.from_estimator(fitted, true_matrix=T_TRUE, values_format=".1f")
    np.testing.assert_array_equal(display.transition_matrix, fitted.transition_matrix_)
    assert display.display_labels == NAMES
    assert display.text_[0, 0].get_text() == "0.7"
    assert TransitionMatrixDisplay.from_estimator(fitted, display_labels="abc").display_labels == ["a", "b", "c"]


@pytest.mark.parametrize("wrap", ["pipeline", "search", "search over a pipeline", "pipeline around a search"])
def test_from_a_pipeline_or_a_search(data, wrap):
    search = GridSearchCV(LearnsT(), {"weight": [0.3]}, cv=2)
    wrapped = {
        "pipeline": make_pipeline(StandardScaler(), LearnsT(0.3)),
        "search": search,
        "search over a pipeline": GridSearchCV(
            make_pipeline(StandardScaler(), LearnsT()), {"learnst__weight": [0.3]}, cv=2
        ),
        "pipeline around a search": make_pipeline(StandardScaler(), search),
    }[wrap].fit(*data)
    expected = LearnsT(0.3).fit(*data)
    display = TransitionMatrixDisplay.from_estimator(wrapped)
    np.testing.assert_array_equal(display.transition_matrix, expected.transition_matrix_)
    assert display.display_labels == NAMES
    ax = plot_transition_history(wrapped)
    assert ax.get_lines()[0].get_label() == "cat → dog"


@pytest.mark.parametrize("draw", [TransitionMatrixDisplay.from_estimator, plot_transition_history])
@pytest.mark.parametrize(
    "estimator",
    [LearnsT(), make_pipeline(StandardScaler(), LearnsT()), GridSearchCV(LearnsT(), {"weight": [0.3]})],
    ids=["bare", "pipeline", "search"],
)
def test_an_unfitted_estimator(draw, estimator):
    with pytest.raises(NotFittedError, match="not fitted"):
        draw(estimator)


@pytest.mark.parametrize("draw", [TransitionMatrixDisplay.from_estimator, plot_transition_history])
def test_an_estimator_without_a_transition_matrix(draw, data):
    with pytest.raises(ValueError, match="LogisticRegression has no transition_"):
        draw(make_pipeline(StandardScaler(), LogisticRegression()).fit(*data))
    without_refit = GridSearchCV(LearnsT(), {"weight": [0.3]}, cv=2, refit=False).fit(*data)
    with pytest.raises(ValueError, match=r"GridSearchCV has no transition_.*refit=True"):
        draw(without_refit)


# --- refused ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("T", [[0.5, 0.5], np.ones((2, 3)), np.ones((0, 0)), np.ones((2, 2, 2)), 1.0])
def test_matrices_that_are_not_square(T):
    with pytest.raises(ValueError, match=r"transition_matrix has shape.*\(n_classes, n_classes\)"):
        TransitionMatrixDisplay(T)


def test_other_invalid_arguments():
    with pytest.raises(ValueError, match="1 entries that are not finite"):
        TransitionMatrixDisplay([[np.nan, 0.5], [0.5, 0.5]])
    with pytest.raises(ValueError, match="true_matrix has 2 classes but the learned matrix has 3"):
        TransitionMatrixDisplay(T_LEARNED, true_matrix=np.eye(2))
    with pytest.raises(ValueError, match="2 labels but the matrix has 3 classes"):
        TransitionMatrixDisplay(T_LEARNED, display_labels=["a", "b"])
    with pytest.raises(ValueError, match="ax holds 1 Axes but the panels are 3"):
        TransitionMatrixDisplay(T_LEARNED, true_matrix=T_TRUE).plot(ax=plt.gca())


def test_without_matplotlib_the_module_imports_and_says_what_to_install():
    code = (
        "import sys; sys.modules['matplotlib'] = None\n"
        "from noisytransition.plotting import TransitionMatrixDisplay, plot_transition_history\n"
        "assert 'sklearn' not in sys.modules and 'torch' not in sys.modules\n"
        "for draw in (TransitionMatrixDisplay([[1.0]]).plot, lambda: plot_transition_history([[[1.0]]])):\n"
        "    try: draw()\n"
        "    except ImportError as error: print(error)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout.count("pip install noisytransition[plot]") == 2


@pytest.mark.parametrize("names", [["$a$", "b$", "$c_"], ["$\\frac$", "<$50K", "50 $ to 100 $"]])
def test_dollar_signs_in_names_are_text(names):
    display = TransitionMatrixDisplay.from_matrix(T_LEARNED, display_labels=names)
    display.figure_.canvas.draw()
    assert [label.get_text() for label in display.ax_.get_yticklabels()] == names
    assert not any(label.get_parse_math() for label in display.ax_.get_xticklabels() + display.ax_.get_yticklabels())
    ax = plot_transition_history(np.stack([np.eye(3), T_LEARNED]), display_labels=names)
    ax.figure.canvas.draw()
    assert not any(text.get_parse_math() for text in ax.get_legend().get_texts())


def test_a_frame_of_the_true_T_is_read_by_its_names():
    pd = pytest.importorskip("pandas")
    order = [2, 0, 1]
    frame = pd.DataFrame(T_TRUE, NAMES, NAMES).iloc[order, order]
    display = TransitionMatrixDisplay(T_LEARNED, true_matrix=frame, display_labels=(name for name in NAMES))
    np.testing.assert_array_equal(display.true_matrix, T_TRUE)
    assert display.display_labels == NAMES
    fitted = LearnsT().fit(np.eye(3), NAMES)
    panels = plot_transition_history(fitted, true_matrix=frame, classes=["cat"], top=1)
    np.testing.assert_array_equal(panels[1].get_lines()[1].get_ydata(), T_TRUE[0, 1])
