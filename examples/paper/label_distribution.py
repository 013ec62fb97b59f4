"""Predicted probabilities compared with human label distributions; accuracy on other, corrupted and attacked images.

    python -m examples.paper.label_distribution --data-root DIR --features-dir DIR2 --jobs 2

Linear heads on frozen features of CIFAR-10, the settings of scale `features`, with simulated noise and human labels.
CIFAR-10H has the labels of about 50 people for each test image. The table "people" shows the cross-entropy between
their distribution and the predicted probabilities; its lowest value is the mean entropy of the human labels. "others"
has CIFAR-10.1 and 10,000 test images of CINIC-10 from ImageNet, if DIR has a folder ``cifar10.1`` or ``cinic10``. They
are not bundled; 2,000 test images with five corruptions replace them. FGSM and PGD (foolbox) change the pixels of
200 test images through the frozen network, in the maximum norm. DIR must also have the files of CIFAR-10H.
The script needs ``pip install "noisytransition[attacks,features,vision]"``.
"""

import time
import warnings
from functools import cache

import numpy as np
import torch
from scipy.special import xlogy
from torch import nn
from torchvision.transforms.v2 import functional as vision

from examples.benchmarks.shared import markdown, read_rows, run_all, spread, write_csv
from examples.cifar import load_cifar10h
from examples.paper.data import LOADERS, Places, folder_of, load, moments
from examples.paper.features import EfficientNetLite, extract, scaled
from examples.paper.image_sets import load_cifar10_1, load_cinic10_test
from examples.paper.run import RESULTS, data_of, fitted, matching
from examples.paper.study import options, write_page
from examples.paper.tables import TRUE_T, cells

NOISES = {"asymmetric 0.4": "cifar10", "worse": "cifar10n"}
NAMES = ("cross-entropy", "fine-tuning", "MW-Net", "GLC", "meta-transition", "EM", TRUE_T)
ATTACKED_NOISE = "asymmetric 0.4"
SEEDS = range(3)
N_CINIC10, N_CORRUPTED, N_ATTACKED = 10_000, 2000, 200
# largest change of a pixel (of 255), and steps of PGD; at 8 of 255 no normally trained network is ever correct
EPSILON, N_STEPS = 0.5, 5
# functions of uint8 tensors of shape (n, 3, 32, 32)
CORRUPTIONS = {
    "noise": lambda x: (vision.gaussian_noise(x / 255, sigma=0.08) * 255).round().to(torch.uint8),
    "blur": lambda x: vision.gaussian_blur(x, [5, 5], [1.0, 1.0]),
    "contrast": lambda x: vision.adjust_contrast(x, 0.4),
    "brightness": lambda x: vision.adjust_brightness(x, 1.6),
    "fewer pixels": lambda x: vision.resize(vision.resize(x, [16, 16]), [32, 32]),
}
OUT = RESULTS / "label_distribution.jsonl"


# ---------------------------------------------------------------------------- images
def test_images(places, n):
    """Load the first test images, uint8 of shape (n, 32, 32, 3); their order is random."""
    return LOADERS["cifar10"](folder_of(places.data_root, "cifar10")).X_test[:n]


def corrupted_images(places, name):
    """Corrupt test images."""
    torch.manual_seed(0)
    pixels = torch.from_numpy(np.array(test_images(places, N_CORRUPTED))).permute(0, 3, 1, 2)
    return CORRUPTIONS[name](pixels).permute(0, 2, 3, 1).contiguous().numpy()


def other_sets(places):
    """Read images and labels of the other available test sets, by name."""
    found = {}
    if (folder := places.data_root / "cifar10.1").is_dir():
        there = [version for version in ("v4", "v6") if (folder / f"cifar10.1_{version}_data.npy").exists()]
        found = {f"CIFAR-10.1 {version}": load_cifar10_1(folder, version) for version in there}
    if (folder := places.data_root / "cinic10").is_dir():
        X, y = load_cinic10_test(folder)
        rows = np.random.default_rng(0).permutation(len(y))[:N_CINIC10]
        found["CINIC-10, ImageNet"] = np.stack([X[i] for i in rows]), y[rows]
    return found


def features_of(images, places, name, jobs):
    """Compute features of images, or load them if they exist."""
    path = places.features_dir / f"cifar10_test_{name.replace(', ', '_').replace(' ', '_')}.npy"
    extract(images, path, EfficientNetLite(), jobs=jobs)
    return np.load(path)


# ---------------------------------------------------------------------------- attacks
@cache
def body():
    """Load the frozen network."""
    return EfficientNetLite().module().requires_grad_(False)


class Whole(nn.Module):
    """Network from pixels (0 to 1) to logits: the frozen network, the standardisation and the head."""

    def __init__(self, head, mean, std):
        super().__init__()
        self.body, self.head = body(), head
        self.mean, self.std = torch.from_numpy(mean), torch.from_numpy(std)

    def forward(self, pixels):
        """Compute logits."""
        features = self.body.extract_features(scaled(255 * pixels, EfficientNetLite().size)).mean((2, 3))
        return self.head((features - self.mean) / self.std)


def attacked(head, mean, std, places, y):
    """Compute the accuracy on unchanged images, and after FGSM and PGD."""
    import foolbox

    pixels = torch.from_numpy(np.array(test_images(places, N_ATTACKED))).permute(0, 3, 1, 2).float() / 255
    model = foolbox.PyTorchModel(Whole(head, mean, std).eval(), bounds=(0, 1), device="cpu")
    attacks = {
        "FGSM": foolbox.attacks.LinfFastGradientAttack(),
        "PGD": foolbox.attacks.LinfPGD(rel_stepsize=2.5 / N_STEPS, steps=N_STEPS),
    }
    right = {"none": [], **{name: [] for name in attacks}}
    for part, target in zip(pixels.split(50), torch.from_numpy(y[:N_ATTACKED]).split(50), strict=True):
        right["none"].append(foolbox.accuracy(model, part, target))
        for name, attack in attacks.items():
            _, _, fooled = attack(model, part, target, epsilons=EPSILON / 255)
            right[name].append(1 - fooled.float().mean().item())
    return {name: float(np.mean(shares)) for name, shares in right.items()}


# ---------------------------------------------------------------------------- one fit
def cross_entropy(shares, proba):
    """Compute the mean cross-entropy between human label distributions and predicted probabilities, in nats."""
    return float(-xlogy(shares, np.maximum(proba, 1e-12)).sum(axis=1).mean())


def run(noise, seed, name, places, corrupted, others):
    """Fit a method and return its result row; `corrupted` has features by name, `others` features and labels."""
    torch.set_num_threads(1)
    torch.manual_seed(seed)  # PGD has a random start
    started, rows = time.perf_counter(), cells(NOISES[noise], "features", [seed], ["linear"], methods=[name])
    (cell,) = matching(rows, [noise])
    data = load(*data_of(cell), places)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        clf = fitted(cell, data, places)
    mean, std = moments(np.load(places.features_dir / "cifar10_train.npy", mmap_mode="r")[data.rows])
    shares = load_cifar10h(folder_of(places.data_root, "cifar10h"))
    row = {
        "noise": noise,
        "seed": seed,
        "method": name,
        "accuracy": float(clf.score(data.X_test, data.y_test)),
        "cross_entropy": cross_entropy(shares, clf.predict_proba(data.X_test)),
        "lowest": cross_entropy(shares, shares),
        "corrupted": {k: float(clf.score((X - mean) / std, data.y_test[: len(X)])) for k, X in corrupted.items()},
        "others": {k: float(clf.score((X - mean) / std, y)) for k, (X, y) in others.items()},
    }
    if noise == ATTACKED_NOISE:
        row["attacked"] = attacked(clf.net_.module_, mean, std, places, data.y_test)
    return row | {"seconds": round(time.perf_counter() - started, 1)}


def main():
    """Run the missing fits, and write the tables."""
    args = options(__doc__)
    places = Places(args.data_root, args.features_dir)
    done = {(row["noise"], row["seed"], row["method"]) for row in read_rows(OUT)}
    todo = [cell for seed in SEEDS for noise in NOISES for name in NAMES if (cell := (noise, seed, name)) not in done]
    if todo:
        corrupted = {k: features_of(corrupted_images(places, k), places, k, args.jobs) for k in CORRUPTIONS}
        others = {k: (features_of(X, places, k, args.jobs), y) for k, (X, y) in other_sets(places).items()}
        run_all(run, [(*cell, places, corrupted, others) for cell in todo], OUT, args.jobs)
    report(read_rows(OUT))


# ---------------------------------------------------------------------------- tables
def table(rows, columns):
    """Format the lines of a table: mean and standard deviation over seeds of each column, for each method."""
    lines = []
    for name in NAMES:
        own = [row for row in rows if row["method"] == name]
        values = [[found for row in own if (found := column(row)) is not None] for column in columns]
        lines.append((name, [spread(v) if v else "" for v in values]))
    return [line for line in lines if any(line[1])]


def people(rows):
    """Build the table of accuracy and cross-entropy with CIFAR-10H, for each noise."""
    lowest = f"cross-entropy (lowest {rows[0]['lowest']:.3f})"
    heads = [f"{noise}: {text}" for noise in NOISES for text in ("accuracy", lowest)]
    return heads, table(
        rows,
        [
            lambda row, n=noise, c=column: row[c] if row["noise"] == n else None
            for noise in NOISES
            for column in ("accuracy", "cross_entropy")
        ],
    )


def harder(rows, group):
    """Build a table of accuracies on other, corrupted or attacked images, for simulated noise."""
    own = [row for row in rows if row["noise"] == ATTACKED_NOISE and row.get(group)]
    heads = list(dict.fromkeys(head for row in own for head in row[group]))  # later runs may have more sets
    return heads, table(own, [lambda row, h=head: row[group].get(h) for head in heads])


def report(rows):
    """Write the tables as a Markdown page and as .csv files for the docs."""
    groups = [group for group in ("others", "corrupted", "attacked") if any(row.get(group) for row in rows)]
    tables = {"people": people(rows)} | {group: harder(rows, group) for group in groups}
    parts = ["# " + __doc__.splitlines()[0], " ".join(__doc__.splitlines()[4:10])]
    for name, (heads, lines) in tables.items():
        parts.append(f"## {name}\n\n" + markdown(heads, lines))
        write_csv(OUT.with_name(f"{OUT.stem}_{name}.csv"), heads, lines)
    write_page(OUT, parts)


if __name__ == "__main__":
    from examples.paper.label_distribution import main

    main()
