"""Run all methods on a zoo of small problems; print what fails.

    pip install ".[benchmarks]"
    python examples/benchmarks/zoo/run.py                        # the design half
    python examples/benchmarks/zoo/run.py --half check           # the check half, at the end
    python examples/benchmarks/zoo/run.py --data DIR             # and the problems with labels of people
    python examples/benchmarks/zoo/run.py --methods "EM,GLC" --problems digits --seeds 2
    python examples/benchmarks/zoo/run.py --report               # the page of what is there

Every result is a line of JSON that is written when it comes, and a second call runs what is missing. Methods have
their defaults and each problem's network; nothing is tuned. `catalogue.py` has the problems and says which half they
are in.
"""

import argparse
import os
import sys
import time
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import joblib
import torch
from shared import RESULTS, add_row, read_rows

from zoo.catalogue import PROBLEMS, of_half
from zoo.folder import image_table
from zoo.methods import CLASSIFIERS, METHODS, estimates, fitted
from zoo.report import report


# ---------------------------------------------------------------------------- one problem and seed
def run(name, seed, methods, folder, out):
    """Run these methods on one problem and seed; each result is written when it comes."""
    torch.set_num_threads(1)
    (problem,) = (p for p in PROBLEMS if p.name == name)
    started, data = time.perf_counter(), problem.make(seed, folder)
    params = problem.params(data) | {"random_state": seed}
    for method in (m for m in methods if m in CLASSIFIERS):
        _write(out, problem, seed, data, {method: _or_error(fitted, data, params, method)})
    if others := [m for m in methods if m not in CLASSIFIERS]:
        rows = _or_error(estimates, data, params, others)
        _write(out, problem, seed, data, dict.fromkeys(others, rows) if "error" in rows else rows)
    return name, seed, time.perf_counter() - started


def _or_error(measure, *args):
    try:
        return measure(*args)
    except Exception as error:  # a method that fails is a result too
        return {"error": f"{type(error).__name__}: {error}"[:300]}


def _write(out, problem, seed, data, rows):
    head = {"problem": problem.name, "seed": seed}
    for method, row in rows.items():
        add_row(out, head | {"method": method, "n_rows": len(data.y)} | row)


# ---------------------------------------------------------------------------- all of them
def fill(problems, seeds, methods, folder, out, n_jobs):
    """Run what is missing, seed by seed."""
    done = {(row["problem"], row["seed"], row["method"]) for row in read_rows(out)}
    todo = []
    for seed in range(seeds):
        for problem in problems:
            missing = [m for m in methods if (problem.name, seed, m) not in done]
            if missing:
                todo.append((problem.name, seed, missing, folder, out))
    started = time.perf_counter()
    jobs = joblib.Parallel(n_jobs, return_as="generator_unordered")(joblib.delayed(run)(*job) for job in todo)
    for i, (name, seed, seconds) in enumerate(jobs, 1):
        minutes = (time.perf_counter() - started) / 60
        print(f"[{i}/{len(todo)}, {minutes:.1f} min] {name}, seed {seed}: {seconds:.1f} s", flush=True)


def available(problems, folder):
    """Return the problems whose data is there; print which are not."""
    if folder is None and any(p.needs_folder for p in problems):
        print(f"skipped, since --data is not given: {', '.join(p.name for p in problems if p.needs_folder)}")
    problems = [p for p in problems if folder is not None or not p.needs_folder]
    if any("CIFAR" in p.name for p in problems):
        image_table(folder)  # once, before the processes start
    return problems


def chosen(text, names):
    """Names in a comma-separated text; a name may itself contain a comma."""
    found, rest = [], text
    for name in sorted(names, key=len, reverse=True):
        if name in rest:
            found.append(name)
            rest = rest.replace(name, "")
    if rest.strip(", "):
        raise SystemExit(f"--methods: {rest.strip(', ')!r} is none of {', '.join(names)}")
    return [name for name in names if name in found]


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=["design", "check", "all"], default="design")
    parser.add_argument("--data", type=Path, help="folder of the data with labels of people, rules and models")
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--methods", default=", ".join(METHODS), help="comma-separated; default: all")
    parser.add_argument("--problems", default="", help="those whose name contains this text")
    parser.add_argument("--n-jobs", type=int, default=2)
    parser.add_argument("--out", type=Path, help="file of results; default: results/zoo_HALF.jsonl")
    parser.add_argument("--report", action="store_true", help="only write the page of what is there")
    args = parser.parse_args()
    for half in ["design", "check"] if args.half == "all" else [args.half]:
        out = args.out or RESULTS / f"zoo_{half}.jsonl"
        if not args.report:
            problems = available([p for p in of_half(half) if args.problems in p.name], args.data)
            fill(problems, args.seeds, chosen(args.methods, METHODS), args.data, out, args.n_jobs)
        report(half, out)


if __name__ == "__main__":
    main()
