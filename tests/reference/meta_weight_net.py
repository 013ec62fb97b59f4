"""Literal implementation of Algorithm 1 of Meta-Weight-Net, with a double backward pass through the look-ahead."""

import torch
from torch.func import functional_call
from torch.nn import functional as F


def weighted_loss(logits, y, weight_net):
    costs = F.cross_entropy(logits, y, reduction="none")
    weights = weight_net(costs.detach().reshape(-1, 1)).reshape(-1)
    return (weights * costs).mean()


def weight_gradient(module, weight_net, alpha, noisy, meta):
    """d clean loss(W - alpha * d weighted loss / dW) / dV."""
    (x, y), (x_meta, y_clean) = noisy, meta
    weights, buffers = dict(module.named_parameters()), {k: b.clone() for k, b in module.named_buffers()}
    loss = weighted_loss(functional_call(module, (weights, dict(buffers)), (x,)), y, weight_net)
    gradients = torch.autograd.grad(loss, list(weights.values()), create_graph=True)
    ahead = {name: w - alpha * g for (name, w), g in zip(weights.items(), gradients, strict=True)}
    clean = F.cross_entropy(functional_call(module, (ahead, dict(buffers)), (x_meta,)), y_clean)
    return torch.autograd.grad(clean, list(weight_net.parameters()))


def iteration(module, optimizer, weight_net, weight_optimizer, noisy, meta, alpha):
    """One iteration: V first, then W with the new weights, which are constants there."""
    gradients = weight_gradient(module, weight_net, alpha, noisy, meta)
    for parameter, gradient in zip(weight_net.parameters(), gradients, strict=True):
        parameter.grad = gradient
    weight_optimizer.step()
    costs = F.cross_entropy(module(noisy[0]), noisy[1], reduction="none")
    with torch.no_grad():
        weights = weight_net(costs.reshape(-1, 1)).reshape(-1)
    optimizer.zero_grad()
    (weights * costs).mean().backward()
    optimizer.step()
