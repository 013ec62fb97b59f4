"""Problems of the zoo with labels of programs or several people; small files and a stub replace data and encoder."""

import sys
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from scipy.sparse import issparse
from sklearn.feature_extraction.text import HashingVectorizer
from small_files import write_global_warming, write_hausa, write_labelme

from examples.benchmarks.zoo import labellers, noise, run, texts
from examples.benchmarks.zoo.catalogue import PROBLEMS, Problem
from examples.benchmarks.zoo.rows import Rows
from noisytransition import count_transition_matrix

BY_NAME = {problem.name: problem for problem in PROBLEMS}
NEW = [p for p in PROBLEMS if p.noise is noise.programs or "people" in p.name]


@pytest.fixture(autouse=True)
def encoder(tmp_path, monkeypatch):
    """Replace the encoder by hashed words, and collect the texts of each call."""
    calls = []

    def encode(texts, **_):
        calls.append(texts)
        return HashingVectorizer(n_features=384).transform(texts).toarray().astype("float32")

    package = SimpleNamespace(load_model=lambda device: SimpleNamespace(encode=encode))
    monkeypatch.setitem(sys.modules, texts.ENCODER, package)
    monkeypatch.setenv("SCIKIT_LEARN_DATA", str(tmp_path / "cache"))
    return calls


@pytest.fixture(scope="module")
def data_folder(tmp_path_factory):
    """Sentences, titles and photographs in the formats of the real files."""
    folder = tmp_path_factory.mktemp("data")
    (folder / "real").mkdir()
    for write, n, n_test in ((write_global_warming, 2000, None), (write_hausa, 600, 60), (write_labelme, 500, 40)):
        write(folder / "real", np.random.default_rng(0), n, n_test)
    return folder


def made(problem, data_folder, seed=0):
    if problem.package:
        pytest.importorskip(problem.package)
    return problem.make(seed, data_folder)


def test_names_are_unique_since_they_decide_the_half():
    assert max(Counter(p.name for p in PROBLEMS).values()) == 1
    assert {p.half for p in NEW} == {"design", "check"}


@pytest.mark.parametrize(
    "name", [pytest.param(p.name, marks=pytest.mark.slow if p.name.startswith("MNIST") else []) for p in NEW]
)
def test_a_problem_has_the_promised_size_and_noise(name, data_folder):
    data = made(BY_NAME[name], data_folder)
    n_verified, classes = len(data.y_clean), np.arange(len(data.transition_matrix))
    assert 350 <= len(data.y) + n_verified <= 5000
    assert 50 <= n_verified <= 300
    for y in (data.y_true, data.y_clean, data.y_test):
        np.testing.assert_array_equal(np.unique(y), classes)
    assert set(data.y) <= set(classes)
    if "nearest description" not in name:  # these labels need the encoder
        assert 0.05 <= (data.y != data.y_true).mean() <= 0.7
    assert data.X.shape[1] == data.X_clean.shape[1] == data.X_test.shape[1]
    for X in (data.X, data.X_clean, data.X_test):
        assert np.isfinite(X.data if issparse(X) else X).all()


@pytest.mark.parametrize(
    "name",
    [
        "customers, labels of gradient boosting on three columns",
        "digits, one of five people",
        "library docstrings by embeddings, votes of words",
        "LabelMe, majority of the answers",
    ],
)
def test_a_seed_gives_the_same_problem(name, data_folder):
    first, again, other = (made(BY_NAME[name], data_folder, seed) for seed in (0, 0, 1))
    for one, two in zip(first, again, strict=True):
        np.testing.assert_array_equal(one, two)
    assert not np.array_equal(first.y, other.y)


def numbered(seed, n=600):
    """Return samples whose first column is their number."""
    rng = np.random.default_rng(seed)
    y, number = rng.integers(3, size=n + 100), np.arange(n + 100)
    X = np.column_stack([number, y + 0.8 * rng.normal(size=n + 100)])
    return Rows(X[:n], y[:n], X[n:], y[n:], part=number[:n] < n / 2)


def test_no_sample_of_the_program_or_of_the_test_is_noisy_or_verified():
    problem = Problem("numbered", labellers.labelled(numbered, labellers.boosting(100)), noise.programs, "default", 20)
    data = problem.make(0)
    noisy, verified, test = (set(X[:, 0].astype(int)) for X in (data.X, data.X_clean, data.X_test))
    assert noisy | verified == set(range(100, 600))
    assert not noisy & verified
    assert test == set(range(600, 700))


def test_a_program_sees_other_columns_than_the_classifier():
    of_number = labellers.labelled(numbered, labellers.boosting(100, slice(1)), labellers.columns(slice(1, 2)))(0)
    of_both = labellers.labelled(numbered, labellers.boosting(100))(0)
    assert of_number.X.shape[1] == of_number.X_test.shape[1] == 1
    assert (of_number.answers == of_number.y).mean() < 0.45 < 0.55 < (of_both.answers == of_both.y).mean()


def of_texts(*given):
    return Rows(np.array(given, dtype=object), np.arange(len(given)) % 2, np.array([], dtype=object), np.array([], int))


def test_a_text_gets_the_class_with_the_most_votes_and_ties_are_by_chance():
    label = labellers.votes_of_words({"animals": "cat dog", "plants": "tree rose"})
    found = label(of_texts(*["Two CATS and a tree, dogs", "Roses", "nothing", "a rosy catalogue of trees"] * 50), 0)
    found = found.reshape(50, 4)
    assert (found[:, 0] == 0).all()
    assert (found[:, 1] == 1).all()
    assert set(found[:, 2]) == set(found[:, 3]) == {0, 1}


def test_a_text_gets_the_class_with_the_nearest_description(encoder):
    label = labellers.nearest_description({"animals": "cats and dogs", "plants": "trees or roses"})
    texts = of_texts("roses under trees", "dogs", "cats", "trees")
    np.testing.assert_array_equal(label(texts, 0), [1, 0, 0, 1])
    n_calls = len(encoder)
    label(texts, 1)
    assert len(encoder) == n_calls  # the embeddings are cached


def test_the_texts_of_a_model_of_words_are_marked():
    rows = of_texts(*["a cat", "a tree"] * 30)
    found = labellers.model_of_words(4)(rows, 0)
    assert (found == -1).sum() == 8
    np.testing.assert_array_equal(found[found >= 0], rows.y[found >= 0])


def test_the_majority_of_more_people_is_right_more_often():
    rows = numbered(0, n=6000)
    one, three = ((noise.people(7, n_votes)(rows, 0)[0] == rows.y).mean() for n_votes in (1, 3))
    assert three > one + 0.03


def test_a_person_has_another_T_in_the_part():
    rows = numbered(0, n=6000)
    answers = noise.people(1, 1)(rows, 0)[0]
    inside, outside = (
        count_transition_matrix(rows.y[part], answers[part], n_classes=3) for part in (rows.part, ~rows.part)
    )
    assert np.abs(inside - outside).max() > 0.1
    assert min(inside.diagonal().min(), outside.diagonal().min()) > 0.45


def test_problems_without_their_package_are_skipped_with_a_reason(monkeypatch, capsys):
    monkeypatch.setattr(run, "find_spec", lambda name: None if name == texts.ENCODER else name)
    usable = run.available(NEW, Path("data"))
    skipped = capsys.readouterr().out.splitlines()
    assert len(usable) + len(skipped) == len(NEW)
    assert all("embeddings" in line or "library docstrings" in line for line in skipped)
    assert f"skipped ({texts.ENCODER} is not installed): Hausa titles by embeddings, labels of rules" in skipped
