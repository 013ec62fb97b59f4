"""Networks of the paper's tables: published numbers of parameters, logits, pretrained weights."""

import numpy as np
import pytest
import torch
from torchvision.models import resnet50

from examples.paper.networks import IMAGES, ResNet50

# published (1.7 M of ResNet-110 in He et al.); fast CNN and both ResNet-9: counted by hand
MILLIONS = {
    "ResNet-34": 21.28,
    "ResNet-110": 1.73,
    "PreAct ResNet-18": 11.17,
    "ResNet-9": 6.57,
    "narrow ResNet-9": 0.41,
    "fast CNN": 1.16,
}


@pytest.mark.parametrize("name", MILLIONS)
def test_numbers_of_parameters_and_logits(name):
    net = IMAGES[name](10).eval()
    assert round(sum(p.numel() for p in net.parameters()) / 1e6, 2) == MILLIONS[name]
    images = np.random.default_rng(0).integers(256, size=(2, 32, 32, 3))
    logits = net(torch.from_numpy(images).float())
    assert logits.shape == (2, 10)
    assert (logits[0] != logits[1]).any()


def test_pretrained_weights_come_from_a_file(tmp_path):
    given = resnet50()
    torch.save(given.state_dict(), tmp_path / "weights.pth")
    net = ResNet50(14, tmp_path / "weights.pth")[1]
    assert torch.equal(net.layer4[2].conv3.weight, given.layer4[2].conv3.weight)
    assert net.fc.out_features == 14
