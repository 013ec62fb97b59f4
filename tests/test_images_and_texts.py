"""The blocks of docs/images_and_texts.rst, with small photos, and with networks that need no download."""

import functools
import re
import sys
import types
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import noisytransition

PAGE = Path(__file__).parents[1] / "docs" / "images_and_texts.rst"
COLOURS = {"frog": (40, 180, 40), "plane": (90, 140, 250), "ship": (200, 200, 220)}


def blocks():
    """The page's blocks of Python: photos, texts, samples to verify, fit."""
    found = re.findall(r"\.\. code-block:: python\n\n((?:   .*\n|\n)+)", PAGE.read_text())
    return [re.sub(r"^   ", "", block, flags=re.MULTILINE) for block in found]


def draw(classes):
    """Classes of 150 samples, and labels of which 20 % are wrong."""
    rng = np.random.default_rng(0)
    y = rng.choice(classes, 150)
    wrong = rng.random(150) < 0.2
    return y, np.where(wrong, rng.choice(classes, 150), y)


@pytest.fixture
def photos(tmp_path, monkeypatch):
    """Photos of one colour in the folders of their labels, and a network that keeps the mean colour."""
    torch = pytest.importorskip("torch")
    models = pytest.importorskip("torchvision").models
    from PIL import Image

    class MeanColour(torch.nn.Module):
        def __init__(self, weights):
            super().__init__()
            self.fc = torch.nn.Linear(3, 1000)

        def forward(self, images):
            return self.fc(images.mean(dim=(2, 3)))

    monkeypatch.setattr(models, "resnet50", MeanColour)
    y, given = draw(list(COLOURS))
    rng = np.random.default_rng(1)
    for i, (true, label) in enumerate(zip(y, given, strict=True)):
        pixels = np.clip(rng.normal(COLOURS[true], 25, size=(8, 8, 3)), 0, 255).astype(np.uint8)
        (tmp_path / "photos" / label).mkdir(parents=True, exist_ok=True)
        Image.fromarray(pixels).save(tmp_path / "photos" / label / f"{i}_{true}.png")
    return lambda df: df["file"].str.extract(r"_(\w+)\.png")[0]


@pytest.fixture
def texts(tmp_path, monkeypatch):
    """A file of texts that name their class, and a network that counts words."""
    y, given = draw(["complaint", "praise", "question"])
    pd.DataFrame({"text": [f"a {true}" for true in y], "label": given}).to_csv(tmp_path / "reviews.csv")

    class Words:
        def __init__(self, name):
            self.names = ["complaint", "praise", "question"]

        def encode(self, texts):
            noise = np.random.default_rng(2).normal(0, 0.3, (len(texts), 3))
            return (noise + [[name in text for name in self.names] for text in texts]).astype(np.float32)

    module = types.SimpleNamespace(SentenceTransformer=Words)
    monkeypatch.setitem(sys.modules, "sentence_transformers", module)
    return lambda df: df["text"].str.removeprefix("a ")


@pytest.mark.parametrize("source", ["photos", "texts"])
def test_from_files_to_wrong_labels(source, tmp_path, monkeypatch, request):
    truth_of = request.getfixturevalue(source)
    monkeypatch.chdir(tmp_path)
    few = functools.partial(noisytransition.EMTransitionClassifier, max_epochs=5, lr=0.1)
    monkeypatch.setattr(noisytransition, "EMTransitionClassifier", few)
    of_photos, of_texts, draw_samples, fit = blocks()
    names = {}
    exec(of_photos if source == "photos" else of_texts, names)
    exec("import pandas as pd\n" + draw_samples, names)
    y = truth_of(names["df"])
    to_verify = pd.read_csv("to_verify.csv", index_col="row")
    assert len(to_verify) == 100
    assert to_verify["verified"].isna().all()
    to_verify.assign(verified=y[to_verify.index]).to_csv("to_verify.csv")
    exec(fit, names)
    issues = pd.read_csv("issues.csv")
    wrong = (names["df"]["label"] != y)[issues["position"]]
    assert len(issues)
    assert wrong.mean() > 0.8
    assert (names["df"].iloc[issues["position"], 0].to_numpy() == issues["sample"]).all()
    assert Path("report.html").stat().st_size
