"""The factored meta-gradient is exact for some modules, and refused for others."""

import pytest
import torch
from torch import nn
from torch.nn.functional import cosine_similarity

from noisytransition.losses import ForwardLoss
from noisytransition.meta_gradient import look_ahead
from noisytransition.transition import pair_noise


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
EXACT = {
    "logistic regression": nn.Sequential(nn.Linear(4, 3)),
    "one hidden layer": nn.Sequential(nn.Linear(4, 6), nn.ReLU(), nn.Linear(6, 3)),
    "without bias": nn.Sequential(nn.Flatten(), nn.Linear(4, 6, bias=False), nn.ReLU(inplace=True), nn.Linear(6, 3)),
    "the same ReLU": nn.Sequential(nn.Linear(4, 6), relu := nn.ReLU(), nn.Linear(6, 6), relu, nn.Linear(6, 3)),
}


def tangent(module, method):
    random = torch.Generator().manual_seed(0)
    x, y = torch.randn(16, 4, generator=random), torch.randint(3, (16,), generator=random)
    loss, rates = ForwardLoss(pair_noise(3, 0.3)), {name: 0.3 for name, _ in module.named_parameters()}
    torch.manual_seed(0)
    ahead = look_ahead(
        module.train(), x[:8], lambda z: loss.cotangent(z, y[:8]), (x[8:], y[8:]), rates, methods=(method,)
    )
    return ahead.tangent.flatten()


@pytest.mark.parametrize("name", OTHERS)
def test_the_factored_method_is_refused_for_other_modules(name):
    with pytest.raises(NotImplementedError, match="can differentiate"):
        tangent(OTHERS[name], "factored")


@pytest.mark.parametrize("name", EXACT)
def test_the_factored_method_is_exact_for_the_modules_that_it_takes(name):
    assert cosine_similarity(tangent(EXACT[name], "factored"), tangent(EXACT[name], "double-vjp"), dim=0) > 1 - 1e-5
