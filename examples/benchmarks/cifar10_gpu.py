"""CIFAR-10 at full size on a GPU: 49,000 noisy and 1,000 clean images, a ResNet-18, mixed precision.

    python examples/benchmarks/cifar10_gpu.py --data DIR --minutes 25    # stops in time; a second call resumes
    python examples/benchmarks/cifar10_gpu.py --report                   # the table of the results so far
    python examples/benchmarks/cifar10_gpu.py --data DIR --device cpu --images 300 --epochs 2    # a short test

DIR: X_train.npy, y_train.npy, X_test.npy, y_test.npy (images uint8, n x 32 x 32 x 3) and cifar10n_worse.npy. Noise:
asymmetric (the four flips of `cifar10_noise`), symmetric, and labels by people. All cells of seed 1 come first, then
those of seed 2; an interrupted fit resumes from its last epoch (`--keep`). Each result row has its number of epochs and
of images; rows with other numbers are other cells. Nothing is tuned: SGD with rate 0.1, a cosine schedule to 0,
momentum 0.9, weight decay 5e-4, batches of 128, crops and flips. EM has `meta_weight=0.25`. The warm-up of each cell, a
net trained by cross-entropy, gives all methods the same gold estimate as the start of T.
"""

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from cifar10 import NOISES as PARTS
from cifar10 import arrays
from shared import PAPER, RESULTS, add_row, crop_and_flip, markdown, publish, read_rows, versions
from sklearn.model_selection import train_test_split
from skorch.callbacks import Callback, LRScheduler
from torch import nn
from torch.optim.lr_scheduler import CosineAnnealingLR
from torchvision.models import resnet18

from noisytransition import (
    CrossEntropyClassifier,
    EMTransitionClassifier,
    FineTuningClassifier,
    GLCClassifier,
    MetaTransitionClassifier,
    flip_labels,
    gold_transition_matrix,
    transition_error,
)
from noisytransition.transition import cifar10_noise, count_transition_matrix

ROWS = RESULTS / "cifar10_gpu.jsonl"
NOISES = PARTS | {"worse": None} | {f"asymmetric-{rate}": cifar10_noise(rate) for rate in (0.8, 0.2, 0.6)}
CELLS = [(noise, seed) for seed in (1, 2) for noise in NOISES]
WARM_UP = "cross-entropy"


class ResNet(nn.Module):
    """ResNet-18 for images of 32 x 32, channels last, 0 to 255; on a GPU with autocast to bfloat16."""

    def __init__(self):
        super().__init__()
        self.net = resnet18(num_classes=10)
        self.net.conv1, self.net.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()

    def forward(self, x):
        """Logits in float32."""
        with torch.autocast(x.device.type, dtype=torch.bfloat16, enabled=x.is_cuda):
            return self.net(x.permute(0, 3, 1, 2) / 64 - 2).float()


class Deadline(Callback):
    """End a fit at a given time; its state is saved."""

    def __init__(self, end):
        self.end = end

    def on_epoch_begin(self, net, **kwargs):
        """Raise a TimeoutError, which `main` catches; the state was saved after the last epoch."""
        if time.monotonic() > self.end:
            raise TimeoutError


def load(folder, noise, seed, n):
    """Noisy and clean images with labels, true labels, the true T, test images and labels."""
    X, y, X_test, y_test = arrays(folder)
    rows = np.random.default_rng(seed).permutation(len(y))[:n]
    noisy, clean = train_test_split(rows, test_size=max(50, n // 50), stratify=y[rows], random_state=seed)
    if NOISES[noise] is None:
        given = np.load(Path(folder) / "cifar10n_worse.npy").astype(int)[noisy]
        T = count_transition_matrix(y[noisy], given, 10)
    else:
        T = NOISES[noise]
        given = flip_labels(y[noisy], T, random_state=seed)
    return (X[noisy], given), (X[clean], y[clean]), T, (X_test[:n], y_test[:n])


def methods(gold, epochs, params):
    """Names and classifiers, except the warm-up."""
    return {
        "EM": EMTransitionClassifier(transition_init=gold, meta_weight=0.25, **params),
        "GLC": GLCClassifier(transition_init=gold, **params),
        "fine-tuning": FineTuningClassifier(fine_tuning_epochs=epochs, **params),
        "meta-gradient": MetaTransitionClassifier(**(PAPER | {"transition_init": gold}), **params),
    }


def run(noise, seed, args, end):
    """All methods on one cell, each written when it ends."""
    wanted = {"noise": noise, "seed": seed, "epochs": args.epochs, "images": args.images}
    done = {row["method"]: row for row in read_rows(ROWS) if wanted.items() <= row.items()}
    if len(done) == 5:
        return
    noisy, meta, T, test = load(args.data, noise, seed, args.images)
    schedule = LRScheduler(CosineAnnealingLR, T_max=args.epochs)
    params = {"module": ResNet, "lr": 0.1, "optimizer__momentum": 0.9, "optimizer__weight_decay": 5e-4}
    params |= {"batch_size": 128, "max_epochs": args.epochs, "batch_transform": crop_and_flip, "random_state": seed}
    params |= {"device": args.device, "callbacks": [("schedule", schedule), ("deadline", Deadline(end))]}

    def fit(method, classifier, **more):
        state, started = Path(args.keep) / ("-".join(map(str, [*wanted.values(), method])) + ".pt"), time.monotonic()
        classifier.fit(*noisy, meta=meta, state=state)
        row = wanted | {"method": method, "accuracy": float(classifier.score(*test))} | more
        if method == WARM_UP:
            row["gold"] = gold_transition_matrix(classifier.predict_proba(meta[0]), meta[1]).tolist()
            row["identity"] = transition_error(T, np.eye(10))
        elif hasattr(classifier, "transition_matrix_"):
            row["error"] = transition_error(T, classifier.transition_matrix_)
        add_row(ROWS, row | {"seconds": round(time.monotonic() - started)})
        state.unlink(missing_ok=True)
        print(wanted, method, row["accuracy"], row.get("error"), flush=True)
        return row

    warm_up = done.get(WARM_UP) or fit(WARM_UP, CrossEntropyClassifier(**params))
    for method, classifier in methods(np.array(warm_up["gold"]), args.epochs, params).items():
        if method not in done:
            fit(method, classifier)


def report():
    """Write and print the table."""
    rows, lines = read_rows(ROWS), []
    kinds = dict.fromkeys((r["noise"], r["epochs"], r["images"], r["method"]) for r in rows)
    for kind in kinds:
        here = [r for r in rows if (r["noise"], r["epochs"], r["images"], r["method"]) == kind]
        columns = [[r[k] for r in here if k in r] for k in ("identity", "error", "accuracy", "seconds")]
        lines.append((", ".join(map(str, kind)), [", ".join(f"{v:.3f}" for v in c) for c in columns]))
    heads = ["T: identity", "T: error", "accuracy", "seconds"]
    said = f"Each seed's value, last epoch. {versions()}. See `cifar10_gpu.py`."
    publish("cifar10_gpu.md", ["# CIFAR-10 on a GPU", said, markdown(heads, lines)])


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--data", help="folder of the five files")
    parser.add_argument("--keep", default="cifar10_gpu_states", help="folder of the states of interrupted fits")
    parser.add_argument("--minutes", type=float, default=np.inf)
    parser.add_argument("--epochs", type=int, default=15)
    parser.add_argument("--images", type=int, default=50_000)
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--report", action="store_true", help="only write the table of the results so far")
    args = parser.parse_args()
    if not args.report:
        end = time.monotonic() + 60 * args.minutes
        Path(args.keep).mkdir(parents=True, exist_ok=True)
        try:
            for noise, seed in CELLS:
                run(noise, seed, args, end)
        except TimeoutError:
            print("time is over")
    report()


if __name__ == "__main__":
    main()
