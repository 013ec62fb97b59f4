"""Search hyperparameters of the paper's tables on held-out clean samples, with the same rule for each method.

    python -m examples.paper.tune cifar10 --scale features --features-dir DIR2 --data-root DIR --seeds 100 101

The options are those of `run`. Seeds are 100 and above; no table has these seeds. The script draws twice the number of
clean samples from the training set: one half is for training, the other half is held out. Each method has two ladders
of values, the paper's method also a choice of its initial weights. The search evaluates a setting and those one step
away on a ladder, moves to the one with the highest accuracy on the held-out samples (mean over cells and seeds), and
ends where no step is better, so that no optimum is at an edge that a further value could move. It is written to
``tuned.json``, and `run` uses it for this table. Select noises with ``--cell``. Test samples and the true T are not
used: "true T" has the settings of GLC, and a variant of a method has those of the method.
"""

import argparse
import json
from pathlib import Path

import numpy as np

from examples.benchmarks.shared import read_rows
from examples.paper.run import RESULTS, add_options, matching, run_cells
from examples.paper.tables import TUNED, cells, key, settings, training

FIRST_SEED = 100
# number of clean samples if the table uses the whole list
N_META = 1400


def ladders(table, scale):
    """Return the values of each hyperparameter in order, and its first value, around the rate and epochs of a scale."""
    lr, epochs = (training(table, scale)[name] for name in ("lr", "max_epochs"))
    rates = [_rounded(k * lr) for k in (0.03, 0.1, 0.3, 1, 3, 10, 30, 100)]
    of_lr, warm_up = {"lr": (rates, lr)}, {"warm_up_epochs": ([max(1, epochs // 3), epochs, 3 * epochs], epochs)}
    decays = [0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0]
    # ignoring the noise works well with a strongly regularised head of frozen features
    decay = {"optimizer__weight_decay": (decays, 1e-1 if scale == "features" else 1e-3)}
    few = {"max_epochs": ([epochs, 4 * epochs, 16 * epochs], 4 * epochs)}
    return {
        "cross-entropy": of_lr | decay,
        "clean samples only": of_lr | few,
        "fine-tuning": {"fine_tuning_lr": (rates, lr), "fine_tuning_epochs": ([2, 10, 50, 250], 50)},
        "GCE": of_lr | {"q": ([0.1, 0.3, 0.5, 0.7, 0.9], 0.7)},
        "forward": of_lr | warm_up,
        "MW-Net": of_lr,  # the published learning rate of the weights
        "GLC": of_lr | warm_up,
        # without momentum, ten times the network's learning rate gives the same step
        "S-Model": {"transition_lr": ([_rounded(k * lr) for k in (0.1, 1, 10, 100, 1000)], 10 * lr)} | warm_up,
        "T-Revision": {"revision_lr": ([5e-9, 5e-8, 5e-7, 5e-6, 5e-5, 5e-4], 5e-7)} | warm_up,
        "meta-transition": of_lr
        | {"transition_lr": ([0.1, 1.0, 10.0, 100.0, 1000.0, 1e4, 1e5], 10.0), "from_warm_up": ([False, True], False)},
        "meta-transition, default": of_lr,
        "EM": of_lr | {"optimizer__weight_decay": (decays, 1e-3)},
    }


def _rounded(value):
    return float(f"{value:.3g}")


def first(ladder):
    """Return the first setting of a search."""
    return {name: start for name, (_, start) in ladder.items()}


def around(own, ladder):
    """Return a setting, and those one step away on one of the ladders."""
    found = [own]
    for name, (values, _) in ladder.items():
        place = values.index(own[name])
        found += [own | {name: values[k]} for k in (place - 1, place + 1) if 0 <= k < len(values)]
    return found


def search_cells(table, scale, seeds, networks, n_meta, method, settings_of_method):
    """List the cells of some settings of a method; their test samples are held-out clean samples."""
    return [
        cell._replace(
            settings=settings(table, scale, cell.network, method, own), n_meta=cell.n_meta or N_META, held_out=True
        )
        for cell in cells(table, scale, seeds, networks, n_meta, [method])
        for own in settings_of_method
    ]


def best(cells_of, rows):
    """Select the setting with the highest mean accuracy; the first of equal ones. `cells_of`: settings and cells."""
    accuracy = {key(row): row["accuracy"] for row in rows}
    return max(cells_of, key=lambda pair: np.mean([accuracy[cell.key] for cell in pair[1]]))[0]


def search(args, network, out, seeds):
    """Search the settings of all methods with a network; the cells of one round run together."""
    table, scale = args.table, args.scale
    at = {m: first(of) for m, of in ladders(table, scale).items() if m in args.methods}
    moving = list(at)
    while moving:
        tried = {
            m: [
                (own, matching(search_cells(table, scale, seeds, [network], args.n_meta, m, [own]), args.cell))
                for own in around(at[m], ladders(table, scale)[m])
            ]
            for m in moving
        }
        run_cells([cell for pairs in tried.values() for _, own in pairs for cell in own], args, out)
        rows = read_rows(out)
        found = {m: best(pairs, rows) for m, pairs in tried.items()}
        moving = [m for m in moving if found[m] != at[m]]
        at |= found
    return at


def main(arguments=None):
    """Run the search, and write the best settings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    parser.add_argument("--tuned", type=Path, default=TUNED, help="output file of the settings")
    args = parser.parse_args(arguments)
    out = args.out or RESULTS / f"tune_{args.table}_{args.scale}.jsonl"
    seeds = args.seeds or [FIRST_SEED, FIRST_SEED + 1]
    if min(seeds) < FIRST_SEED:
        raise SystemExit(f"--seeds must be at least {FIRST_SEED}; smaller seeds are for the tables.")
    networks = args.network or dict.fromkeys(cell.network for cell in cells(args.table, args.scale, seeds))
    found = {network: search(args, network, out, seeds) for network in networks}
    write(args.tuned, args.table, args.scale, found)
    print(json.dumps(found, indent=2))


def write(path, table, scale, found):
    """Update the settings in the file; keep settings of other tables, scales, networks and methods."""
    content = json.loads(path.read_text()) if path.exists() else {}
    of_table = content.setdefault(scale, {}).setdefault(table, {})
    for network, of_methods in found.items():
        of_table[network] = of_table.get(network, {}) | of_methods
    path.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
