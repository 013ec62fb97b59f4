"""One bar for the whole fit: its plan, what it says, where it is silent."""

import io
import pickle
import sys
from unittest import mock

import joblib
import pytest
from estimators import small
from training import StopAfter, assert_same, fit

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, MetaTransitionClassifier
from noisytransition.classifiers import METHODS, _base
from noisytransition.classifiers._progress import Progress, progress_of

every = pytest.mark.parametrize("cls", METHODS.values())


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Recorded(Progress):
    """Keeps the plan of the start, and all shares of the work that were done."""

    def __init__(self, title, verbose):
        super().__init__(title, shown=True)
        self.first, self.shares = None, []

    def __enter__(self):
        return self  # without a bar

    def _draw(self, **kwargs):
        total = sum(self.plan.values())
        self.first = self.first if self.first or not total else total
        self.shares.append(sum(self.done.values()) / max(total, 1e-9))


def recorded(cls, blobs, **params):
    kept = []
    with mock.patch.object(_base, "progress_of", lambda *args: kept.append(Recorded(*args)) or kept[-1]):
        clf = fit(cls, blobs, verbose=1, **params)
    return clf, kept[0]


@every
def test_the_plan_names_the_stages_and_their_work(cls, blobs):
    clf, progress = recorded(cls, blobs)
    assert set(clf.histories_) <= set(progress.plan)
    assert progress.done == progress.plan
    assert progress.shares[-1] == pytest.approx(1)
    assert all(0 <= share <= 1 + 1e-9 for share in progress.shares)


@pytest.mark.parametrize("cls", [EMTransitionClassifier, MetaTransitionClassifier])
def test_what_is_planned_at_the_start_is_about_what_is_done(cls, blobs):
    """The warm-up, which begins at once, may be missing, and the last fine-tuning."""
    for choose in (False, True):
        _, progress = recorded(cls, blobs, select_classifier=choose)
        assert 0.6 < progress.first / sum(progress.plan.values()) < 1.1


@every
def test_it_changes_no_result(cls, blobs):
    with mock.patch.object(sys, "stderr", Terminal()):
        shown = fit(cls, blobs, verbose=1)
    assert_same(shown, fit(cls, blobs), blobs[0])
    pickle.loads(pickle.dumps(shown))


def test_folds_in_other_processes_are_counted(blobs):
    with joblib.parallel_config("multiprocessing"):  # processes that are forked start at once
        clf, progress = recorded(EMTransitionClassifier, blobs, n_jobs=2)
    assert progress.done == progress.plan
    assert_same(clf, fit(EMTransitionClassifier, blobs), blobs[0])


# ---------------------------------------------------------------------------- what is shown
def shown(blobs, cls=EMTransitionClassifier, **params):
    with mock.patch.object(sys, "stderr", Terminal()) as terminal:
        fit(cls, blobs, **params)
    return terminal.getvalue()


def test_a_terminal_gets_one_bar(blobs):
    text = shown(blobs, verbose=1)
    assert "% " not in text.replace("%|", "")
    assert "\n" not in text
    assert "left: EMTransitionClassifier" in text
    assert not any(name in text for name in ("loss", "cross_entropy", "NLL"))
    assert not text.split("\r")[-1].strip()  # cleared at the end


@pytest.mark.parametrize("verbose", [0, 2])
def test_other_levels_have_no_bar(blobs, capsys, verbose):
    assert shown(blobs, verbose=verbose) == ""
    assert ("train_loss" in capsys.readouterr().out) == (verbose == 2)


def test_no_terminal_no_bar(blobs, capsys):
    fit(CrossEntropyClassifier, blobs, verbose=1)
    printed = capsys.readouterr()
    assert printed.out == printed.err == ""


def test_a_notebook_has_a_bar():
    stream = type("OutStream", (io.StringIO,), {"__module__": "ipykernel.iostream"})()
    with mock.patch.object(sys, "stderr", stream):
        assert progress_of("fit", 1).shown


def _closed():
    stream = io.StringIO()
    stream.close()
    return stream


@pytest.mark.parametrize("stream", [None, object(), _closed()], ids=["none", "of another kind", "closed"])
def test_without_a_stream_for_errors_there_is_no_bar(stream):
    with mock.patch.object(sys, "stderr", stream):
        assert not progress_of("fit", 1).shown


def _shown_here():
    with mock.patch.object(sys, "stderr", Terminal()):
        return progress_of("fit", 1).shown


@pytest.mark.xdist_group("workers")
def test_other_processes_have_no_bar():
    """Those of a search, and copies in those of folds."""
    assert _shown_here()
    assert joblib.Parallel(2)(joblib.delayed(_shown_here)() for _ in range(2)) == [False, False]
    assert not pickle.loads(pickle.dumps(Progress(shown=True))).shown


def test_the_bar_ends_with_an_error(blobs):
    with mock.patch.object(sys, "stderr", Terminal()) as terminal, pytest.raises(KeyboardInterrupt):
        fit(CrossEntropyClassifier, blobs, verbose=1, callbacks=[StopAfter(1)])
    assert not terminal.getvalue().split("\r")[-1].strip()


def test_what_a_saved_fit_has_done_is_no_speed(blobs, tmp_path):
    X, y = blobs[:2]
    small(CrossEntropyClassifier).fit(X, y, state=tmp_path / "fit")
    kept = []
    with (
        mock.patch.object(_base, "progress_of", lambda *args: kept.append(Recorded(*args)) or kept[-1]),
        mock.patch.object(Recorded, "_draw") as draw,
    ):
        small(CrossEntropyClassifier).fit(X, y, state=tmp_path / "fit")
    assert mock.call(skipped=True) in draw.call_args_list
    assert kept[0].done == kept[0].plan


def test_the_table_of_a_stage_has_its_name_above_it(blobs, capsys):
    fit(MetaTransitionClassifier, blobs, verbose=2)
    printed = capsys.readouterr().out
    assert printed.startswith("warm up\n")
    assert "\nmeta transition\n" in printed
