"""The nine methods of the paper, exactly as their papers describe them."""

import pytest

from noisytransition import EMTransitionClassifier, GLCClassifier
from noisytransition.methods import METHODS


def test_all_methods_but_em_are_published_and_parameters_can_be_set_instead():
    published = [cls.as_published() for name, cls in METHODS.items() if name != "EM"]
    assert [clf.optimizer for clf in published] == ["sgd"] * 9
    clf = GLCClassifier.as_published(max_epochs=2, optimizer="adam")
    assert (clf.max_epochs, clf.optimizer, clf.lr) == (2, "adam", GLCClassifier().lr)
    with pytest.raises(TypeError, match="implement a paper"):
        EMTransitionClassifier.as_published()
