"""Profile a step: calls of PyTorch's operators, multiplications, and the share of products in the operators' time.

    python examples/benchmarks/speed_profile.py

The profile explains the ratios of whole steps in `speed.py`.
"""

import os

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
import torch
from shared import RESULTS, markdown, publish, versions, write_csv
from speed_steps import Problem, cnn, mlp, plain
from speed_turns import turns
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

# operators whose time grows with the network
PRODUCTS = ("aten::addmm", "aten::mm", "aten::bmm", "aten::baddbmm", "aten::mkldnn_convolution")
PRODUCTS += ("aten::convolution_backward", "aten::native_batch_norm", "aten::native_batch_norm_backward")
CASES = {
    "MLP 64-128-128-10, batch 32": lambda: Problem(lambda: mlp(64, 128, 128, 10), (64,), 32, 40),
    "MLP 64-128-128-10, batch 128": lambda: Problem(lambda: mlp(64, 128, 128, 10), (64,), 128, 40),
    "MLP 784-256-256-10, batch 128": lambda: Problem(lambda: mlp(784, 256, 256, 10), (784,), 128, 40),
    "CNN, batch 128": lambda: Problem(lambda: cnn(False), (3, 32, 32), 128, 10),
    "CNN with batch normalisation, batch 128": lambda: Problem(lambda: cnn(True), (3, 32, 32), 128, 10),
    "1,000 classes": lambda: Problem(lambda: mlp(64, 128, 1000), (64,), 128, 200, n_classes=1000),
}
COLUMNS = ["microseconds", "operator calls", "multiplications / plain step", "share of products in operator time"]


def main():
    """Profile plain steps, steps of EM and steps of Algorithm 1."""
    torch.set_num_threads(1)
    lines = []
    for case, made in CASES.items():
        problem = made()
        multiplied = multiplications(problem.ours())
        for name, epoch in (
            ("bare loop", problem.loop(plain)),
            ("plain", problem.ours()),
            ("EM", problem.em_with_clean_rows()),
            ("Algorithm 1", problem.meta()),
        ):
            found = profiled(epoch, len(problem.noisy) // problem.batch_size)
            found.insert(2, f"{multiplications(epoch) / multiplied:.2f}")
            lines.append((f"{case}: {name}", found))
            print(*lines[-1], flush=True)
    publish(
        "speed_profile.md",
        ["# Composition of a step", f"See `speed_profile.py`. {versions()}, one thread.", markdown(COLUMNS, lines)],
    )
    write_csv(RESULTS / "speed_profile.csv", COLUMNS, lines, corner="step")


def profiled(epoch, n_steps, repeats=5):
    """Return the microseconds of a step, its operator calls, and the share of products in the time of operators."""
    seconds = np.median(turns({"epoch": epoch}, repeats)["epoch"])
    with profile(activities=[ProfilerActivity.CPU]) as prof:
        epoch()
    events = [event for event in prof.key_averages() if event.key.startswith("aten::")]
    inside = {event.key: event.self_cpu_time_total for event in events}
    calls = sum(event.count for event in events) / n_steps
    share = sum(inside.get(key, 0) for key in PRODUCTS) / sum(inside.values())
    return [f"{seconds / n_steps * 1e6:,.0f}", f"{calls:.0f}", f"{share:.2f}"]


def multiplications(epoch):
    """Count the multiplications of matrix products and convolutions in an epoch."""
    with FlopCounterMode(display=False) as counter:
        epoch()
    return counter.get_total_flops()


if __name__ == "__main__":
    main()
