"""Progress bars: their text, and when none is shown."""

import io
import pickle
import sys
from unittest import mock

import joblib
import pytest
from training import StopAfter, assert_same, fit

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, MetaTransitionClassifier
from noisytransition.methods import METHODS


class Terminal(io.StringIO):
    def isatty(self):
        return True


def shown(blobs, cls=CrossEntropyClassifier, **params):
    stream = Terminal()
    with mock.patch.object(sys, "stderr", stream):
        clf = fit(cls, blobs, **{"verbose": 1} | params)
    return clf, stream.getvalue()


@pytest.mark.parametrize("cls", METHODS.values())
def test_every_training_has_a_bar_that_changes_no_result(cls, blobs, plain):
    clf, text = shown(blobs, cls)
    assert all(stage.replace("_", " ") in text for stage in clf.histories_)
    assert_same(clf, plain(cls), blobs[0])
    pickle.loads(pickle.dumps(clf))


def test_a_terminal_gets_one_line_that_is_cleared(blobs):
    _, text = shown(blobs, EMTransitionClassifier)
    assert "\n" not in text
    assert "left: EMTransitionClassifier, fold 1" in text
    assert "left: EMTransitionClassifier, transition matrix" in text
    assert "loss" not in text
    assert not text.split("\r")[-1].strip()


@pytest.mark.parametrize("verbose", [0, 2])
def test_other_levels_have_no_bar(blobs, capsys, verbose):
    assert shown(blobs, verbose=verbose)[1] == ""
    assert ("train_loss" in capsys.readouterr().out) == (verbose == 2)


def test_no_terminal_no_bar(blobs, capsys):
    fit(CrossEntropyClassifier, blobs, verbose=1)
    printed = capsys.readouterr()
    assert printed.out == printed.err == ""


def _shown(blobs):
    return shown(blobs)[1]


@pytest.mark.xdist_group("workers")
def test_other_processes_have_no_bar(blobs):
    assert joblib.Parallel(2)(joblib.delayed(_shown)(blobs) for _ in range(2)) == ["", ""]


def test_the_bar_ends_with_an_error(blobs):
    with mock.patch.object(sys, "stderr", Terminal()) as terminal, pytest.raises(KeyboardInterrupt):
        fit(CrossEntropyClassifier, blobs, verbose=1, callbacks=[StopAfter(1)])
    assert not terminal.getvalue().split("\r")[-1].strip()


def test_the_table_of_a_stage_has_its_name_above_it(blobs, capsys):
    fit(MetaTransitionClassifier, blobs, verbose=2)
    printed = capsys.readouterr().out
    assert printed.startswith("warm up\n")
    assert "\nmeta transition\n" in printed
