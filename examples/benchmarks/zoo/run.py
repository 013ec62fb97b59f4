"""Run all methods on the small problems of the zoo, and write a page with all missed goals.

    pip install ".[benchmarks,features]"                         # features: problems with sentence embeddings
    python examples/benchmarks/zoo/run.py                        # the design half
    python examples/benchmarks/zoo/run.py --half check           # the check half, at the end
    python examples/benchmarks/zoo/run.py --data DIR             # also the problems with real noisy labels
    python examples/benchmarks/zoo/run.py --method EM --method GLC --problems digits --seeds 2
    python examples/benchmarks/zoo/run.py --report               # only write the page

Each result is a line of JSON; a second call adds missing results. Methods have their default parameters and the network
of the problem; nothing is tuned. "pairs": the method also gets the noisy labels of the clean samples (`y_clean_noisy`).
`catalogue.py` lists the problems and assigns them to the two halves. `folder.py` describes the folder --data.
"""

import argparse
import os
import sys
import time
from importlib.util import find_spec
from pathlib import Path

os.environ.setdefault("OMP_NUM_THREADS", "1")
sys.path.insert(0, str(Path(__file__).parents[1]))

import joblib
import torch
from shared import RESULTS, add_row, read_rows

from zoo.catalogue import named, of_half
from zoo.folder import cifar10h, cifar10n, image_table
from zoo.methods import CLASSIFIERS, METHODS, estimates, fitted
from zoo.report import report


# ---------------------------------------------------------------------------- one problem and seed
def run(name, seed, methods, folder):
    """Return the results of these methods on one problem and seed, and their run time in seconds."""
    torch.set_num_threads(1)
    problem = named(name)
    started, data = time.perf_counter(), problem.make(seed, folder)
    params = problem.params(data) | {"random_state": seed}
    rows = {m: _or_error(fitted, data, params, m) for m in methods if m in CLASSIFIERS}
    if others := [m for m in methods if m not in CLASSIFIERS]:
        found = _or_error(estimates, data, params, others)
        rows |= dict.fromkeys(others, found) if "error" in found else found
    head = {"problem": name, "seed": seed}
    return [head | {"method": m} | row for m, row in rows.items()], time.perf_counter() - started


def _or_error(measure, *args):
    try:
        return measure(*args)
    except Exception as error:  # an error is a result, too
        return {"error": f"{type(error).__name__}: {error}"[:300]}


# ---------------------------------------------------------------------------- all problems
def fill(run, problems, seeds, methods, folder, out, n_jobs):
    """Run missing fits by `run`, seed by seed, and write the results of each problem immediately."""
    done = {(row["problem"], row["seed"], row["method"]) for row in read_rows(out)}
    missing = {(p.name, s): [m for m in methods if (p.name, s, m) not in done] for s in range(seeds) for p in problems}
    todo = [(*key, names, folder) for key, names in missing.items() if names]
    started = time.perf_counter()
    jobs = joblib.Parallel(n_jobs, return_as="generator_unordered")(joblib.delayed(run)(*job) for job in todo)
    for i, (rows, seconds) in enumerate(jobs, 1):
        for row in rows:
            add_row(out, row)
        minutes = (time.perf_counter() - started) / 60
        name = f"{rows[0]['problem']}, seed {rows[0]['seed']}"
        print(f"[{i}/{len(todo)}, {minutes:.1f} min] {name}: {seconds:.1f} s", flush=True)


def available(problems, folder):
    """Return the problems with available data, and print the skipped problems."""
    usable = []
    for problem in problems:
        if problem.needs_folder and folder is None:
            print(f"skipped (--data is not given): {problem.name}")
        elif problem.package and find_spec(problem.package) is None:
            print(f"skipped ({problem.package} is not installed): {problem.name}")
        else:
            usable.append(problem)
    if any(problem.rows in (cifar10n, cifar10h) for problem in usable):
        image_table(folder)  # computed once, before the processes start
    return usable


def main():
    """Run the benchmark with the options of the command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--half", choices=["design", "check", "all"], default="design", help="half of the zoo")
    parser.add_argument("--data", type=Path, help="folder of the data sets with real noisy labels")
    parser.add_argument("--seeds", type=int, default=5, help="number of seeds")
    parser.add_argument("--method", action="append", choices=METHODS, metavar="METHOD", help="default: all")
    parser.add_argument("--problems", default="", help="only problems whose name contains this text")
    parser.add_argument("--n-jobs", type=int, default=2, help="number of processes")
    parser.add_argument("--out", type=Path, help="file of results; default: results/zoo_HALF_present.jsonl")
    parser.add_argument("--report", action="store_true", help="only write the page of the existing results")
    args = parser.parse_args()
    for half in ["design", "check"] if args.half == "all" else [args.half]:
        out = args.out or RESULTS / f"zoo_{half}_present.jsonl"
        if not args.report:
            problems = available([p for p in of_half(half) if args.problems in p.name], args.data)
            fill(run, problems, args.seeds, args.method or METHODS, args.data, out, args.n_jobs)
        report(half, out)


if __name__ == "__main__":
    main()
