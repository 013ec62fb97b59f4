"""The factored meta-gradient is refused for modules for which it is not exact; test_look_ahead.py has the others."""

import pytest
import torch
from torch import nn

from noisytransition.meta_gradient import look_ahead


class Bounded(nn.Sequential):
    """Layers and a function that is not a layer."""

    def forward(self, x):
        return super().forward(x).tanh()


def hooked(add):
    module = nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3))
    add(module)
    return module


def tied():
    module = nn.Sequential(nn.Linear(3, 3), nn.ReLU(), nn.Linear(3, 3))
    module[2].weight = module[0].weight
    return nn.Sequential(nn.Linear(4, 3), *module)


def repeated():
    layer, other, relu = nn.Linear(4, 3), nn.Linear(3, 4), nn.ReLU()
    return nn.Sequential(layer, relu, other, relu, layer)


def own_forward(module):
    module.forward = lambda x: module[2](module[0](x)).tanh()


OTHERS = {
    "dropout": nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Dropout(0.5), nn.Linear(6, 3)),
    "batch normalisation": nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.ReLU(), nn.Linear(6, 3)),
    "layer normalisation": nn.Sequential(nn.LayerNorm(4), nn.Linear(4, 3)),
    "convolution": nn.Sequential(nn.Unflatten(1, (1, 4)), nn.Conv1d(1, 3, 4), nn.Flatten()),
    "tanh": nn.Sequential(nn.Linear(4, 6), nn.Tanh(), nn.Linear(6, 3)),
    "a plain layer": nn.Linear(4, 3),
    "its own forward pass": Bounded(nn.Linear(4, 3)),
    "the forward pass of an instance": hooked(own_forward),
    "shared weights": tied(),
    "layers that are repeated": repeated(),
    "a forward hook": hooked(lambda m: m[0].register_forward_hook(lambda *args: args[2] * 2)),
    "a hook of a weight": hooked(lambda m: m[0].weight.register_hook(lambda gradient: gradient * 2)),
    "a hook before": hooked(lambda m: m[0].register_forward_pre_hook(lambda m, x: (x[0] * 2,))),
    "a backward hook": hooked(lambda m: m[1].register_full_backward_hook(lambda m, i, o: (i[0] * 2,))),
    "a backward hook before": hooked(lambda m: m[1].register_full_backward_pre_hook(lambda m, o: (o[0] * 2,))),
    "weight normalisation": nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 3))),
    "spectral normalisation": nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 3))),
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_factored_method_is_refused_for_other_modules(name):
    module, x, y = OTHERS[name].train(), torch.randn(8, 4), torch.arange(8) % 3
    rates = {name: 0.3 for name, _ in module.named_parameters()}
    with pytest.raises(NotImplementedError, match="can differentiate"):
        look_ahead(module, x, lambda z: z, (x, y), rates, methods=("factored",))
