"""Parameters of a net: the classifier's, its module, and those of the stage."""

import copy
from typing import Any

import numpy as np
from torch import nn

from ..nets import MLP, Rows
from ._parameters import MODULES, as_optimizer, is_default


def net_params_of(
    shared: dict[str, Any], n_classes: int, module: nn.Module | None, rows: Rows, own: dict[str, Any]
) -> dict[str, Any]:
    """Parameters of a net.

    Parameters
    ----------
    shared : dict
        The classifier's.
    n_classes : int
    module : nn.Module or None
        Trained module to continue from; None: the classifier's.
    rows : Rows
        Of which the default module takes its size.
    own : dict
        Those of the stage, which override.
    """
    params = {name: value for name, value in shared.items() if name != "callbacks"}
    if "optimizer" in own:
        params = {name: value for name, value in params.items() if not name.startswith("optimizer__")}
    given = params["module"] if module is None else module
    if isinstance(given, nn.Module):
        params = {name: value for name, value in params.items() if not name.startswith("module__")}
        params["module"] = copy.deepcopy(given)
    elif is_default(given):
        n_in = int(np.prod(rows.take([0]).inputs().shape[1:]))
        sizes = {"module__n_in": n_in, "module__n_out": n_classes} | MODULES[given]
        params = sizes | params | {"module": MLP}
    params |= own
    return params | {"optimizer": as_optimizer(params["optimizer"])}
