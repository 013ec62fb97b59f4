import copy

import numpy as np
import pytest
import torch
from meta_gradient.modules import MODULES, batch
from reference import algorithm_1 as twin
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel

from noisytransition.losses import ForwardLoss
from noisytransition.meta_gradient import look_ahead

pytestmark = pytest.mark.usefixtures("float64")
T_START = np.array([[0.6, 0.3, 0.1], [0.1, 0.8, 0.1], [0.2, 0.2, 0.6]])
BETA = 5.0
SHARED = ["shared-linear", "shared-batch-norm"]  # one module in two places


def make(name, seed=0):
    torch.manual_seed(seed)
    maker, shape = MODULES[name]
    return maker().train(), shape


def groups(module):
    """An optimiser with momentum, weight decay, and a rate of its own for every second parameter."""
    parameters = list(module.parameters())
    return torch.optim.SGD(
        [{"params": parameters[::2], "lr": 0.2}, {"params": parameters[1::2], "lr": 0.05}],
        lr=0.1,
        momentum=0.9,
        weight_decay=1e-2,
    )


def iteration(module, optimizer, loss, noisy, meta, methods=None):
    """One iteration of Algorithm 1 by the library's engine; returns the gradient of T's logits and the method."""
    (x, y), rates = noisy, twin.rates(module, optimizer)
    ahead = look_ahead(module, x, lambda z: loss.cotangent(z, y), meta, rates, methods=methods)
    (gradient,) = loss.meta_gradients(ahead.logits.detach(), y, ahead.tangent)
    loss.transition_logits -= BETA * gradient
    optimizer.zero_grad()
    loss(ahead.logits, y).backward()
    optimizer.step()
    return gradient, ahead.method


def gap(a, b):
    return ((a - b).abs().max() / b.abs().max().clamp_min(1e-30)).item()


# methods that are tried first; of the other modules no matter which
FIRST = dict.fromkeys(["mlp", "mlp-inplace", "mlp-one-relu", "logistic", "frozen"], "factored")
FIRST |= dict.fromkeys([*(name for name in MODULES if "batch-norm" in name), "group-norm"], "dual")


@pytest.mark.parametrize("name", [name for name in MODULES if name not in SHARED])
def test_every_method_is_algorithm_1(name):
    """After some iterations, T's logits, weights, buffers and the generator are those of the slow twin."""
    module, shape = make(name)
    data, generators = [batch(shape, i) for i in range(3)], []
    theirs, theta = copy.deepcopy(module), torch.log(torch.tensor(T_START)).requires_grad_()
    optimizer = groups(theirs)
    with sdpa_kernel(SDPBackend.MATH):  # the twin's double backward needs attention by its definition
        for i, (noisy, meta) in enumerate(data):
            torch.manual_seed(i)
            theta = twin.iteration(theirs, optimizer, theta, BETA, noisy, meta)
            generators.append(torch.get_rng_state())
        for method in ("auto", "dual", "double-vjp"):
            if method == "dual" and name in ("spectral-norm", "weight-norm"):
                continue  # no forward-mode rule: tested below
            ours, loss = copy.deepcopy(module), ForwardLoss(T_START)
            optimizer = groups(ours)
            for i, (noisy, meta) in enumerate(data):
                torch.manual_seed(i)
                taken = iteration(ours, optimizer, loss, noisy, meta, None if method == "auto" else (method,))[1]
                assert torch.equal(generators[i], torch.get_rng_state())
            assert taken == (FIRST.get(name, taken) if method == "auto" else method)
            assert gap(loss.transition_logits, theta.detach()) < 1e-10
            for key, value in ours.state_dict().items():
                expected = theirs.state_dict()[key]
                assert gap(value, expected) < 1e-10 if value.is_floating_point() else torch.equal(value, expected)


def tangent(module, shape, methods):
    noisy, meta = batch(shape, 3)
    loss = ForwardLoss(T_START)
    torch.manual_seed(1)
    rates = twin.rates(module, groups(module))
    return look_ahead(module, noisy[0], lambda z: loss.cotangent(z, noisy[1]), meta, rates, methods=methods)


@pytest.mark.parametrize(
    "name", ["mlp", "dropout", "batch-norm", "lstm", "frozen", "attention", "attention-dropout", *SHARED]
)
def test_the_difference_method_is_near(name):
    """Fused attention has no second derivative: the tangent alone uses its definition."""
    module, shape = make(name)
    default, exact, near = (
        tangent(copy.deepcopy(module), shape, methods).tangent for methods in (None, ("dual",), ("difference",))
    )
    assert gap(default, exact) < 1e-10
    assert gap(near, exact) < 1e-5
    assert gap(near, exact) > 0  # it is another computation


@pytest.mark.parametrize("name", ["spectral-norm", "weight-norm"])
def test_the_next_method_is_used_where_a_rule_is_missing(name):
    module, shape = make(name)
    with pytest.raises(NotImplementedError, match="none of the methods"):
        tangent(copy.deepcopy(module), shape, ("dual",))
    assert tangent(copy.deepcopy(module), shape, ("dual", "double-vjp")).method == "double-vjp"


def test_an_embedding_bag_uses_differences():
    torch.manual_seed(0)
    module = nn.Sequential(nn.EmbeddingBag(9, 4), nn.Linear(4, 3))
    x, y = torch.randint(9, (8, 5)), torch.randint(3, (8,))
    loss = ForwardLoss(T_START)
    rates = {name: 0.1 for name, _ in module.named_parameters()}
    ahead = look_ahead(module, x, lambda z: loss.cotangent(z, y), (x, y), rates)
    assert ahead.method == "difference"
    assert torch.isfinite(ahead.tangent).all()


def test_a_failing_module_is_not_taken_for_a_missing_rule():
    module, shape = make("mlp")
    good, bad = batch(shape, 0)[0], batch((7,), 0)[0]
    for noisy, meta in ((bad, good), (good, bad)):
        with pytest.raises(RuntimeError, match="shapes cannot be multiplied"):
            iteration(module, groups(module), ForwardLoss(T_START), noisy, meta, methods=("dual", "double-vjp"))


def places(module):
    """Parameters and buffers by position."""
    return {(m, k): v for m in module.modules() for part in (m._parameters, m._buffers) for k, v in part.items()}


@pytest.mark.parametrize("method", ["dual", "double-vjp", "difference"])
@pytest.mark.parametrize("name", ["batch-norm-dropout", *SHARED])
def test_a_look_ahead_leaves_the_module_as_one_forward_pass_does(name, method):
    module, shape = make(name)
    before = places(module)
    other = copy.deepcopy(module)
    noisy, _ = batch(shape, 3)
    tangent(module, shape, (method,))
    torch.manual_seed(1)
    other(noisy[0])
    assert all(torch.equal(v, other.state_dict()[k]) for k, v in module.state_dict().items())
    assert all(p.grad is None for p in module.parameters())
    after = places(module)
    assert all(after[place] is value for place, value in before.items())


@pytest.mark.parametrize(("n", "n_clean"), [(2, 3), (2, 60), (8, 8), (40, 3), (40, 60)])
@pytest.mark.parametrize("frozen", [(), ("1.weight", "3.bias"), ("5.weight",)])
def test_the_factored_method_is_that_of_autograd_for_few_and_for_many_samples(n, n_clean, frozen):
    """Whether layers form the gradient of their weights depends on the numbers of samples."""
    torch.manual_seed(0)
    wide = [nn.Linear(6, 30), nn.ReLU(), nn.Linear(30, 20, bias=False), nn.ReLU(), nn.Linear(20, 3)]
    module = nn.Sequential(nn.Flatten(), *wide)
    (x, y), _ = batch((2, 3), 0, n=n)
    meta, _ = batch((2, 3), 1, n=n_clean)
    loss = ForwardLoss(T_START)
    rates = {name: 0.3 + 0.1 * i for i, (name, _) in enumerate(module.named_parameters()) if name not in frozen}
    found, expected = (
        look_ahead(module, x, lambda z: loss.cotangent(z, y), meta, rates, methods=(m,))
        for m in ("factored", "double-vjp")
    )
    assert gap(found.tangent, expected.tangent) < 1e-10
    assert gap(found.meta_loss, expected.meta_loss) < 1e-10
    assert torch.equal(found.logits, expected.logits)
    ours, theirs = (torch.autograd.grad(loss(a.logits, y), list(module.parameters())) for a in (found, expected))
    assert all(torch.equal(a, b) for a, b in zip(ours, theirs, strict=True))


# ---------------------------------------------------------------------------- modules for which it would not be exact
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
}


@pytest.mark.parametrize("name", OTHERS)
def test_the_factored_method_is_refused_for_other_modules(name):
    module, x, y = OTHERS[name].double().train(), torch.randn(8, 4), torch.arange(8) % 3
    rates = {name: 0.3 for name, _ in module.named_parameters()}
    with pytest.raises(NotImplementedError, match="can differentiate"):
        look_ahead(module, x, lambda z: z, (x, y), rates, methods=("factored",))
