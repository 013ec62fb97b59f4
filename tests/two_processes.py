"""Fits that two processes train together, and one alone: what `test_distributed.py` compares."""

import pickle
import warnings
from contextlib import nullcontext
from copy import deepcopy
from datetime import timedelta
from multiprocessing import forkserver
from unittest import mock

import numpy as np
import page_methods
import torch
import torch.distributed as dist
from estimators import small
from skorch.callbacks import EarlyStopping, LRScheduler
from skorch.dataset import ValidSplit
from torch import nn
from torch.multiprocessing import start_processes
from torch.utils.data import Dataset
from training import StopAfter

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    FineTuningClassifier,
    GCEClassifier,
    MetaTransitionClassifier,
    MWNetClassifier,
    flip_labels,
)
from noisytransition.classifiers import METHODS
from noisytransition.nets import FitState, _fit_state
from noisytransition.transition import pair_noise

SIZE = 2


def data(n=107, n_clean=21):
    """Rows whose last batch of 32 is smaller and has an odd number of rows."""
    rng = np.random.default_rng(0)
    y = rng.integers(3, size=n + n_clean)
    X = rng.normal(size=(n + n_clean, 4)) + 3 * np.array([[0, 0, 0, 0], [0, 1, 0, 1], [1, 0, 1, 0]])[y]
    y_noisy = flip_labels(y, pair_noise(3, 0.4), random_state=0)
    return (X[n_clean:], y_noisy[n_clean:]), {"meta": (X[:n_clean], y[:n_clean])}


class Images(nn.Sequential):
    """A network that is no plain MLP: the look-ahead takes another method, and integers of one byte are cast."""

    def __init__(self, p=0.0):
        layers = nn.Conv2d(1, 4, 2), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten(), nn.Dropout(p), nn.Linear(4, 3)
        super().__init__(*layers)


class Deep(nn.Sequential):
    """A module with dropout."""

    def __init__(self):
        super().__init__(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))


def images(rows, clean):
    """Rows as images."""
    squares = [np.clip(20 * x.reshape(-1, 1, 2, 2) + 100, 0, 255).astype(np.uint8) for x in (rows[0], clean["meta"][0])]
    return (squares[0], rows[1]), {"meta": (squares[1], clean["meta"][1])}


class Read(Dataset):
    """Rows that note which of them are read."""

    def __init__(self, X):
        self.X, self.read = X, []

    def __len__(self):
        return len(self.X)

    def __getitem__(self, i):
        self.read.append(i)
        return torch.as_tensor(self.X[i])


# ---------------------------------------------------------------------------- the same as in one process
def fits():
    """Classifiers by name, with their data."""
    rows, clean = data()
    cases = {}
    for name, cls in METHODS.items():
        own = {"meta_batch_size": 7, "select_epochs": True}  # parts of 3 and 4 clean rows
        own = {key: value for key, value in own.items() if key in cls._get_param_names()}
        cases[name] = small(cls, batch_size=32, **own), rows, clean
    split, watched = ValidSplit(4, stratified=False), {"monitor": "valid_noisy_loss", "patience": 2, "load_best": True}
    callbacks = [LRScheduler("ReduceLROnPlateau", patience=0), EarlyStopping(**watched)]
    others = {
        "EM of each epoch": page_methods.EpochEMClassifier(max_epochs=2, batch_size=32, random_state=0),
        "truncated": small(GCEClassifier, truncation=0.3, truncation_start=1),
        "weights of a batch": small(MWNetClassifier, max_epochs=2),
        "clean rows in the step": small(MetaTransitionClassifier, meta_weight=0.5, meta_batch_size=5, max_epochs=2),
        "followed scores": small(CrossEntropyClassifier, train_split=split, callbacks=callbacks, max_epochs=8, lr=0.5),
        "lbfgs": small(CrossEntropyClassifier, optimizer="lbfgs", batch_size=-1, max_epochs=2),
        "one clean row in a step": small(EMTransitionClassifier, meta_batch_size=1, max_epochs=2),
    }
    cases |= {name: (clf, rows, clean) for name, clf in others.items()}
    single = small(MetaTransitionClassifier, batch_size=1, max_epochs=1, validation_fraction=0, warm_up_epochs=1)
    cases["batches of one row"] = single, (rows[0][:20], rows[1][:20]), clean
    cases["images"] = (
        small(MetaTransitionClassifier, module=Images, batch_size=32, max_epochs=2),
        *images(rows, clean),
    )
    return cases


def outcome(clf, X):
    """What is compared of a fitted classifier."""
    names = ("transition_matrix_", "transition_history_", "class_counts_", "oof_proba_")
    losses = {stage: history[:, "train_loss"] for stage, history in clf.histories_.items()}
    found = {name: np.asarray(getattr(clf, name)) for name in names if hasattr(clf, name)}
    weights = {name: value.numpy() for name, value in clf.module_.state_dict().items()}
    return {"proba": clf.predict_proba(X)} | found | {f"{k} loss": np.array(v) for k, v in losses.items()} | weights


def fitted(name, **params):
    """Outcome of one of the fits."""
    clf, rows, clean = fits()[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        return outcome(clf.set_params(**params).fit(*rows, **clean), rows[0])


# ---------------------------------------------------------------------------- what two processes do
def jitter(x):
    """Draw random numbers for a batch."""
    return x + 0.1 * torch.randn_like(x)


def _own_draws(rank, folder):
    rows, clean = data()
    seen = []

    def noted(x):
        seen.append(torch.rand(3).tolist())
        return jitter(x)

    clf = small(MetaTransitionClassifier, module=Deep, batch_transform=noted, distributed=True).fit(*rows, **clean)
    return outcome(clf, rows[0]) | {"drawn": seen[0]}


def _first_decides(rank, folder):
    """A module with other weights in each process, no seed, and another global generator."""
    torch.manual_seed(rank)
    rows, clean = data()
    clf = small(FineTuningClassifier, module=nn.Linear(4, 3), random_state=None, distributed=True)
    return outcome(clf.fit(*rows, **clean), rows[0])


def _reads_its_part(rank, folder):
    (X, y), _ = data()
    dataset = Read(X)
    clf = CrossEntropyClassifier(nn.Linear(4, 3), batch_size=10, max_epochs=1, random_state=0, distributed=True)
    clf.fit(dataset, y)
    return outcome(clf, X) | {"read": len(dataset.read)}


def _resumed(rank, folder):
    """A fit that is cut off in its second stage and goes on, and how many files this process has written."""
    rows, clean = data()
    clf = small(MetaTransitionClassifier, distributed=True, max_epochs=2)
    whole = outcome(clf.fit(*rows, **clean), rows[0])
    with mock.patch.object(_fit_state, "write", side_effect=_fit_state.write) as write:
        try:
            clf.set_params(callbacks=[StopAfter(3)]).fit(*rows, **clean, state=folder / "state")
        except KeyboardInterrupt:
            again = outcome(clf.set_params(callbacks=None).fit(*rows, **clean, state=folder / "state"), rows[0])
    return {"same": all(np.array_equal(whole[k], again[k]) for k in whole), "written": write.call_count}


def _in_half_precision(rank, folder):
    torch.set_default_dtype(torch.float32)
    (X, y), clean = data()
    clf = small(MetaTransitionClassifier, precision="fp16", max_epochs=2, lr=0.01)
    one = clf.fit(X, y, **clean).predict_proba(X)
    found = outcome(clf.set_params(distributed=True).fit(X, y, **clean), X)
    torch.set_default_dtype(torch.float64)
    return found | {"one": one}


def _refused(rank, folder):
    """Messages of errors that come before the first step, by what is wrong."""
    rows, clean = data()
    normal = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    sync = nn.SyncBatchNorm.convert_sync_batchnorm(deepcopy(normal))
    by_chance = ValidSplit(0.5, stratified=False, random_state=rank)
    plain, saved = {"max_epochs": 1, "random_state": 0}, folder / "alone"
    if rank == 0:
        CrossEntropyClassifier(**plain).fit(*rows, **clean, state=saved)
    cases = {
        "data": (CrossEntropyClassifier(), (rows[0], np.roll(rows[1], rank)), None),
        "parameters": (CrossEntropyClassifier(lr=0.1 + rank), rows, None),
        "rows held out": (CrossEntropyClassifier(train_split=by_chance), rows, None),
        "batch normalisation": (CrossEntropyClassifier(normal), rows, None),
        "look-ahead": (MetaTransitionClassifier(sync, transition_init="diagonal", from_warm_up=False), rows, None),
        "own step": (page_methods.CoTeachingClassifier(), rows, None),
        "state of one process": (CrossEntropyClassifier(), rows, saved),
        "disk": (CrossEntropyClassifier(), rows, folder / "disk"),
    }
    found = {}
    for name, (clf, given, state) in cases.items():
        elsewhere = mock.patch.object(FitState, "epochs_done", return_value=3)
        with elsewhere if (name, rank) == ("disk", 1) else nullcontext():
            try:
                clf.set_params(distributed=True, **plain).fit(*given, **clean, state=state)
            except ValueError as error:
                found[name] = str(error)
    return found


_THESE = (_own_draws, _first_decides, _reads_its_part, _resumed, _in_half_precision, _refused)
TOGETHER = {f.__name__.removeprefix("_"): f for f in _THESE}


def _join(rank, folder, backend):
    where = {"init_method": f"file://{folder}/init", "timeout": timedelta(seconds=100)}
    dist.init_process_group(backend, rank=rank, world_size=SIZE, **where)


def _work(rank, folder):
    """What each process does."""
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    _join(rank, folder, "gloo")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        found = {name: fitted(name, distributed=True) for name in fits()}
        found |= {name: f(rank, folder) for name, f in TOGETHER.items()}
    (folder / f"{rank}.pickle").write_bytes(pickle.dumps(found))


# ---------------------------------------------------------------------------- on GPUs
ON_GPUS = ("cross-entropy", "MW-Net", "EM", "meta-transition")


def on_device(device, **params):
    """Posteriors of a few of the methods, in single precision."""
    rows, clean = data()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        fits = {name: small(METHODS[name], batch_size=32, device=device, **params) for name in ON_GPUS}
        return {name: clf.fit(*rows, **clean).predict_proba(rows[0]) for name, clf in fits.items()}


def _on_device(rank, folder, device):
    """What each process does there."""
    if device == "cuda":
        torch.cuda.set_device(rank)
    _join(rank, folder, "gloo" if device == "cpu" else "nccl")
    device = device if device == "cpu" else f"cuda:{rank}"
    found = on_device(device, distributed=True)
    (folder / f"{rank}.pickle").write_bytes(pickle.dumps(found))
    dist.destroy_process_group()


def on_devices(device, folder):
    """Posteriors of two processes, each on a GPU of its own, or both on the CPU."""
    return results(folder, started(folder, _on_device, device))[0]


def started(folder, work=_work, *arguments):
    """Processes that are at work; libraries are imported once for both."""
    forkserver.set_forkserver_preload([__name__, "torch._dynamo"])
    return start_processes(work, (folder, *arguments), nprocs=SIZE, join=False, start_method="forkserver")


def results(folder, processes):
    """What each process has found, when all have ended."""
    while not processes.join():
        pass
    return [pickle.loads((folder / f"{rank}.pickle").read_bytes()) for rank in range(SIZE)]
