"""All attacks in their long form: bad inputs with every class, then kills, Ctrl-C and full disks.

    python tests/attacks/run.py             # half an hour on two cores
    python tests/attacks/run.py --inputs    # bad inputs alone, half a minute

Prints each input whose error is not clear, each interrupted fit that does not resume to the same bits, and the counts.
"""

import argparse
import sys
import warnings
from collections import Counter
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
from attacks.attempt import OF_CLASSIFIERS, OF_FUNCTIONS, classes_of, fitted, outcome
from attacks.interruptions import attack_and_report as interruptions
from estimators import CLASSIFIERS


def bad_inputs():
    """Print what is not clear, and the counts; return how many are not."""
    torch.set_num_threads(1)
    counts = Counter()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for cls in CLASSIFIERS:
            fitted(cls)
    tries = [(case, cls) for case in OF_CLASSIFIERS for cls in classes_of(case)]
    for case, cls in [*tries, *((case, None) for case in OF_FUNCTIONS)]:
        found = outcome(case, cls)
        counts[found.split(":")[0]] += 1
        if found != "clear":
            print(f"{case.name}, {getattr(cls, '__name__', case.target)}: {found[:300]}", flush=True)
    n_cases = len(OF_CLASSIFIERS) + len(OF_FUNCTIONS)
    print(f"{n_cases} bad inputs, tried {counts.total()}: {', '.join(f'{k} {counts[k]}' for k in KINDS)}")
    return counts.total() - counts["clear"]


def main():
    """Run what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--inputs", action="store_true", help="bad inputs alone")
    inputs_alone = parser.parse_args().inputs
    return bool(bad_inputs() + (0 if inputs_alone else interruptions()))


KINDS = ("clear", "obscure", "silent")

if __name__ == "__main__":
    sys.exit(main())
