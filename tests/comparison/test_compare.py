import json
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from matplotlib import pyplot as plt
from scipy import stats
from torch import nn
from training import no_training, refused

from noisytransition import (
    Comparison,
    ComparisonData,
    CrossEntropyClassifier,
    FineTuningClassifier,
    GLCClassifier,
    compare,
    sampling_limit,
    transition_error,
)
from noisytransition.comparison import _compare, _results

FAST = {"max_epochs": 2, "batch_size": 64, "verbose": 0}


@pytest.fixture
def data(blobs):
    X, y, X_meta, y_meta, X_test, y_test, T = blobs
    return ComparisonData(X, y, X_meta, y_meta, X_test, y_test, T, y)  # y stands in for the true labels


def lines_of(path):
    """Lines of a file of results, without the first, which names the format."""
    return path.read_text().splitlines()[1:]


def by_method(result):
    return {row["method"]: row for row in result.summary()}


def test_all_methods_and_the_reference_rows(data):
    result = compare(data, seeds=[0], **FAST)
    assert result.methods == ["identity", "sampling limit", *_compare.METHODS, _compare.LONGEST, _compare.POOLED]
    rows = by_method(result)
    T = data.transition_matrix
    assert rows["identity"]["transition_error"] == transition_error(T, np.eye(3))
    assert rows["sampling limit"]["transition_error"] == sampling_limit(T, np.bincount(data.y))
    for name, cls in _compare.METHODS.items():
        clf = cls(max_epochs=2, batch_size=64, random_state=0).fit(data.X, data.y, meta=(data.X_meta, data.y_meta))
        assert rows[name]["accuracy"] == clf.score(data.X_test, data.y_test)
        if hasattr(clf, "transition_matrix_"):
            assert rows[name]["transition_error"] == transition_error(T, clf.transition_matrix_)
        else:
            assert np.isnan(rows[name]["transition_error"])
    assert rows["cross-entropy"]["steps"] == 2 * 5
    assert rows["GLC"]["steps"] == 2 * 5 + 2 * 6
    assert rows["fine-tuning"]["steps"] == 2 * 5 + 50 * 1
    others = [row["steps"] for name, row in rows.items() if row["steps"] > 0 and name != _compare.LONGEST]
    assert rows[_compare.LONGEST]["steps"] == 5 * -(-max(others) // 5)  # whole epochs, at least as many steps
    pooled = CrossEntropyClassifier(max_epochs=2, batch_size=64, random_state=0)
    pooled.fit(np.concatenate([data.X, data.X_meta]), np.concatenate([data.y, data.y_meta]))
    assert rows[_compare.POOLED]["accuracy"] == pooled.score(data.X_test, data.y_test)


def test_the_table_is_a_data_frame_of_means_and_standard_deviations(data):
    result = compare(data, [CrossEntropyClassifier(), GLCClassifier()], seeds=range(3), **FAST)
    assert isinstance(result.table, pd.DataFrame)
    scores = list(result.values("GLC", "accuracy").values())
    assert result.table.loc["GLC", "accuracy"] == pytest.approx(np.mean(scores))
    assert result.table.loc["GLC", "accuracy_std"] == pytest.approx(np.std(scores, ddof=1))
    assert result.table.loc["GLC", "n_seeds"] == 3
    assert result.table.loc["identity", "n_seeds"] == 3
    assert "GLC" in repr(result)
    assert f"| GLC | {np.mean(scores):.3f} ± {np.std(scores, ddof=1):.3f} |" in result.markdown()


def test_without_pandas_the_table_is_a_list(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    (row,) = Comparison([{"method": "a", "seed": 0, "accuracy": 0.5}], ["a"]).table
    assert (row["method"], row["accuracy"]) == ("a", 0.5)


def test_every_seed_has_its_own_data_and_all_methods_the_same(data):
    seen = []

    def give(seed):
        order = np.random.default_rng(seed).permutation(len(data.X))[:200]
        seen.append(seed)
        return data._replace(X=data.X[order], y=data.y[order], y_true=data.y[order])

    result = compare(give, [GLCClassifier()], seeds=[3, 5], **FAST)
    assert set(seen) == {3, 5}
    for name, cls in (("GLC", GLCClassifier), ("cross-entropy", CrossEntropyClassifier)):  # the second was added
        scores = {}
        for seed in (3, 5):
            own = give(seed)
            clf = cls(**FAST, random_state=seed).fit(own.X, own.y, meta=(own.X_meta, own.y_meta))
            scores[seed] = clf.score(own.X_test, own.y_test)
        assert result.values(name, "accuracy") == scores


def test_a_cross_entropy_by_another_name_is_the_reference(data):
    methods = {"slow": GLCClassifier(), "plain": CrossEntropyClassifier(lr=0.01)}
    result = compare(data, methods, seeds=[0], **FAST)
    assert result.methods[2:] == ["slow", "plain", _compare.LONGEST, _compare.POOLED]
    assert by_method(result)[_compare.LONGEST]["steps"] == 25  # GLC takes 22, and an epoch has 5


@pytest.mark.xdist_group("workers")
def test_processes_give_the_same_rows_in_the_same_order(data):
    methods = [CrossEntropyClassifier(), GLCClassifier()]
    one, two = (compare(data, methods, seeds=range(2), n_jobs=n, **FAST).rows for n in (1, 2))
    assert [{k: v for k, v in row.items() if k != "seconds"} for row in one] == [
        {k: v for k, v in row.items() if k != "seconds"} for row in two
    ]


def test_a_second_call_runs_the_missing_fits_only(data, tmp_path, monkeypatch, capsys):
    path, methods = tmp_path / "new" / "rows.jsonl", {"cross-entropy": CrossEntropyClassifier(), "GLC": GLCClassifier()}
    whole = compare(data, methods, seeds=range(2), path=path, **(FAST | {"verbose": 1}))
    assert "[1/6] cross-entropy, seed 0: accuracy" in capsys.readouterr().out
    head, *lines = path.read_text().splitlines()
    assert len(lines) == 8
    path.write_text("\n".join([head, *lines[:3]]) + "\n")
    again = compare(data, methods, seeds=range(2), path=path, **FAST)
    assert lines_of(path)[:3] == lines[:3]
    assert by_method(again)["GLC"]["accuracy"] == by_method(whole)["GLC"]["accuracy"]
    monkeypatch.setattr(_results, "_run", lambda *args: pytest.fail("ran again"))
    assert compare(data, methods, seeds=range(2), path=path, **FAST).rows == again.rows


def test_other_data_or_parameters_are_run_anew(data, tmp_path):
    path, methods = tmp_path / "rows.jsonl", [CrossEntropyClassifier()]
    compare(data, methods, seeds=[0], path=path, **FAST)
    n = len(lines_of(path))
    compare(data, methods, seeds=[0], path=path, **(FAST | {"lr": 0.2}))
    compare(data._replace(X=data.X + 1), methods, seeds=[0], path=path, **FAST)
    assert len(lines_of(path)) == 3 * n


def test_a_module_is_shared_by_all(data, tmp_path):
    module = nn.Sequential(nn.Linear(4, 5), nn.ReLU(), nn.Linear(5, 3))
    path = tmp_path / "rows.jsonl"
    first = compare(data, [GLCClassifier()], seeds=[0], module=module, path=path, **FAST)
    n = len(lines_of(path))
    assert compare(data, [GLCClassifier()], seeds=[0], module=module, path=path, **FAST).rows == first.rows
    assert len(lines_of(path)) == n


def test_a_fit_that_fails_gives_a_warning_and_is_tried_again(data, tmp_path):
    path = tmp_path / "rows.jsonl"
    methods = {"ours": GLCClassifier(lr=1e30), "tuned": FineTuningClassifier(fine_tuning_epochs=1)}
    with pytest.warns(UserWarning, match=r"ours, seed 0: ValueError: the training loss is"):
        result = compare(data, methods, seeds=[0], path=path, max_epochs=2, verbose=0)
    assert np.isnan(by_method(result)["ours"]["accuracy"])
    assert by_method(result)["ours"]["n_seeds"] == 0
    assert by_method(result)["tuned"]["accuracy"] > 0.5
    with pytest.warns(UserWarning, match="ours, seed 0"):
        compare(data, methods, seeds=[0], path=path, max_epochs=2, verbose=0)


@pytest.mark.parametrize("are_codes", [True, False])
def test_a_frame_of_T_is_read_by_name_if_labels_are_these_names(are_codes, data):
    names = np.array(["cat", "ant", "bee"])  # of the classes 0, 1, 2
    T = np.asarray(data.transition_matrix)
    frame = pd.DataFrame(T, index=names, columns=names)
    labels = [part if are_codes else names[part] for part in (data.y, data.y_meta, data.y_test, data.y_true)]
    y, y_meta, y_test, y_true = labels
    named = data._replace(y=y, y_meta=y_meta, y_test=y_test, y_true=y_true, transition_matrix=frame)
    order = np.arange(3) if are_codes else np.argsort(names)
    plain = named._replace(transition_matrix=T[np.ix_(order, order)])
    found, expected = (compare(d, [GLCClassifier()], seeds=[0], **FAST).rows for d in (named, plain))
    errors = [[row.get("transition_error") for row in rows] for rows in (found, expected)]
    assert errors[0] == errors[1]


def test_data_frames_and_names_and_an_unknown_T(data):
    names = np.array(["ant", "bee", "cat"])
    frames = [pd.DataFrame(part, columns=list("abcd")) for part in (data.X, data.X_meta, data.X_test)]
    named = ComparisonData(
        frames[0], names[data.y], frames[1], names[data.y_meta], frames[2], pd.Series(names[data.y_test])
    )
    result = compare(named, [GLCClassifier()], seeds=[0], **FAST)
    assert result.methods == ["cross-entropy", "GLC", _compare.LONGEST, _compare.POOLED]
    assert np.isnan(by_method(result)["GLC"]["transition_error"])
    plain = compare(data, [GLCClassifier()], seeds=[0], **FAST)
    assert by_method(result)["GLC"]["accuracy"] == by_method(plain)["GLC"]["accuracy"]


def test_paired_differences_are_the_paired_t_test():
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=8), rng.normal(size=8) + 0.3
    rows = [{"method": m, "seed": s, "accuracy": v[s]} for m, v in (("a", a), ("b", b)) for s in range(8)]
    rows.append({"method": "c", "seed": 0, "accuracy": 1.0})
    (found,) = Comparison(rows, ["a", "b", "c"]).differences("a")
    half = stats.t.ppf(0.975, 7) * np.std(b - a, ddof=1) / np.sqrt(8)
    mean = np.mean(b - a)
    assert found["method"] == "b"
    np.testing.assert_allclose([found["mean"], found["low"], found["high"]], [mean, mean - half, mean + half])
    with pytest.raises(ValueError, match="'d' has no accuracy; methods are"):
        Comparison(rows, ["a", "b"]).differences("d")


@pytest.mark.filterwarnings("error")
def test_the_interval_of_equal_differences_has_width_0():
    rows = [{"method": m, "seed": s, "steps": steps} for m, steps in (("a", 10), ("b", 15)) for s in range(3)]
    assert Comparison(rows, ["a", "b"]).differences("a", "steps") == [{"method": "b", "mean": 5, "low": 5, "high": 5}]


def test_the_plot_has_a_dot_for_each_seed(data):
    rows = [{"method": m, "seed": s, "accuracy": 0.5 + s / 10} for m in ("a", "b") for s in range(3)]
    (panel,) = Comparison(rows, ["a", "b"]).plot()
    dots = [line for line in panel.get_lines() if line.get_marker() == "o"]
    assert [line.get_xdata().tolist() for line in dots] == [[0.5, 0.6, 0.7]] * 2
    assert [set(line.get_ydata()) for line in dots] == [{0}, {1}]
    rows += [{"method": "b", "seed": 0, "transition_error": 0.1, "accuracy": 0.4}]
    rows += [{"method": "identity", "seed": 0, "transition_error": 0.4}]
    axes = Comparison(rows, ["identity", "a", "b"]).plot()
    assert [label.get_text() for label in axes[0].get_yticklabels()] == ["a", "b"]
    assert [line.get_label() for line in axes[1].get_lines()][-1] == "identity"
    with pytest.raises(ValueError, match="nothing to draw"):
        Comparison([], []).plot()
    plt.close("all")


@pytest.mark.parametrize(
    ("classifiers", "seeds", "message"),
    [
        (None, [], "seeds is empty"),
        ([GLCClassifier(), GLCClassifier()], [0], "not distinct"),
        ({"identity": GLCClassifier()}, [0], "adds itself"),
    ],
)
def test_bad_calls_are_refused(data, classifiers, seeds, message):
    with refused(message):
        compare(data, classifiers, seeds=seeds)


def test_rows_are_plain_json(data, tmp_path):
    path = tmp_path / "rows.jsonl"
    compare(data, [GLCClassifier()], seeds=[0], path=str(path), **FAST)
    rows = [json.loads(line) for line in lines_of(path)]
    assert {"method", "seed", "fingerprint", "accuracy", "steps", "seconds"} <= set(rows[0])


def keep(x):
    return x


def erase(x):
    return x * 0


def test_a_function_without_a_name_is_refused_where_results_are_kept_in_a_file(data, tmp_path):
    nameless = {"batch_transform": lambda x: x} | FAST
    compare(data, [CrossEntropyClassifier()], seeds=[0], **nameless)
    with refused(r"batch_transform is or has .*lambda.*f\.fit_name ="):
        compare(data, [CrossEntropyClassifier()], seeds=[0], path=tmp_path / "rows.jsonl", **nameless)


def test_other_lists_weights_and_functions_are_run_anew(data, tmp_path):
    path, flip = tmp_path / "rows.jsonl", (2 - data.y).tolist()
    torch.manual_seed(0)
    modules = [nn.Linear(4, 3), nn.Linear(4, 3)]
    calls = [
        (data._replace(y=data.y.tolist()), {}),
        (data._replace(y=flip), {}),
        (data, {"module": modules[0]}),
        (data, {"module": modules[1]}),
        (data, {"batch_transform": keep}),
        (data, {"batch_transform": erase}),
    ]
    for i, (given, params) in enumerate(calls, 1):
        compare(given, [CrossEntropyClassifier()], seeds=[0], path=path, **FAST, **params)
        assert len(lines_of(path)) == 3 * i


def test_seeds_of_numpy_and_a_line_that_was_cut_off(data, tmp_path):
    path = tmp_path / "rows.jsonl"
    first = compare(data, [CrossEntropyClassifier()], seeds=np.arange(1), path=path, **FAST)
    whole = path.read_text()
    path.write_text(whole + whole.splitlines()[1][:30])
    with pytest.warns(UserWarning, match="unfinished last line"), no_training():
        again = compare(data, [CrossEntropyClassifier()], seeds=[0], path=path, **FAST)
    assert again.rows == first.rows


def test_a_class_without_rows_and_a_stage_without_epochs(data):
    some = data.y < 2
    less = data._replace(X=data.X[some], y=data.y[some], y_true=data.y[some])
    result = compare(less, {"tuned": FineTuningClassifier(fine_tuning_epochs=0)}, seeds=[0], **FAST)
    assert "sampling limit" not in result.methods
    assert by_method(result)["tuned"]["steps"] == by_method(result)["cross-entropy"]["steps"]
