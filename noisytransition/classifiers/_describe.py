"""Parameters as text, to tell one fit from another."""

import re
from typing import Any

import joblib
import numpy as np
import torch
from torch import nn


def describe(value: Any) -> str:
    """Text that differs where values differ; addresses in memory are left out.

    Arrays and the weights of modules are hashed, functions are told apart by their code; of any other object its
    class and attributes count.
    """
    if isinstance(value, np.ndarray):
        return joblib.hash(value)
    if isinstance(value, torch.Tensor):
        return joblib.hash(value.detach().cpu().numpy())
    if isinstance(value, nn.Module):
        return repr(value) + describe(list(value.state_dict().values()))
    if isinstance(value, dict):
        return repr({str(k): describe(v) for k, v in value.items()})
    if isinstance(value, list):
        return repr([describe(v) for v in value])
    if code := getattr(value, "__code__", None):
        return f"{value.__qualname__} {joblib.hash((code.co_code, repr(code.co_consts), code.co_names))}"
    text = repr(value)
    if " at 0x" in text and hasattr(value, "__dict__") and not isinstance(value, type):
        return type(value).__name__ + describe(vars(value))
    return re.sub(r" at 0x[0-9a-f]+", "", text)
