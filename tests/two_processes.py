"""Fits of two processes together and of one process, for `test_data_parallel.py`."""

import pickle
import warnings
from datetime import timedelta
from multiprocessing import forkserver

import numpy as np
import page_methods
import torch
import torch.distributed as dist
from estimators import small
from skorch.callbacks import EarlyStopping, LRScheduler
from skorch.dataset import ValidSplit
from torch import nn
from torch.multiprocessing import start_processes
from training import StopAfter

from examples.data_parallel import data_parallel
from noisytransition import CrossEntropyClassifier, FineTuningClassifier, MetaTransitionClassifier, flip_labels
from noisytransition.methods import METHODS
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
    """A network that is no plain MLP: the look-ahead takes tangents instead of gradients of gradients."""

    def __init__(self):
        layers = nn.Unflatten(1, (1, 2, 2)), nn.Conv2d(1, 4, 2), nn.GroupNorm(2, 4), nn.ReLU(), nn.Flatten()
        super().__init__(*layers, nn.Linear(4, 3))


def fits():
    """Classifiers by name."""
    own = {"meta_batch_size": 7}  # parts of 3 and 4 clean rows
    cases = {
        name: small(cls, batch_size=32, **{k: v for k, v in own.items() if k in cls._get_param_names()})
        for name, cls in METHODS.items()
    }
    cases["EM"].set_params(random_state=1)
    split, watched = ValidSplit(4, stratified=False), {"monitor": "valid_noisy_loss", "patience": 2, "load_best": True}
    callbacks = [LRScheduler("ReduceLROnPlateau", patience=0), EarlyStopping(**watched)]
    return cases | {
        "own step": page_methods.CoTeachingClassifier(max_epochs=2, batch_size=32, random_state=0),
        "images": small(MetaTransitionClassifier, module=Images, max_epochs=2),
        "followed scores": small(CrossEntropyClassifier, train_split=split, callbacks=callbacks, max_epochs=8, lr=0.5),
        "lbfgs": small(CrossEntropyClassifier, optimizer="lbfgs", batch_size=-1, max_epochs=2),
        "batches of one row": small(MetaTransitionClassifier, batch_size=1, max_epochs=1),
    }


def outcome(clf, X):
    """Return the compared results of a fitted classifier."""
    names = ("transition_matrix_", "transition_history_", "noisy_class_counts_", "oof_proba_")
    losses = {f"{stage} loss": np.array(history[:, "train_loss"]) for stage, history in clf.histories_.items()}
    found = {name: np.asarray(getattr(clf, name)) for name in names if hasattr(clf, name)}
    weights = {name: value.numpy() for name, value in clf.module_.state_dict().items()}
    return {"proba": clf.predict_proba(X)} | found | losses | weights


def fitted(clf):
    rows, clean = data()
    return outcome(clf.fit(*rows, **clean), rows[0])


# ---------------------------------------------------------------------------- what two processes do
def _dropout(rank, folder):
    """Each draws for its part; augmentation is that of the whole batch."""
    deep = nn.Sequential(nn.Linear(4, 16), nn.ReLU(), nn.Dropout(0.5), nn.Linear(16, 3))
    jitter = {"batch_transform": lambda x: x + 0.1 * torch.randn_like(x)}
    return fitted(small(MetaTransitionClassifier, module=deep, **jitter))


def _first_decides(rank, folder):
    """A module with other weights in each process, no seed, and another global generator."""
    torch.manual_seed(rank)
    return fitted(small(FineTuningClassifier, module=nn.Linear(4, 3), random_state=None))


def _resumed(rank, folder):
    """Interrupt a fit in its second stage and resume it."""
    rows, clean = data()
    clf = small(MetaTransitionClassifier, max_epochs=2)
    whole = fitted(clf)
    try:
        clf.set_params(callbacks=[StopAfter(3)]).fit(*rows, **clean, state=folder / "state")
    except KeyboardInterrupt:
        again = outcome(clf.set_params(callbacks=None).fit(*rows, **clean, state=folder / "state"), rows[0])
    return {"same": np.array([np.array_equal(whole[k], again[k]) for k in whole])}


def _refused(rank, folder):
    """Messages of errors that come before the first step, by what is wrong."""
    rows, clean = data()
    normal = nn.Sequential(nn.Linear(4, 8), nn.BatchNorm1d(8), nn.Linear(8, 3))
    by_chance = ValidSplit(0.5, stratified=False, random_state=rank)
    cases = {
        "labels": (CrossEntropyClassifier(), (rows[0], np.roll(rows[1], rank))),
        "lr": (CrossEntropyClassifier(lr=0.1 + rank), rows),
        "train_split": (CrossEntropyClassifier(train_split=by_chance), rows),
        "SyncBatchNorm": (CrossEntropyClassifier(normal), rows),
    }
    found = {}
    for name, (clf, given) in cases.items():
        try:
            clf.set_params(max_epochs=1, random_state=0).fit(*given, **clean)
        except ValueError as error:
            found[name] = str(error)
    return found


TOGETHER = {f.__name__.removeprefix("_"): f for f in (_dropout, _first_decides, _resumed)}


def _work(rank, folder):
    """Run all fits in a process."""
    torch.set_default_dtype(torch.float64)
    torch.set_num_threads(1)
    where = {"init_method": f"file://{folder}/init", "timeout": timedelta(seconds=100)}
    dist.init_process_group("gloo", rank=rank, world_size=SIZE, **where)
    with warnings.catch_warnings(), data_parallel():
        warnings.simplefilter("ignore", UserWarning)
        found = {name: fitted(clf) for name, clf in fits().items()}
        found |= {name: f(rank, folder) for name, f in TOGETHER.items()} | {"refused": _refused(rank, folder)}
    (folder / f"{rank}.pickle").write_bytes(pickle.dumps(found))


def started(folder):
    """Start the processes; libraries are imported once for both."""
    forkserver.set_forkserver_preload([__name__, "torch._dynamo"])
    return start_processes(_work, (folder,), nprocs=SIZE, join=False, start_method="forkserver")


def results(folder, processes):
    """Return the results of each process when all have ended."""
    while not processes.join():
        pass
    return [pickle.loads((folder / f"{rank}.pickle").read_bytes()) for rank in range(SIZE)]
