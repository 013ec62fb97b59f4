"""Literal implementation of Algorithm 1 of the paper, with a double backward pass through the look-ahead."""

import torch
from torch.func import functional_call
from torch.nn import functional as F


def corrected_loss(logits, y, theta):
    """- mean log sum_i f_i(x) T[i, y], with the whole product f T formed."""
    noisy = F.softmax(logits, 1) @ F.softmax(theta, 1)
    return -noisy[torch.arange(len(y)), y].log().mean()


def scratch(module):
    return {name: buffer.clone() for name, buffer in module.named_buffers()}


def rates(module, optimizer):
    """Return the optimiser's learning rate of each parameter."""
    by_id = {id(p): group["lr"] for group in optimizer.param_groups for p in group["params"] if p.requires_grad}
    return {name: by_id[id(p)] for name, p in module.named_parameters() if id(p) in by_id}


def theta_gradient(module, alpha, theta, noisy, meta):
    """d clean loss(W - alpha * d corrected loss / dW) / d theta."""
    (x, y), (x_meta, y_clean) = noisy, meta
    weights = {name: p for name, p in module.named_parameters() if name in alpha}
    loss = corrected_loss(functional_call(module, (weights, scratch(module)), (x,)), y, theta)
    gradients = torch.autograd.grad(
        loss, list(weights.values()), create_graph=True, allow_unused=True, materialize_grads=True
    )
    ahead = {name: w - alpha[name] * g for (name, w), g in zip(weights.items(), gradients, strict=True)}
    clean = F.cross_entropy(functional_call(module, (ahead, scratch(module)), (x_meta,)), y_clean)
    return torch.autograd.grad(clean, theta)[0]


def scale(module, alpha, theta, noisy, meta):
    """Factor of the normalised meta-gradient: n_classes (1 - exp(-clean loss)) / root mean square of the tangent.

    The tangent of the logits is their derivative along alpha * d clean loss / dW, with the clean loss at W_hat.
    """
    (x, y), (x_meta, y_clean) = noisy, meta
    weights = {name: p.detach() for name, p in module.named_parameters() if name in alpha}

    def logits(weights, x):
        return functional_call(module, (weights, scratch(module)), (x,))

    by_noisy = torch.func.grad(lambda w: corrected_loss(logits(w, x), y, theta))(weights)
    ahead = {name: w - alpha[name] * by_noisy[name] for name, w in weights.items()}
    by_clean, loss = torch.func.grad_and_value(lambda w: F.cross_entropy(logits(w, x_meta), y_clean))(ahead)
    direction = tuple(alpha[name] * g for name, g in by_clean.items())
    _, tangent = torch.autograd.functional.jvp(
        lambda *w: logits(dict(zip(weights, w, strict=True)), x), tuple(weights.values()), direction
    )
    return theta.shape[1] * (1 - torch.exp(-loss)) / tangent.norm(dim=1).square().mean().sqrt()


def iteration(module, optimizer, theta, beta, noisy, meta, normalize=False):
    """Run one iteration and return the new theta. The real step uses the dropout masks of the look-ahead again."""
    state = torch.get_rng_state()
    gradient = theta_gradient(module, rates(module, optimizer), theta, noisy, meta)
    if normalize:
        gradient = gradient * scale(module, rates(module, optimizer), theta.detach(), noisy, meta)
    after = torch.get_rng_state()
    theta = (theta.detach() - beta * gradient).requires_grad_()
    torch.set_rng_state(state)
    optimizer.zero_grad()
    corrected_loss(module(noisy[0]), noisy[1], theta.detach()).backward()
    optimizer.step()
    torch.set_rng_state(after)
    return theta
