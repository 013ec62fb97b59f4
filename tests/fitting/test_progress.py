"""Progress bars: their text, and when none is shown."""

import io
import pickle
import sys
from unittest import mock

import joblib
import pytest
from training import StopAfter, assert_same, fit

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, FineTuningClassifier


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(blobs, cls=CrossEntropyClassifier, **params):
    stream = Terminal()
    with mock.patch.object(sys, "stderr", stream):
        clf = fit(cls, blobs, **{"verbose": 1} | params)
    return clf, stream.getvalue()


@pytest.mark.parametrize("cls", [FineTuningClassifier, EMTransitionClassifier])
def test_every_training_has_a_bar_that_changes_no_result(cls, blobs, plain):
    """A terminal gets one line that is cleared."""
    clf, text = shown(blobs, cls)
    stages = [*clf.histories_, *(["transition matrix"] if cls is EMTransitionClassifier else [])]
    assert all(f"left: {cls.__name__}, {stage.replace('_', ' ')}" in text for stage in stages)
    assert "\n" not in text
    assert not text.split("\r")[-1].strip()
    assert_same(clf, plain(cls), blobs[0])
    pickle.loads(pickle.dumps(clf))


def test_other_levels_have_no_bar(blobs, capsys):
    """The table of a stage has its name above it."""
    assert shown(blobs, verbose=0)[1] == ""
    assert capsys.readouterr().out == ""
    assert shown(blobs, FineTuningClassifier, verbose=2)[1] == ""
    printed = capsys.readouterr().out
    assert printed.startswith("cross entropy\n")
    assert "\nfine tuning\n" in printed
    assert "train_loss" in printed


def test_without_a_terminal_and_in_other_processes_there_is_no_bar(blobs, capsys):
    fit(CrossEntropyClassifier, blobs, verbose=1)
    printed = capsys.readouterr()
    assert printed.out == printed.err == ""
    with joblib.parallel_config("multiprocessing"):  # a fork starts at once
        (_, text), _ = joblib.Parallel(2)(joblib.delayed(shown)(blobs) for _ in range(2))
    assert text == ""


def test_the_bar_ends_with_an_error(blobs):
    with mock.patch.object(sys, "stderr", Terminal()) as terminal, pytest.raises(KeyboardInterrupt):
        fit(CrossEntropyClassifier, blobs, verbose=1, callbacks=[StopAfter(1)])
    assert not terminal.getvalue().split("\r")[-1].strip()
