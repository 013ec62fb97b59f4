"""The files of a saved fit: what is refused, what survives, and that reading them runs no code."""

import os
import pickle
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from estimators import CLASSIFIERS, small
from skorch.callbacks import Callback
from training import StopAfter, assert_same, no_training, refused, with_a_flipped_bit

from noisytransition import CrossEntropyClassifier, EMTransitionClassifier, ForwardClassifier
from noisytransition.storage import check, read, write


@pytest.fixture
def fit(blobs, tmp_path):
    """Fit in the folder "fit"."""

    def fit(cls=CrossEntropyClassifier, state=tmp_path / "fit", **params):
        X, y, X_meta, y_meta, *_ = blobs
        return small(cls, **params).fit(X, y, meta=(X_meta, y_meta), state=state)

    return fit


def content(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# ---------------------------------------------------------------------------- what is in the folder
def test_each_stage_has_a_file_and_a_complete_one_is_not_written_again(fit, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        fit(EMTransitionClassifier, callbacks=[StopAfter(4)])
    first = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "fit").iterdir()}
    assert set(first) == {"fit.state", "warm_up.stage", "fold_0.stage"}
    fit(EMTransitionClassifier)
    last = {path.name: path.stat().st_mtime_ns for path in (tmp_path / "fit").iterdir()}
    assert set(last) == {*first, "fold_1.stage", "em.stage"}
    assert all(first[name] == last[name] for name in ("fit.state", "warm_up.stage"))
    assert first["fold_0.stage"] < last["fold_0.stage"]


@pytest.mark.xdist_group("workers")
@pytest.mark.parametrize("n_jobs", [1, 2])
def test_folds_in_processes_are_read_again(fit, tmp_path, n_jobs, blobs):
    first = fit(EMTransitionClassifier, n_jobs=n_jobs)
    assert (tmp_path / "fit" / "fold_1.stage").exists()
    with no_training():
        assert_same(fit(EMTransitionClassifier), first, blobs[0])


def test_nothing_is_left_of_a_fit_that_saved_nothing(fit, tmp_path):
    with pytest.raises(KeyboardInterrupt):
        fit(callbacks=[StopAfter(0)])
    assert list(tmp_path.iterdir()) == []


class Records(Callback):
    """Records in the history what cannot be saved, and what can."""

    def on_epoch_end(self, net, **kwargs):
        net.history.record("thing", self)
        net.history.record("n", len(net.history))


def test_what_of_a_history_cannot_be_saved_is_left_out(fit):
    fit(callbacks=[Records()])
    history = fit(callbacks=[Records()]).history_
    assert history[:, "n"] == [1, 2, 3]
    assert "thing" not in history[-1]


# ---------------------------------------------------------------------------- what is refused, and left as it is
@pytest.mark.parametrize("name", ["model.pt", "data.csv", "fit.stage", "fit.state.part"])
@pytest.mark.parametrize("inside", [False, True])
def test_files_of_the_user_s_are_refused_and_left_as_they_are(fit, tmp_path, name, inside):
    folder = tmp_path / "fit"
    if inside:
        folder.mkdir()
    path = folder / name if inside else folder
    path.write_bytes(b"a,b\n1,2\n")
    with refused("is not a saved fit"):
        fit()
    assert path.read_bytes() == b"a,b\n1,2\n"
    assert [p.name for p in folder.iterdir()] == [name] if inside else folder.is_file()


def test_a_hidden_file_of_the_system_is_left_alone(fit, tmp_path):
    fit()
    (tmp_path / "fit" / ".DS_Store").write_text("x")
    with no_training():
        fit()
    assert (tmp_path / "fit" / ".DS_Store").read_text() == "x"


def test_a_missing_folder_and_one_without_permission_are_refused(fit, tmp_path, monkeypatch):
    with refused("does not exist; make it"):
        fit(state=tmp_path / "nowhere" / "fit")
    (tmp_path / "fit").mkdir()
    monkeypatch.setattr(os, "access", lambda path, mode: False)
    with refused("cannot be written to"):
        fit()
    assert list((tmp_path / "fit").iterdir()) == []


@pytest.mark.parametrize("name", ["fit.state", "warm_up.stage", "forward.stage"])
@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda file: file[: len(file) // 2], "damaged: its checksum is wrong"),
        (lambda file: file[:10], "is damaged"),
        (lambda file: b"", "is damaged"),
        (lambda file: file + b"x", "damaged: its checksum is wrong"),
        (lambda file: file.replace(b'"version": "2"', b'"version": "3"', 1), "has version 3 of the format"),
        (lambda file: b"PK" + file, "is not a file of a saved fit"),
    ],
)
def test_truncated_and_changed_files_are_refused(fit, tmp_path, name, change, message):
    fit(ForwardClassifier)
    path = tmp_path / "fit" / name
    path.write_bytes(change(path.read_bytes()))
    before = content(tmp_path / "fit")
    with refused(rf"{name}.*{message}.*[Dd]elete"):
        fit(ForwardClassifier)
    assert content(tmp_path / "fit") == before


def test_no_flipped_bit_goes_unnoticed(fit, tmp_path):
    fit()
    for path, kind in ((tmp_path / "fit" / "fit.state", "fit"), (tmp_path / "fit" / "cross_entropy.stage", "stage")):
        whole = path.read_bytes()
        for changed in with_a_flipped_bit(whole, 60):
            path.write_bytes(changed)
            with pytest.raises(ValueError, match=r"damaged|version"):
                check(path, kind)
        path.write_bytes(whole)
    with no_training():
        fit()


def test_a_stage_of_another_fit_is_refused(fit, tmp_path):
    fit()
    fit(state=tmp_path / "other", lr=0.2)
    (tmp_path / "other" / "cross_entropy.stage").replace(tmp_path / "fit" / "cross_entropy.stage")
    with refused("belongs to another fit"):
        fit()


class Exploit:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return Path.write_text, (self.path, "owned")


@pytest.mark.parametrize("name", ["fit.state", "cross_entropy.stage"])
def test_a_pickle_in_place_of_a_file_runs_no_code(fit, tmp_path, name):
    fit()
    path = tmp_path / "fit" / name
    torch.save({"fingerprint": {}, "seed": 0, "history": [], "x": Exploit(tmp_path / "owned")}, path)
    torch.load(path, weights_only=False)  # the exploit works
    (tmp_path / "owned").unlink()
    with refused("is not a file of a saved fit, or is damaged. Delete"):
        fit()
    assert not (tmp_path / "owned").exists()


def test_no_attribute_of_python_s_own_comes_from_a_file(fit, tmp_path):
    fit(callbacks=[("stop", StopAfter(99))])
    path = tmp_path / "fit" / "cross_entropy.stage"
    state = read(path, "stage")
    state["callbacks"]["stop"]["values"] |= {"__dict__": {"n_epochs": 1}, "n_epochs": 2, "seen_": 3}
    write(path, "stage", state)
    stop = dict(fit(callbacks=[("stop", StopAfter(99))]).net_.callbacks_)["stop"]
    assert (stop.n_epochs, stop.seen_) == (99, 3)


# ---------------------------------------------------------------------------- other processes, full disks
def test_two_fits_in_one_folder_are_refused(fit, tmp_path):
    class FitsAgain(Callback):
        def on_epoch_end(self, net, **kwargs):
            with pytest.raises(RuntimeError, match="in use by another fit"):
                fit()

    first = fit(callbacks=[FitsAgain()])
    assert fit(callbacks=[FitsAgain()]).net_.history == first.net_.history


class Kill(Callback):
    """End the process in the middle of a write."""

    def on_epoch_end(self, net, **kwargs):
        if len(net.history) == 3:
            os.fsync = lambda *args: os.kill(os.getpid(), signal.SIGKILL)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="the process is forked")
@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork")
def test_a_killed_process_leaves_no_lock_and_no_leftovers(fit, tmp_path, blobs):
    if (pid := os.fork()) == 0:
        try:
            fit(callbacks=[Kill()])
        finally:
            os._exit(1)  # not reached
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == -signal.SIGKILL
    assert any(name.endswith(".part") for name in content(tmp_path / "fit"))
    assert_same(fit(), fit(state=None), blobs[0])
    assert set(content(tmp_path / "fit")) == {"fit.state", "cross_entropy.stage"}


def test_a_full_disk_leaves_the_former_file_whole(fit, tmp_path, monkeypatch, blobs):
    fsync = os.fsync

    class Fill(Callback):
        def on_epoch_end(self, net, **kwargs):
            if len(net.history) == 2:
                monkeypatch.setattr(os, "fsync", full)

    def full(file):
        raise OSError("No space left on device")

    with pytest.raises(OSError, match="No space left"):
        fit(callbacks=[Fill()])
    assert set(content(tmp_path / "fit")) == {"fit.state", "cross_entropy.stage"}
    monkeypatch.setattr(os, "fsync", fsync)
    assert len(read(tmp_path / "fit" / "cross_entropy.stage", "stage")["history"]) == 1
    assert_same(fit(), fit(state=None), blobs[0])


# ---------------------------------------------------------------------------- what a fitted object holds
@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_a_state_leaves_nothing_in_a_fitted_object(fit, cls):
    """Neither when it was written nor when it is read: no clean row, no other stage, no path."""
    sizes = [len(pickle.dumps(fit(cls, state=None)))]
    for _ in range(2):
        pickled = pickle.dumps(fit(cls))
        sizes.append(len(pickled))
        assert b".stage" not in pickled
    assert max(sizes[1:]) < 1.05 * sizes[0]


@pytest.mark.parametrize("cls", CLASSIFIERS)
def test_no_clean_row_is_in_a_fitted_object_that_was_read(cls, blobs, tmp_path):
    X, y, X_meta, y_meta, *_ = blobs
    X_meta = X_meta.copy()
    X_meta[7, 2] = 1.23456789
    marks = [np.array(X_meta[7, 2], dtype).tobytes() for dtype in (np.float32, np.float64)]
    for _ in range(2):
        pickled = pickle.dumps(small(cls).fit(X, y, meta=(X_meta, y_meta), state=tmp_path / "fit"))
        assert not [mark for mark in marks if mark in pickled]
