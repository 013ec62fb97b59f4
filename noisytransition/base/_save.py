"""Save a fitted classifier as plain data and tensors, which are safe to load."""

from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from sklearn.utils.validation import check_is_fitted

from ..labels._columns import SourceLabels
from ..likelihood._calibration import Calibration
from ..likelihood._channels import LogLinear, OneT
from ..likelihood._held_out import Candidate, HeldOut
from ..likelihood._sources import Dependence, SourceFit
from ..likelihood._uncertainty import TransitionUncertainty
from ..nets import NoisyLabelNet
from ..noise_model._model import LabelNoiseModel
from ..persistence._storage import KINDS, is_plain, read, write

if TYPE_CHECKING:
    from ._classifier import NoisyLabelClassifier


def with_attributes(of: Any, attributes: dict[str, Any]) -> Any:
    """Set attributes of an instance, except methods and names that Python or numpy would call or read."""
    for name, value in attributes.items():
        if not (hasattr(type(of), name) or name.startswith("__")):
            setattr(of, name, value)
    return of


_RECORDS = (Calibration, Candidate, Dependence, HeldOut, LogLinear, OneT, SourceFit, SourceLabels)
KINDS.update({cls: (list, cls._make) for cls in (*_RECORDS, TransitionUncertainty)})
KINDS[LabelNoiseModel] = (lambda model: [vars(model)], lambda parts: with_attributes(LabelNoiseModel(), *parts))


def save(clf: "NoisyLabelClassifier", path: str | PathLike) -> None:
    """Write class name, plain parameters, fitted attributes and weights of a fitted classifier."""
    check_is_fitted(clf, "net_")
    net = type(clf.net_)
    if (net.infer, net.predict_proba) != (NoisyLabelNet.infer, NoisyLabelNet.predict_proba):
        raise ValueError(f"{net.__name__} overrides how nets predict. Pickle the classifier instead.")
    if Path(path).exists():
        read(Path(path), "classifier")  # raises for a file of another kind
    params = clf.get_params(deep=False)
    plain = {k: v for k, v in params.items() if is_plain(v)}
    fitted = {k: v for k, v in vars(clf).items() if k.endswith("_") and k not in ("net_", *params) and k[0] != "_"}
    if odd := [name for name, value in fitted.items() if not is_plain(value)]:
        raise ValueError(f"{type(clf).__name__}.{odd[0]} is not plain data. Pickle the classifier instead.")
    with torch.random.fork_rng(devices=()):  # methods other than `fit` may need the weights of the loss
        has_loss = type(clf._loss()) is type(clf.net_.criterion_)
    module = clf.net_.plain_module_
    content = {
        "class": name_of(type(clf)),
        "module": None if isinstance(clf.module, str) else name_of(type(module)),
        "params": plain,
        "not_saved": sorted(k for k in params.keys() - plain.keys() if k.startswith("module__")),
        "fitted": fitted,
        "weights": module.state_dict(),
        "loss": clf.net_.criterion_.state_dict() if has_loss else {},
    }
    write(Path(path), "classifier", content)


def name_of(cls: type) -> str:
    return f"{cls.__module__}.{cls.__qualname__}"
