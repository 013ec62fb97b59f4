"""Noise rates, minimum detectable difference and the text of the test of class-conditional noise."""

from statistics import NormalDist

import numpy as np
import pytest
from noise_rows import draw, rows_by_difficulty

from noisytransition.transition import class_conditional_test, flip_labels, symmetric_noise

pytestmark = pytest.mark.filterwarnings("error")


def test_noise_of_groups_by_hand():
    y = np.array([0, 0, 0, 0, 1, 1, 1, 1])
    s = np.array([0, 0, 0, 1, 0, 1, 0, 1])
    found = class_conditional_test(y, s, groups=list("aabbaaab"), random_state=0)
    # rates 1/4 and 1/2: group a has two rows of class 0 and three of class 1
    assert found.noise["a"] == pytest.approx((5, 2 / 5, (2 * 0.25 + 3 * 0.5) / 5))
    assert found.noise["b"] == pytest.approx((3, 1 / 3, (2 * 0.25 + 0.5) / 3))


@pytest.mark.parametrize(("n", "rate"), [(300, 0.25), (3000, 0.4)])
def test_the_minimum_detectable_difference_is_that_of_two_normal_means(n, rate):
    y = np.arange(n) % 2
    s = np.where(np.arange(n) // 2 < rate * n / 2, 1 - y, y)
    found = class_conditional_test(y, s, features=np.arange(n), n_permutations=9, random_state=0)
    error = np.sqrt(rate * (1 - rate) * 4 / n)
    power = NormalDist().cdf(found.minimum_detectable_difference / error - NormalDist().inv_cdf(1 - 0.05 / 4))
    assert power == pytest.approx(0.8, abs=0.01)


def test_text_without_evidence_against_one_T():
    y, s, given_ = draw(0)
    text = str(class_conditional_test(y, s, groups=given_["groups"], random_state=0))
    assert "Tested on 60 rows" in text
    assert "depend on the group." in text
    assert "No evidence against one T" in text
    assert "noise rates of the two largest groups differ by less than about 0." in text
    assert "use one T" in text


def test_text_with_evidence_against_one_T():
    y, s, proba = rows_by_difficulty(0)
    found = class_conditional_test(y, s, proba=proba, random_state=0)._replace(classes=("ant", "bee", "cat"))
    text = str(found)
    assert "One T does not hold for all rows (p = 0.001)" in text
    assert "agree with the classifier more often" in text
    assert f"harder half: {found.noise['harder half'].observed:.1%} of" in text
    assert "rank rows for review" in text
    assert "ant (p = " in text
    assert "No evidence" in found.explain(level=0.0001)
    with pytest.raises(ValueError, match="level=5"):
        found.explain(level=5)


def test_text_for_features_and_for_many_groups():
    y, group = np.arange(900) % 3, np.arange(900) // 90
    s = flip_labels(y, symmetric_noise(3, 0.2), random_state=0)
    s = np.where(group == 4, flip_labels(y, symmetric_noise(3, 0.7), random_state=1), s)
    grouped = str(class_conditional_test(y, s, groups=group, random_state=0))
    assert "Wrong labels: 4: " in grouped
    assert grouped.count("of 90 rows") == 6
    assert "Estimate T in each group" in grouped
    text = str(class_conditional_test(y, s, features=abs(group - 4), random_state=0))
    assert "depends on the features" in text
    assert "Wrong labels" not in text
    assert "test these with groups=" in text
