"""Networks of the paper's tables: published numbers of parameters, shapes, pretrained weights."""

import numpy as np
import pytest
import torch
from torchvision.models import resnet50

from examples.paper.networks import IMAGES, NETWORKS, ResNet50, ResNet110, parameters
from noisytransition import CrossEntropyClassifier

# fast CNN, both ResNet-9: counted by hand
# published: 21.28 M, 1.73 M (1.7 M in He et al.), 11.17 M for 10 classes, 25.56 M for 1,000
MILLIONS = {
    "ResNet-34": 21.28,
    "ResNet-110": 1.73,
    "PreAct ResNet-18": 11.17,
    "ResNet-9": 6.57,
    "narrow ResNet-9": 0.41,
    "fast CNN": 1.16,
}


def images(size, n=2):
    return torch.from_numpy(np.random.default_rng(0).integers(256, size=(n, size, size, 3))).float()


@pytest.mark.parametrize("name", MILLIONS)
def test_numbers_of_parameters(name):
    net = IMAGES[name](10)
    assert round(sum(p.numel() for p in net.parameters()) / 1e6, 2) == MILLIONS[name]


def test_resnet_50_has_torchvisions_parameters():
    assert round(sum(p.numel() for p in ResNet50(1000).parameters()) / 1e6, 2) == 25.56


@pytest.mark.parametrize(
    ("name", "size"),
    [
        ("ResNet-34", 32),
        ("ResNet-110", 32),
        ("PreAct ResNet-18", 64),
        ("ResNet-9", 32),
        ("narrow ResNet-9", 32),
        ("fast CNN", 32),
        ("small CNN", 64),
    ],
)
def test_logits_of_uint8_images(name, size):
    net = IMAGES[name](7).eval()
    logits = net(images(size))
    assert logits.shape == (2, 7)
    assert logits.isfinite().all()
    assert (logits[0] != logits[1]).any()


@pytest.mark.parametrize(
    ("name", "size", "maps"), [("ResNet-34", 32, (512, 4, 4)), ("PreAct ResNet-18", 64, (512, 8, 8))]
)
def test_the_last_maps_are_not_too_small(name, size, maps):
    net, seen = IMAGES[name](10).eval(), []
    pool = next(m for m in net.modules() if isinstance(m, torch.nn.AdaptiveAvgPool2d))
    pool.register_forward_hook(lambda module, inputs, output: seen.append(inputs[0].shape[1:]))
    net(images(size))
    assert seen == [maps]


def test_resnet_110_has_110_layers():
    layers = [m for m in ResNet110(10).modules() if isinstance(m, torch.nn.Conv2d | torch.nn.Linear)]
    assert len(layers) == 110


def test_pretrained_weights_come_from_a_file(tmp_path):
    torch.manual_seed(0)
    given = resnet50()
    torch.save(given.state_dict(), tmp_path / "weights.pth")
    net = ResNet50(14, tmp_path / "weights.pth")[1]
    assert torch.equal(net.layer4[2].conv3.weight, given.layer4[2].conv3.weight)
    assert net.fc.out_features == 14


@pytest.mark.parametrize("name", [name for name in NETWORKS if name.startswith(("linear", "MLP", "small"))])
def test_classifiers_take_the_parameters(name):
    rng = np.random.default_rng(0)
    X = (
        rng.normal(size=(20, 6)).astype("f4")
        if name != "small CNN"
        else rng.integers(256, size=(20, 8, 8, 3)).astype("u1")
    )
    clf = CrossEntropyClassifier(**parameters(name, 6, 2), max_epochs=1, random_state=0).fit(X, np.arange(20) % 2)
    assert clf.predict_proba(X).shape == (20, 2)
