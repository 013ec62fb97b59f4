"""Decisions by held-out samples: epochs of the last network."""

import numpy as np
import pytest

from noisytransition.likelihood._out_of_fold import Candidate, OutOfFold, select_epochs

TRUE = np.repeat([0, 1, 2], 200)
NOISY = np.concatenate([np.roll([0, 1, 2], -i).repeat([140, 40, 20]) for i in range(3)])
T_OF_NOISY = np.array([[0.7, 0.2, 0.1], [0.1, 0.7, 0.2], [0.2, 0.1, 0.7]])


# ---------------------------------------------------------------------------- how long
def candidate(epochs, decided):
    return Candidate(epochs, np.eye(3)[decided], np.eye(3)[:0])


def chosen(best, *candidates, T=T_OF_NOISY):
    """The last training, where the candidate at position `best` has the highest evidence."""
    none = np.zeros(0, dtype=int)
    held_out = OutOfFold(
        candidates, NOISY, none, none, np.zeros((3, 3)), np.zeros(3), len(NOISY), np.arange(len(NOISY)), none
    )
    return select_epochs(held_out, best, T)


def wrong_on(n, first=0):
    """Decisions that are wrong on every so many-th sample, whatever its labels."""
    decided = TRUE.copy()
    decided[first::n] = (decided[first::n] + 1) % 3
    return decided


def test_the_last_network_is_trained_longer_where_it_is_then_right_more_often():
    earlier, best, later = candidate(2, TRUE), candidate(4, np.zeros_like(TRUE)), candidate(6, TRUE)
    assert chosen(1, earlier, best, later) is later
    assert chosen(1, earlier, best) is best  # an earlier network is not asked for
    assert chosen(1, earlier, later) is later
    assert chosen(0, best, later, T=np.full((3, 3), 1 / 3)) is best  # labels that tell nothing


@pytest.mark.parametrize(("decided", "epochs"), [(wrong_on(300, 190), 4), (wrong_on(200), 7), (wrong_on(10), 7)])
def test_chance_does_not_make_the_last_training_longer(decided, epochs):
    """Without errors on these 2, 3 and 60 samples the gain is 0.8, 1.7 and 4.4 standard errors."""
    best, wrong, later = candidate(4, decided), candidate(6, (TRUE + 1) % 3), candidate(7, TRUE)
    assert chosen(0, best, wrong, later).epochs == epochs
