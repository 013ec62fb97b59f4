"""All that a training changes, taken out of a net and put back into one; an error for what could not be."""

import inspect
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from skorch.callbacks import Callback
from skorch.utils import to_device
from torch import Tensor, nn

from ..storage import check_plain, is_plain, plain_history, safe_attributes

if TYPE_CHECKING:
    from ._net import NoisyLabelNet

# numbers and text: saved wherever a net keeps them
_PLAIN = (bool, int, float, complex, str, np.generic, type(None))
# attributes of skorch's own, which it makes again or which are saved separately
_OF_SKORCH = {"callbacks_", "history_", "virtual_params_", "init_context_", "initialized_", "verbose"}


def net_state(net: "NoisyLabelNet") -> dict[str, Any]:
    """All that a training changes, in tensors and plain data.

    * Modules, losses and optimisers that skorch has registered: their ``state_dict``, and the numbers, arrays and
      tensors among the attributes of modules and losses that are not in it.
    * Other attributes of the net, such as counters: as they are. A tensor, a module or an optimiser there, also in
      a list, a tuple, a dictionary or an object, is an error: it has to be registered.
    * Callbacks: their attributes that end with an underscore. Where such a one of the net's `update` or `select`
      cannot be saved, or one has another name, that is an error; of other callbacks it is left out.
    * History, without entries that are not plain data, and generators.

    Values given to constructors are not state, but for numbers and text, which a training may change.

    Raises
    ------
    ValueError
        For state that would be lost.
    """
    parts = registered(net)
    return {
        "parts": {name: _part_state(name, part) for name, part in parts.items()},
        "unlisted": {name: unlisted(name, part) for name, part in parts.items()},
        "attributes": _attributes(net, parts),
        "callbacks": {name: _callback_state(net, callback) for name, callback in net.callbacks_},
        "history": plain_history(net.history),
        "generators": [torch.get_rng_state(), *(torch.cuda.get_rng_state_all() if _on_cuda(net) else [])],
    }


def restore_net(net: "NoisyLabelNet", state: dict[str, Any]) -> None:
    """Put a state into an initialised net of the same kind."""
    for name, part in registered(net).items():
        part.load_state_dict(state["parts"][name])
        restore_unlisted(part, state["unlisted"][name], net.device)
    net.__dict__.update(safe_attributes(state["attributes"]))
    for name, callback in net.callbacks_:
        going_on = _is_role(net, callback) and not state.get("complete")
        _restore_callback(net, callback, state["callbacks"].get(name, {}), must_have_parts=going_on)
    net.history_ = state["history"]
    torch.set_rng_state(state["generators"][0])
    if _on_cuda(net):
        torch.cuda.set_rng_state_all(state["generators"][1:])


# ---------------------------------------------------------------------------- modules, losses, optimisers
def registered(net: "NoisyLabelNet") -> dict[str, Any]:
    """Modules, losses and optimisers that skorch keeps account of, as they are without `compile`."""
    names = [f"{name}_" for name in net._modules + net._criteria + net._optimizers]
    return {name: uncompiled(getattr(net, name)) for name in names}


def uncompiled(part: Any) -> Any:
    """Module without the wrapper of `torch.compile`; anything else as it is."""
    return getattr(part, "_orig_mod", part)


def _part_state(name: str, part: Any) -> dict[str, Any]:
    state = part.state_dict()
    try:
        check_plain(state)
    except TypeError as error:
        raise ValueError(f"the state_dict of {name} ({type(part).__name__}) cannot be saved: {error}.") from error
    return state


def unlisted(part_name: str, part: object) -> dict[str, dict[str, Any]]:
    """Values of a module and of those inside it that its ``state_dict`` leaves out."""
    inside = part.named_modules() if isinstance(part, nn.Module) else ()
    values = {name: _values(module) for name, module in inside}
    try:
        check_plain(values)
    except TypeError as error:
        raise ValueError(f"an attribute of {part_name} ({type(part).__name__}) cannot be saved: {error}.") from error
    return values


def _values(module: nn.Module) -> dict[str, Any]:
    attributes = {k: v for k, v in vars(module).items() if isinstance(v, (*_PLAIN, np.ndarray, Tensor))}
    attributes |= {name: module._buffers[name] for name in module._non_persistent_buffers_set}
    attributes = {k: v.detach() if isinstance(v, Tensor) else v for k, v in attributes.items() if k != "training"}
    # a constant of a type such as IntEnum is left out; a tensor that cannot be saved is an error
    return {k: v for k, v in attributes.items() if isinstance(v, np.ndarray | Tensor) or is_plain(v)}


def restore_unlisted(part: Any, state: dict[str, dict[str, Any]], device: torch.device | str | None) -> None:
    """Set values that `unlisted` found in a module of the same kind."""
    for name, values in state.items():
        for key, value in safe_attributes(values).items():
            setattr(part.get_submodule(name), key, _on(device, value))


# ---------------------------------------------------------------------------- other attributes of the net
def _attributes(net: "NoisyLabelNet", parts: dict[str, Any]) -> dict[str, Any]:
    """Other attributes of a net: neither registered, nor parameters, nor skorch's own."""
    given = _parameters(net) | {k for k in vars(net) if "__" in k and k.split("__")[0] in net.prefixes_}
    ours = {k: v for k, v in vars(net).items() if k not in {*parts, *_OF_SKORCH}}
    ours = {k: v for k, v in ours.items() if k not in given or isinstance(v, _PLAIN)}
    if lost := [name for name, value in ours.items() if not is_plain(value, tensors=False)]:
        raise ValueError(
            f"{type(net).__name__} keeps state in {lost}, which a saved fit would lose. Set modules, losses and "
            "optimisers in initialize_module, initialize_criterion or initialize_optimizer, under names that end with "
            "'_': skorch then registers them. A tensor becomes a buffer of one of them, or an attribute of an Update; "
            "other state is in numbers, text, arrays, and lists, tuples and dictionaries of these."
        )
    return ours


def _parameters(thing: object) -> set[str]:
    """Names that the constructors of a thing's classes take."""
    constructors = (vars(cls)["__init__"] for cls in type(thing).__mro__ if "__init__" in vars(cls))
    return {name for constructor in constructors for name in inspect.signature(constructor).parameters}


# ---------------------------------------------------------------------------- callbacks
def _callback_state(net: "NoisyLabelNet", callback: Callback) -> dict[str, Any]:
    """What a callback has learned: ``state_dict`` where there is one, and other values."""
    learned = {k: v for k, v in vars(callback).items() if k.endswith("_")}
    parts = {k: _part_state(f"{type(callback).__name__}.{k}", v) for k, v in learned.items() if _is_part(v)}
    values = {k: v for k, v in learned.items() if k not in parts}
    if _is_role(net, callback):
        values |= {k: v for k, v in vars(callback).items() if isinstance(v, _PLAIN)}
        _check_role(callback, values)
    return {"parts": parts, "values": {k: v for k, v in values.items() if is_plain(v)}}


def _is_role(net: "NoisyLabelNet", callback: Callback) -> bool:
    """Whether the training depends on it: the update and the selection, which every state must hold whole."""
    return callback is net.update or callback is net.select


def _check_role(callback: Callback, values: dict[str, Any]) -> None:
    """Raise for an attribute of an update or a selection that no saved fit would have."""
    kind, given = type(callback).__name__, _parameters(callback)
    if lost := [k for k in vars(callback) if not k.endswith("_") and k not in {*values, *given}]:
        raise ValueError(f"{kind} keeps {lost}, which a saved fit would lose: end the names with '_'.")
    if lost := [name for name, value in values.items() if not is_plain(value)]:
        raise ValueError(
            f"{kind} keeps in {lost} what is not plain data, or modules or optimisers inside something else, so that "
            "a saved fit would lose them. Keep each module and each optimiser in an attribute of its own, set in "
            "on_train_begin, and other state in numbers, text, arrays, tensors, and lists, tuples and dictionaries of "
            "these."
        )


def _restore_callback(
    net: "NoisyLabelNet", callback: Callback, state: dict[str, Any], *, must_have_parts: bool
) -> None:
    for name, part in state.get("parts", {}).items():
        mine: Any = getattr(callback, name, None)
        if hasattr(mine, "load_state_dict"):
            mine.load_state_dict(part)
        elif must_have_parts:
            raise ValueError(
                f"{type(callback).__name__} sets {name!r} after its training has begun, too late for the state of a "
                "saved fit: set it in on_train_begin."
            )
    for name, value in safe_attributes(state.get("values", {})).items():
        if name.endswith("_") or _is_role(net, callback):
            setattr(callback, name, _on(net.device, value))


# ---------------------------------------------------------------------------- what can be saved
def _is_part(value: object) -> bool:
    """Whether it has a state of its own to save and load: a module, an optimiser, a schedule."""
    return hasattr(value, "state_dict") and not isinstance(value, type)


def _on(device: torch.device | str | None, value: object) -> Any:
    return to_device(value, device) if isinstance(value, Tensor) else value


def _on_cuda(net: "NoisyLabelNet") -> bool:
    return torch.device(net.device or "cpu").type == "cuda"
