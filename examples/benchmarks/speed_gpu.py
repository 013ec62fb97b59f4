"""Time steps of ResNet-18 and ResNet-50 on a GPU, compared with plain steps and tuned loops.

    python examples/benchmarks/speed_gpu.py                  # add missing results
    python examples/benchmarks/speed_gpu.py --minutes 3      # start no case after 3 minutes; a second call continues
    python examples/benchmarks/speed_gpu.py --report         # only write the page
    python examples/benchmarks/speed_gpu.py --device cpu --smoke    # a short test that writes no results

The library copies images (uint8) from pinned memory to the GPU batch by batch. A loop has all images on the GPU and
does not read the loss. Both use channels last, cuDNN's benchmark mode and a fused optimiser. Epochs are interleaved;
the clock waits for the GPU. In float32, convolutions use TF32, torch's default.
"""

import argparse
import gc
import os
import time
import warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from shared import RESULTS, add_row, markdown, publish, read_rows, versions, write_csv
from speed import goal, shown
from speed_steps import Problem, State, double_backward_shared, plain
from speed_turns import ratio, turns
from torch import nn
from torch.nn import functional as F
from torchvision.models import resnet18, resnet50

from noisytransition.nets import Rows
from noisytransition.transition import symmetric_noise

OUT = RESULTS / "speed_gpu.jsonl"
STEP = 0.05  # rate of EM's running counts


# ---------------------------------------------------------------------------- networks
class Images(nn.Module):
    """Module that scales pixels to mean near 0 and variance near 1, channels first."""

    def forward(self, x):
        """Scale pixels."""
        return (x.float() / 64 - 2).permute(0, 3, 1, 2)


class Autocast(nn.Sequential):
    """Network of a loop in a given precision; logits are float32."""

    precision = "float32"

    def forward(self, x):
        """Return logits."""
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.precision == "bf16"):
            return super().forward(x).float()


def small_images():
    """Return ResNet-18 for images of 32 x 32: its stem is a convolution of 3 x 3 without stride or pooling."""
    net = resnet18(num_classes=10)
    net.conv1, net.maxpool = nn.Conv2d(3, 64, 3, padding=1, bias=False), nn.Identity()
    return nn.Sequential(Images(), net)


def larger_images():
    """Return torchvision's ResNet-50."""
    return nn.Sequential(Images(), resnet50(num_classes=10))


# ---------------------------------------------------------------------------- epochs
class Case(Problem):
    """Random images, one network, one precision."""

    def __init__(self, network, size, batch_size, n_batches, precision, device):
        rng = np.random.default_rng(0)
        self.network, self.batch_size, self.n_classes = network, batch_size, 10
        self.precision, self.device, self.n = precision.split(",")[0], device, batch_size * n_batches
        self.is_compiled = precision.endswith("compiled")
        self.noisy, self.clean = (
            Rows(rng.integers(256, size=(n, size, size, 3), dtype=np.uint8), rng.integers(10, size=n))
            for n in (self.n, batch_size)
        )
        self.T = symmetric_noise(10, 0.4)

    def made(self):
        """Return a network with the same initial weights each time, with channels last."""
        return super().made().to(memory_format=torch.channels_last)

    def ours(self, rows=None, **params):
        """Return a function that trains a network by the library for an epoch."""
        own = {"device": self.device, "precision": self.precision, "compile": self.is_compiled}
        pinned = {"iterator_train__pin_memory": self.device == "cuda"}
        return super().ours(rows, **own, **pinned, optimizer__fused=True, **params)

    def loop(self, step):
        """Return a function that runs a loop over an epoch of batches, with all data on the GPU."""
        X, y, X_clean, y_clean = (
            torch.from_numpy(a).to(self.device) for rows in (self.noisy, self.clean) for a in (rows.X, rows.label)
        )
        module = Autocast(*self.made()).to(self.device)
        module.precision = self.precision
        state = Counting(module, torch.from_numpy(self.T).float().to(self.device), fused=True)
        state.n_clean = self.batch_size * len(X_clean) // len(X)
        if self.is_compiled:
            state.module = torch.compile(state.module)

        def epoch():
            for index in torch.randperm(len(X), device=self.device).split(self.batch_size):
                chosen = torch.randperm(len(X_clean), device=self.device)
                step(state, X[index], y[index], X_clean[chosen], y_clean[chosen])

        return epoch

    def all_ours(self):
        """Return epochs of the library, by method; Algorithm 1 does not support compiled networks."""
        meta = {} if self.is_compiled else {"Algorithm 1": self.meta()}
        return {"cross-entropy": self.ours(), "EM": self.em_with_clean_rows()} | meta


class Counting(State):
    """State of a loop, with T and its running counts."""

    def __init__(self, module, T, **params):
        super().__init__(module, T, **params)
        self.counts = T.clone()

    @torch.no_grad()
    def count(self, logits, y):
        """Add the expected counts of a batch."""
        joint = torch.softmax(logits, 1) * (self.counts / self.counts.sum(1, keepdim=True))[:, y].T
        joint /= joint.sum(1, keepdim=True)
        of_batch = torch.zeros_like(self.counts).index_add_(1, y, joint.T)
        self.counts.mul_(1 - STEP).add_(of_batch, alpha=STEP)
        self.theta.copy_((self.counts / self.counts.sum(1, keepdim=True)).log())


def em(state, x, y, x_clean, y_clean):
    """Run a step of EM, with the share of clean samples that a batch has on average."""
    n, n_clean = len(y), state.n_clean
    logits = state.module(torch.cat([x, x_clean[:n_clean]]))
    state.step(state.loss(logits[:n], y) + F.cross_entropy(logits[n:], y_clean[:n_clean], reduction="sum") / n)
    state.count(logits[:n], y)


# one forward pass for both steps of Algorithm 1
LOOPS = {"cross-entropy": plain, "EM": em, "Algorithm 1": double_backward_shared}


# ---------------------------------------------------------------------------- measures
# network, image size, batch size, batches per epoch
NETWORKS = {
    "ResNet-18, batch 128": (small_images, 32, 128, 20),
    "ResNet-18, batch 512": (small_images, 32, 512, 6),
    "ResNet-50, batch 128": (larger_images, 96, 128, 8),
    "ResNet-50, batch 512": (larger_images, 96, 512, 3),
}
PRECISIONS = ("float32", "bf16", "bf16, compiled")
IN_A_SECOND = "images a second"  # name in the result file
CASES = [(name, precision) for precision in PRECISIONS for name in NETWORKS]


def measured(name, precision, device, n_turns=4):
    """Yield the results of one case."""
    case = Case(*NETWORKS[name], precision, device)
    ours = case.all_ours()
    loops = {f"loop, {method}": case.loop(LOOPS[method]) for method in ours}
    times = turns(ours | loops, n_turns, clock=clock)
    for method in list(ours)[1:]:
        yield ratio(method, "step / plain step", times[method], times["cross-entropy"])
    for method in ours:
        yield ratio(method, "throughput / that of a loop", times[f"loop, {method}"], times[method], 0.9)
    for call in times:
        yield ratio(call, IN_A_SECOND, case.n, times[call])
    if device == "cuda":
        peaks = {call: peak(function) for call, function in (ours | loops).items()}
        for call in list(peaks)[1:]:
            yield ratio(call, "peak memory / plain step", np.array([peaks[call]]), peaks["cross-entropy"])


def clock():
    """Return the time after the GPU has finished its work."""
    if torch.cuda.is_available():
        torch.cuda.synchronize()
    return time.perf_counter()


def peak(call):
    """Return the bytes of GPU memory that a call allocates at its peak."""
    torch.cuda.reset_peak_memory_stats()
    before = torch.cuda.memory_allocated()
    call()
    return torch.cuda.max_memory_allocated() - before


def machine():
    """Return the versions and the name of the GPU."""
    name = torch.cuda.get_device_name() if torch.cuda.is_available() else "no GPU"
    return f"{versions()}, {name}"


def main():
    """Add missing results, and report."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--report", action="store_true", help="only write the page of the existing results")
    parser.add_argument("--minutes", type=float, default=np.inf, help="start no case after this time")
    parser.add_argument("--device", default="cuda", help="device of torch")
    parser.add_argument("--smoke", action="store_true", help="print one small case, without writing results")
    args = parser.parse_args()
    warnings.simplefilter("ignore")
    torch.backends.cudnn.benchmark = True
    if args.smoke:
        NETWORKS["ResNet-18, batch 128"] = (small_images, 32, 16, 2)
        for row in measured("ResNet-18, batch 128", "float32", args.device, 1):
            print(row)
        return
    end = time.monotonic() + 60 * args.minutes
    done = {(row["network"], row["precision"]) for row in read_rows(OUT)}
    for name, precision in [] if args.report else CASES:
        if (name, precision) not in done and time.monotonic() < end:
            started = time.monotonic()
            rows, threads = list(measured(name, precision, args.device)), torch.get_num_threads()
            for row in rows:
                add_row(
                    OUT, {"network": name, "precision": precision} | row | {"versions": machine(), "threads": threads}
                )
            gc.collect()
            torch.cuda.empty_cache()
            print(name, precision, f"{time.monotonic() - started:.0f} s", flush=True)
    report(read_rows(OUT))


def report(rows):
    """Write the page, and the table of the docs with ratios only."""
    lines = {}
    for row in rows:
        cell = f"{row['ratio']:,.0f}" if row["what"] == IN_A_SECOND else shown(row)
        name = f"{row['network']}: {row['case']}"
        lines.setdefault((name, row["what"], goal(row)), {})[row["precision"]] = cell
    found = [p for p in PRECISIONS if any(row["precision"] == p for row in rows)]
    heads = ["measure", *found, "goal"]
    cells = [(name, [what, *(own.get(p, "") for p in found), aim]) for (name, what, aim), own in lines.items()]
    made = {(row["precision"], row["threads"], row["versions"]): None for row in rows}
    said = "; ".join(f"{precision} with {threads} thread{'s' * (threads > 1)}, {of}" for precision, threads, of in made)
    text = f"See `speed_gpu.py`; median [quartiles] of epochs: {said}."
    publish("speed_gpu.md", ["# Steps on a GPU", text, markdown(heads, cells)])
    ratios = [(name, own) for name, own in cells if own[0] != IN_A_SECOND and "loop, " not in name]
    write_csv(RESULTS / "speed_gpu.csv", heads, ratios, corner="case")


if __name__ == "__main__":
    main()
