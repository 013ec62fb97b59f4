"""Interleaved timing of functions, and ratios of their times."""

import time

import numpy as np

TURNS = 11


def turns(calls, n=TURNS, warm_up=True, clock=time.process_time):
    """Time calls in turns; return the seconds of each call by name (default: CPU seconds). The first turn warms up."""
    times = {name: [] for name in calls}
    for turn in range(n + warm_up):
        for name, call in calls.items():
            started = clock()
            call()
            if turn >= warm_up:
                times[name].append(clock() - started)
    return {name: np.array(taken) for name, taken in times.items()}


def ratio(case, name, above, below, goal=None):
    """Return a result: median and quartiles of the ratio of two times."""
    low, middle, high = np.percentile(above / below, [25, 50, 75])
    return {"case": case, "what": name, "ratio": middle, "low": low, "high": high, "goal": goal}
