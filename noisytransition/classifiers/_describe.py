"""Parameters as text, to tell one fit from another."""

import re
from functools import partial
from types import CellType, CodeType
from typing import Any

import joblib
import numpy as np
import torch
from torch import nn


def describe(value: Any) -> str:
    """Text that differs where values differ; addresses in memory are left out.

    Arrays and the weights of modules are hashed, functions are told apart by their code, defaults and what they close
    over; of any other object its class and attributes count.
    """
    if isinstance(value, np.ndarray):
        return joblib.hash(value)
    if isinstance(value, torch.Tensor):
        return joblib.hash(value.detach().cpu().numpy())
    if isinstance(value, nn.Module):
        return repr(value) + describe(list(value.state_dict().values()))
    if isinstance(value, dict):
        return repr({str(k): describe(v) for k, v in value.items()})
    if isinstance(value, list | tuple):
        return repr([describe(v) for v in value])
    if isinstance(value, partial):
        return "partial" + describe([value.func, value.args, value.keywords])
    if isinstance(value, CodeType):
        return joblib.hash((value.co_code, value.co_names)) + describe(value.co_consts)
    if hasattr(value, "__code__"):
        return value.__qualname__ + describe([value.__code__, value.__defaults__, _closed_over(value)])
    text = repr(value)
    if " at 0x" in text and hasattr(value, "__dict__") and not isinstance(value, type):
        return type(value).__name__ + describe(vars(value))
    return re.sub(r" at 0x[0-9a-f]+", "", text)


def _closed_over(function: Any) -> list[Any]:
    """Objects that a function or a method has in it, itself not among them."""
    cells = [cell.cell_contents for cell in function.__closure__ or () if cell != CellType()]  # an empty one raises
    return [v for v in [*cells, getattr(function, "__self__", None)] if v is not function]
