"""The nine methods of the paper, exactly as their papers describe them."""

import pytest

from noisytransition import EMTransitionClassifier, GLCClassifier
from noisytransition.methods import METHODS

PAPER = {name: cls for name, cls in METHODS.items() if name != "EM"}


def test_the_nine_rows_of_the_papers_table_come_from_one_loop():
    assert len(PAPER) == 9
    for cls in PAPER.values():
        assert cls.as_published().optimizer == "sgd"


def test_parameters_can_be_set_instead():
    clf = GLCClassifier.as_published(max_epochs=2, optimizer="adam")
    assert (clf.max_epochs, clf.optimizer, clf.lr) == (2, "adam", GLCClassifier().lr)


def test_em_is_of_no_paper():
    with pytest.raises(TypeError, match="implement a paper"):
        EMTransitionClassifier.as_published()
