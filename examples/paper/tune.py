"""Search hyperparameters of the paper's tables on held-out clean samples, with the same number of settings per method.

    python -m examples.paper.tune cifar10 --scale features --features-dir DIR2 --data-root DIR --seeds 100 101

The options are those of `run`. Seeds are 100 and above; no table has these seeds. The script draws twice the number of
clean samples from the training set: one half is for training, the other half is held out. The setting with the highest
accuracy on the held-out samples, averaged over cells and seeds, is written to ``tuned.json``. `run` uses it for all
tables of this data set. Select noises with ``--cell``. Test samples and the true T are not used: "true T" has the
settings of GLC, and a method with pairs has the settings of the method without pairs.
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
# number of settings of each method
N_SETTINGS = 6
# number of clean samples if the table uses the whole list
N_META = 1400


def spaces(table, scale):
    """Return the grids of all methods around the learning rate and the epochs of a scale."""
    lr, epochs = (training(table, scale)[name] for name in ("lr", "max_epochs"))
    rates, lengths = [_rounded(k * lr) for k in (0.3, 1, 3)], [max(1, epochs // 3), epochs]
    of_meta = {"lr": rates, "transition_lr": [1.0, 10.0]}
    # ignoring the noise works well with a strongly regularised head of frozen features
    decays = {"optimizer__weight_decay": [1e-3, 1e-1] if scale == "features" else [1e-4, 1e-3]}
    return {
        "cross-entropy": {"lr": rates} | (decays if scale == "features" else {"max_epochs": lengths}),
        "clean samples only": {"lr": [_rounded(k * lr) for k in (1, 3, 10)], "max_epochs": [epochs, 4 * epochs]},
        "fine-tuning": {"fine_tuning_lr": rates, "fine_tuning_epochs": [10, 50]},
        "GCE": {"lr": rates, "q": [0.5, 0.7]},
        "forward": {"lr": rates, "warm_up_epochs": lengths},
        "MW-Net": {"lr": rates, "weight_lr": [1e-3, 1e-2]},
        "GLC": {"lr": rates, "warm_up_epochs": lengths},
        # without momentum, ten times the network's learning rate gives the same step
        "S-Model": {"transition_lr": [_rounded(k * lr) for k in (1, 10, 100)], "warm_up_epochs": lengths},
        "T-Revision": {"revision_lr": [5e-7, 1e-5, 1e-4], "warm_up_epochs": lengths},
        "meta-transition": of_meta,
        "EM": {"lr": rates} | decays,
    }


def _rounded(value):
    return float(f"{value:.3g}")


def candidates(table, scale):
    """List the settings of each method as keyword arguments."""
    grids = spaces(table, scale)
    return {m: [dict(zip(grid, own, strict=True)) for own in product(*grid.values())] for m, grid in grids.items()}


def search_cells(table, scale, seeds, networks=None, n_meta=None, methods=METHODS):
    """List the cells of all settings of all methods; their test samples are held-out clean samples."""
    if min(seeds) < FIRST_SEED:
        raise SystemExit(f"--seeds must be at least {FIRST_SEED}; smaller seeds are for the tables.")
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
    """Select the settings with the highest mean accuracy by network and method; at ties the first."""
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
    """Run the search, and write the best settings."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    add_options(parser)
    parser.add_argument("--tuned", type=Path, default=TUNED, help="output file of the settings")
    args = parser.parse_args(arguments)
    out = args.out or RESULTS / f"tune_{args.table}_{args.scale}.jsonl"
    seeds = args.seeds or [FIRST_SEED, FIRST_SEED + 1]
    todo = search_cells(args.table, args.scale, seeds, args.network, args.n_meta, args.methods)
    run_cells(todo, args, out)
    found = best(args.table, args.scale, matching(todo, args.cell), read_rows(out))
    write(args.tuned, TABLES[args.table][0], args.scale, found)
    print(json.dumps(found, indent=2))


def write(path, data, scale, found):
    """Update the settings in the file; keep settings of other data sets, scales, networks and methods."""
    content = json.loads(path.read_text()) if path.exists() else {}
    of_data = content.setdefault(scale, {}).setdefault(data, {})
    for network, of_methods in found.items():
        of_data[network] = of_data.get(network, {}) | of_methods
    path.write_text(json.dumps(content, indent=2) + "\n")


if __name__ == "__main__":
    main()
