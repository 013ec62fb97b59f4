"""Networks of the paper's tables, and heads for frozen features.

Images have shape (n, height, width, 3) and values of 0 to 255, as in the data sets of this library. Each network
standardises them by ImageNet's mean and standard deviation. `parameters` returns the parameters of a classifier.
"""

from itertools import pairwise

import torch
from torch import nn
from torch.nn import functional as F
from torchvision.models import resnet34, resnet50
from torchvision.models.resnet import BasicBlock

from noisytransition.nets import MLP

# of ImageNet, as pretrained networks expect; for networks trained from scratch, any scale near 1 is sufficient
MEAN, STD = (0.485, 0.456, 0.406), (0.229, 0.224, 0.225)
# width of the MLP head; a choice, not measured
HIDDEN = 128


class Normalise(nn.Module):
    """Layer that moves channels first and scales pixels to a mean of about 0 and a variance of about 1."""

    def __init__(self):
        super().__init__()
        self.register_buffer("mean", 255 * torch.tensor(MEAN))
        self.register_buffer("std", 255 * torch.tensor(STD))

    def forward(self, x):
        """Standardise the pixels."""
        return ((x - self.mean) / self.std).permute(0, 3, 1, 2)


def averaged(n_features, n_classes):
    """Return average pooling and a linear layer."""
    return nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(n_features, n_classes)


def conv(n_in, n_out, stride=1):
    """Return a 3 x 3 convolution without bias, batch normalisation and ReLU."""
    return nn.Sequential(nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False), nn.BatchNorm2d(n_out), nn.ReLU(inplace=True))


# ---------------------------------------------------------------------------- torchvision's
class ResNet34(nn.Sequential):
    """ResNet-34 for 32 x 32 images; the stem is a 3 x 3 convolution without stride and pooling."""

    def __init__(self, n_classes):
        net = resnet34(num_classes=n_classes)
        net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
        super().__init__(Normalise(), net)


class ResNet50(nn.Sequential):
    """torchvision's ResNet-50.

    Parameters
    ----------
    n_classes : int
    weights : str, optional
        File with the weights of torchvision's `resnet50`, such as ``resnet50-0676ba61.pth``, used for all layers but
        the last. Default: random weights.
    """

    def __init__(self, n_classes, weights=None):
        net = resnet50()
        if weights is not None:
            net.load_state_dict(torch.load(weights, map_location="cpu", weights_only=True))
        net.fc = nn.Linear(net.fc.in_features, n_classes)
        super().__init__(Normalise(), net)


# ---------------------------------------------------------------------------- ResNet-110
class Padded(nn.Module):
    """Shortcut without parameters: every second pixel, and zeros for new channels (option A of He et al.)."""

    def __init__(self, n_new):
        super().__init__()
        self.n_new = n_new

    def forward(self, x):
        """Subsample the pixels and pad the channels."""
        return F.pad(x[:, :, ::2, ::2], (0, 0, 0, 0, self.n_new // 2, self.n_new - self.n_new // 2))


class ResNet110(nn.Sequential):
    """ResNet-110 for 32 x 32 images (He et al., 2016, section 4.2), with 54 blocks of two convolutions."""

    def __init__(self, n_classes, n_blocks=18):
        blocks, n_in = [], 16
        for width in (16, 32, 64):
            first = BasicBlock(n_in, width, 2, Padded(width - n_in)) if width > n_in else BasicBlock(n_in, width)
            blocks += [first, *(BasicBlock(width, width) for _ in range(n_blocks - 1))]
            n_in = width
        super().__init__(Normalise(), conv(3, 16), *blocks, *averaged(64, n_classes))


# ---------------------------------------------------------------------------- PreAct ResNet-18
class PreActBlock(nn.Module):
    """Residual block with batch normalisation and ReLU before each convolution (He et al., Identity Mappings, 2016)."""

    def __init__(self, n_in, n_out, stride):
        super().__init__()
        self.norms = nn.ModuleList([nn.BatchNorm2d(n_in), nn.BatchNorm2d(n_out)])
        self.first = nn.Conv2d(n_in, n_out, 3, stride, 1, bias=False)
        self.second = nn.Conv2d(n_out, n_out, 3, 1, 1, bias=False)
        self.shortcut = nn.Conv2d(n_in, n_out, 1, stride, bias=False) if n_in != n_out else None

    def forward(self, x):
        """Add the shortcut."""
        active = F.relu(self.norms[0](x))
        short = x if self.shortcut is None else self.shortcut(active)
        return short + self.second(F.relu(self.norms[1](self.first(active))))


class PreActResNet18(nn.Sequential):
    """PreAct ResNet-18 for 64 x 64 images; the stem has no stride, and average pooling allows other sizes."""

    def __init__(self, n_classes):
        blocks, n_in = [], 64
        for width in (64, 128, 256, 512):
            blocks += [PreActBlock(n_in, width, 2 if width > n_in else 1), PreActBlock(width, width, 1)]
            n_in = width
        stem, last = nn.Conv2d(3, 64, 3, padding=1, bias=False), (nn.BatchNorm2d(512), nn.ReLU(inplace=True))
        super().__init__(Normalise(), stem, *blocks, *last, *averaged(512, n_classes))


# ---------------------------------------------------------------------------- smaller networks
def pooled_block(n_in, n_out):
    """Return two 3 x 3 convolutions; pooling precedes the first batch normalisation, which saves time."""
    first = nn.Conv2d(n_in, n_out, 3, padding=1, bias=False), nn.MaxPool2d(2), nn.BatchNorm2d(n_out)
    return *first, nn.ReLU(inplace=True), conv(n_out, n_out)


class FastCNN(nn.Sequential):
    """Network of seven convolutions for 32 x 32 images, which needs few epochs.

    The order of the layers is from Jordan, "94% on CIFAR-10 in 3.29 Seconds on a Single GPU", 2024. The layers are
    narrower; its first filters, initial weights, loss and optimiser are not used.
    """

    def __init__(self, n_classes):
        stem = nn.Conv2d(3, 24, 2), nn.ReLU(inplace=True)
        blocks = (layer for widths in pairwise((24, 64, 128, 256)) for layer in pooled_block(*widths))
        super().__init__(Normalise(), *stem, *blocks, nn.MaxPool2d(3), nn.Flatten(), nn.Linear(256, n_classes))
        self.to(memory_format=torch.channels_last)  # faster


class Residual(nn.Module):
    """Residual block of two convolutions."""

    def __init__(self, width):
        super().__init__()
        self.convolutions = nn.Sequential(conv(width, width), conv(width, width))

    def forward(self, x):
        """Add the shortcut."""
        return x + self.convolutions(x)


class ResNet9(nn.Sequential):
    """Network of eight convolutions and a linear layer for 32 x 32 images, which needs few epochs.

    It is the network of Page, "How to Train Your ResNet", 2018: three convolutions with pooling double the width, there
    are two residual blocks, and the logits are scaled down.
    """

    def __init__(self, n_classes, width=64):
        widths = (width, 2 * width, 4 * width, 8 * width)
        first, second, third = (nn.Sequential(conv(a, b), nn.MaxPool2d(2)) for a, b in pairwise(widths))
        maps = conv(3, width), first, Residual(2 * width), second, third, Residual(8 * width)
        super().__init__(Normalise(), *maps, nn.MaxPool2d(4), nn.Flatten(), nn.Linear(8 * width, n_classes, bias=False))
        self.to(memory_format=torch.channels_last)  # faster, above all in half precision

    def forward(self, x):
        """Compute logits, an eighth of the output of the last layer."""
        return super().forward(x) / 8


class NarrowResNet9(ResNet9):
    """ResNet-9 with a quarter of the width, for machines without a GPU."""

    def __init__(self, n_classes):
        super().__init__(n_classes, width=16)


class SmallCNN(nn.Sequential):
    """Network of three convolutions with stride, for images of any size."""

    def __init__(self, n_classes, width=16):
        widths = (3, width, 2 * width, 4 * width)
        layers = [conv(n_in, n_out, 2) for n_in, n_out in pairwise(widths)]
        super().__init__(Normalise(), *layers, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(16 * width, n_classes))


# ---------------------------------------------------------------------------- by name
IMAGES = {
    "ResNet-34": ResNet34,
    "ResNet-50": ResNet50,
    "ResNet-110": ResNet110,
    "PreAct ResNet-18": PreActResNet18,
    "ResNet-9": ResNet9,
    "narrow ResNet-9": NarrowResNet9,
    "fast CNN": FastCNN,
    "small CNN": SmallCNN,
}
HEADS = ("linear", "MLP")
NETWORKS = (*IMAGES, *HEADS)


def parameters(name, n_columns, n_classes, weights=None):
    """Return the module of a classifier and its parameters; `n_columns` is the number of features."""
    if name == "linear":
        return {"module": nn.Linear, "module__in_features": n_columns, "module__out_features": n_classes}
    if name == "MLP":
        return {"module": MLP, "module__n_in": n_columns, "module__n_out": n_classes, "module__hidden": HIDDEN}
    own = {"module__weights": weights} if name == "ResNet-50" else {}
    return {"module": IMAGES[name], "module__n_classes": n_classes} | own
