"""Modules of many kinds, small: name -> (maker, shape of one row)."""

import torch
from torch import nn


class Block(nn.Module):
    """Attention, feed-forward, dropout and layer norms over a sequence, then a linear head."""

    def __init__(self, dropout=0.0):
        super().__init__()
        self.body = nn.TransformerEncoderLayer(8, 2, 16, dropout=dropout, batch_first=True)
        self.head = nn.Linear(8, 3)

    def forward(self, x):
        return self.head(self.body(x).mean(1))


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.LSTM(4, 6, batch_first=True), nn.Linear(6, 3)

    def forward(self, x):
        return self.head(self.body(x)[0][:, -1])


class Unused(nn.Module):
    """Module with a layer that its forward pass does not use."""

    def __init__(self):
        super().__init__()
        self.used, self.unused = nn.Linear(6, 3), nn.Linear(6, 3)

    def forward(self, x):
        return self.used(x).tanh()


def conv(norm):
    return nn.Sequential(
        nn.Conv2d(2, 4, 3, padding=1), norm(), nn.ReLU(inplace=True), nn.AvgPool2d(2), nn.Flatten(), nn.Linear(36, 3)
    )


def mlp(*layers):
    return nn.Sequential(nn.Flatten(), nn.Linear(6, 8), *layers, nn.Linear(8, 3))


def frozen():
    module = nn.Sequential(nn.Linear(6, 8), nn.ReLU(), nn.Linear(8, 8), nn.ReLU(), nn.Linear(8, 3))
    module[2].weight.requires_grad_(False)
    module[0].bias.requires_grad_(False)
    return module


def with_a_layer_twice(layer):
    """A network that uses one module in two places."""
    return nn.Sequential(nn.Linear(6, 8), layer, nn.Tanh(), nn.Linear(8, 8), layer, nn.Linear(8, 3))


MODULES = {
    "mlp": (lambda: mlp(nn.ReLU()), (6,)),
    "mlp-inplace": (lambda: mlp(nn.ReLU(inplace=True), nn.Linear(8, 8, bias=False), nn.ReLU()), (2, 3)),
    "mlp-one-relu": (lambda: mlp(relu := nn.ReLU(), nn.Linear(8, 8), relu), (6,)),
    "logistic": (lambda: nn.Sequential(nn.Linear(6, 3)), (6,)),
    "linear": (lambda: nn.Linear(6, 3), (6,)),
    "tanh": (lambda: nn.Sequential(nn.Linear(6, 8, bias=False), nn.Tanh(), nn.Linear(8, 3), nn.GELU()), (6,)),
    "dropout": (lambda: mlp(nn.ReLU(), nn.Dropout(0.4)), (6,)),
    "batch-norm": (lambda: conv(lambda: nn.BatchNorm2d(4)), (2, 6, 6)),
    "group-norm": (lambda: conv(lambda: nn.GroupNorm(2, 4)), (2, 6, 6)),
    "batch-norm-dropout": (lambda: mlp(nn.BatchNorm1d(8), nn.ReLU(), nn.Dropout(0.3)), (6,)),
    "frozen": (frozen, (6,)),
    "unused": (Unused, (6,)),
    "lstm": (Recurrent, (5, 4)),
    "attention": (Block, (4, 8)),
    "attention-dropout": (lambda: Block(0.2), (4, 8)),
    "spectral-norm": (lambda: mlp(nn.utils.parametrizations.spectral_norm(nn.Linear(8, 8)), nn.Tanh()), (6,)),
    "weight-norm": (lambda: mlp(nn.utils.parametrizations.weight_norm(nn.Linear(8, 8)), nn.Tanh()), (6,)),
    "shared-linear": (lambda: with_a_layer_twice(nn.Linear(8, 8)), (6,)),
    "shared-batch-norm": (lambda: with_a_layer_twice(nn.BatchNorm1d(8)), (6,)),
}


def batch(shape, seed, n=8, c=3):
    g = torch.Generator().manual_seed(seed)
    draw = lambda: (torch.randn(n, *shape, generator=g), torch.randint(c, (n,), generator=g))  # noqa: E731
    return draw(), draw()
