"""Search for hyperparameters of the paper's tables on held-out clean samples, with equally many settings per method.

    python -m examples.paper.tune cifar10 --scale features --features-dir DIR2 --data-root DIR --seeds 100 101

Options are those of `run`. Seeds are 100 and above, which no table has. Twice the clean rows are drawn from the
training set: one half is trained with, the other is held out. The setting with the highest accuracy on the held-out
rows, in the mean over the cells and seeds that are run, is written to ``tuned.json``; `run` takes it for all tables of
this data set. Choose some noises by ``--cell``. Neither test rows nor the true T are used; the row "true T" has the
settings of GLC, and methods with pairs have those of the method without.
"""

import argparse
import json
from itertools import product
from pathlib import Path

import numpy as np

from examples.benchmarks.shared import read_rows
from examples.paper.run import RESULTS, add_options, matching, run_cells
from examples.paper.tables import METHODS, SETTINGS_OF, TABLES, TUNED, cells, key, settings, training

FIRST_SEED = 100
# settings of each method
N_SETTINGS = 6
# clean rows where a table takes the whole list
N_META = 1400


def spaces(table, scale):
    """Grids of all methods, around the step and the epochs of a scale."""
    lr, epochs = (training(table, scale)[name] for name in ("lr", "max_epochs"))
    rates, lengths = [_rounded(k * lr) for k in (0.3, 1, 3)], [max(1, epochs // 3), epochs]
    of_meta = {"lr": rates, "transition_lr": [1.0, 10.0]}
    # a head of frozen features that ignores the noise is good if it is regularised strongly
    decays = {"optimizer__weight_decay": [1e-3, 1e-1] if scale == "features" else [1e-4, 1e-3]}
    return {
        "cross-entropy": {"lr": rates} | (decays if scale == "features" else {"max_epochs": lengths}),
        "clean samples only": {"lr": [_rounded(k * lr) for k in (1, 3, 10)], "max_epochs": [epochs, 4 * epochs]},
        "fine-tuning": {"fine_tuning_lr": rates, "fine_tuning_epochs": [10, 50]},
        "GCE": {"lr": rates, "q": [0.5, 0.7]},
        "forward": {"lr": rates, "warm_up_epochs": lengths},
        "MW-Net": {"lr": rates, "weight_lr": [1e-3, 1e-2]},
        "GLC": {"lr": rates, "warm_up_epochs": lengths},
        # ten times that of the network is the same step: T's has no momentum
        "S-Model": {"transition_lr": [_rounded(k * lr) for k in (1, 10, 100)], "warm_up_epochs": lengths},
        "T-Revision": {"revision_lr": [5e-7, 1e-5, 1e-4], "warm_up_epochs": lengths},
        "meta-transition": of_meta,
        "EM": {"lr": rates} | decays,
    }


def _rounded(value):
    return float(f"{value:.3g}")


def candidates(table, scale):
    """Settings of each method, as keyword arguments."""
    grids = spaces(table, scale)
    return {m: [dict(zip(grid, own, strict=True)) for own in product(*grid.values())] for m, grid in grids.items()}


def search_cells(table, scale, seeds, networks=None, n_meta=None, methods=METHODS):
    """Cells of all settings of all methods; their test rows are held-out clean rows."""
    if min(seeds) < FIRST_SEED:
        raise SystemExit(f"--seeds: the search has seeds of {FIRST_SEED} and above; the tables have those below.")
    own = candidates(table, scale)
    methods = [method for method in methods if method not in SETTINGS_OF]
    return [
        cell._replace(
            settings=settings(table, scale, cell.network, cell.method, setting),
            n_meta=cell.n_meta or N_META,
            held_out=True,
        )
        for cell in cells(table, scale, seeds, networks, n_meta, methods)
        for setting in own[cell.method]
    ]


def best(table, scale, todo, rows):
    """Settings with the highest mean accuracy, by network and method; the first of equal ones."""
    accuracy = {key(row): row["accuracy"] for row in rows}
    found = {}
    for network, method in dict.fromkeys((cell.network, cell.method) for cell in todo):
        means = []
        for own in candidates(table, scale)[method]:
            wanted = settings(table, scale, network, method, own)
            of = [c for c in todo if (c.network, c.method, c.settings) == (network, method, wanted)]
            means.append(np.mean([accuracy[c.key] for c in of]))
        found.setdefault(network, {})[method] = candidates(table, scale)[method][int(np.argmax(means))]
    return found


def main(arguments=None):
    """Search, and write what was found."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    parser.add_argument("--tuned", type=Path, default=TUNED, help="file that the settings are written to")
    args = parser.parse_args(arguments)
    out = args.out or RESULTS / f"tune_{args.table}_{args.scale}.jsonl"
    seeds = args.seeds or [FIRST_SEED, FIRST_SEED + 1]
    todo = search_cells(args.table, args.scale, seeds, args.network, args.n_meta, args.methods)
    run_cells(todo, args, out)
    found = best(args.table, args.scale, matching(todo, args.cell), read_rows(out))
    write(args.tuned, TABLES[args.table][0], args.scale, found)
    print(json.dumps(found, indent=2))


def write(path, data, scale, found):
    """Put settings into the file, beside those of other data sets, scales, networks and methods."""
    content = json.loads(path.read_text()) if path.exists() else {}
    of_data = content.setdefault(scale, {}).setdefault(data, {})
    for network, of_methods in found.items():
        of_data[network] = of_data.get(network, {}) | of_methods
    path.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
