"""All bad inputs with every class.

    python tests/attacks/run.py    # half a minute

Prints each input whose error is not clear, and the counts.
"""

import sys
import warnings
from collections import Counter
from pathlib import Path

import torch

sys.path.insert(0, str(Path(__file__).parents[1]))
from attacks.attempt import OF_CLASSIFIERS, OF_FUNCTIONS, classes_of, fitted, outcome
from estimators import CLASSIFIERS


def bad_inputs():
    """Print unclear cases and the counts; return the number of unclear cases."""
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


KINDS = ("clear", "obscure", "silent")

if __name__ == "__main__":
    sys.exit(bool(bad_inputs()))
