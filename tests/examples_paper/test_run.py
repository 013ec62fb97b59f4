"""Tables at the scale `smoke`: every method on every data set, resumption, hyper-parameters, pages."""

import numpy as np
import pytest
import torch

from examples.benchmarks.shared import add_row, read_rows
from examples.paper import page, run, tables, tune
from noisytransition.methods import METHODS, EMTransitionClassifier

WITHOUT_T = {"cross-entropy", "clean samples only", "fine-tuning", "GCE", "MW-Net"}


def table(name, root, out, *options, noise, scale="smoke"):
    """Run a noise of a table with one seed; return the rows by method."""
    places = ["--data-root", str(root), "--out", str(out)]
    run.main([name, "--scale", scale, "--seeds", "0", "--cell", noise, *places, *options])
    return {row["method"]: row for row in read_rows(out)}


@pytest.fixture
def out(tmp_path):
    return tmp_path / "rows.jsonl"


@pytest.fixture(autouse=True)
def _untuned(monkeypatch, tmp_path):
    """Ignore the settings in the repository's file."""
    monkeypatch.setattr(tables, "TUNED", tmp_path / "tuned.json")


@pytest.mark.parametrize(
    ("name", "noise", "methods"),
    [
        pytest.param("cifar10n", "worse", tuple(tables.METHODS), marks=pytest.mark.slow),
        ("cifar100", "symmetric 0.2", ("GLC", "true T")),
        ("tiny-imagenet", "asymmetric 0.4", ("clean samples only", "GLC")),
        pytest.param("clothing1m", "shops", ("clean samples only", "GLC"), marks=pytest.mark.slow),
    ],
)
def test_tables(data_root, out, name, noise, methods, monkeypatch):
    if name in ("tiny-imagenet", "clothing1m"):  # few rows, since reading takes long
        monkeypatch.setitem(tables.SCALES, "smoke", tables.SCALES["smoke"]._replace(n_noisy=40))
    n_meta = ("--n-meta", "14") if name == "clothing1m" else ()
    rows = table(name, data_root, out, "--methods", *methods, *n_meta, noise=noise)
    assert set(rows) == set(methods)
    for method, row in rows.items():
        assert 0 <= row["accuracy"] <= 1
        assert ("transition_error" in row) == (method not in WITHOUT_T)
        assert row["versions"]["torch"] == torch.__version__
    if "true T" in rows:
        assert rows["true T"]["transition_error"] < 0.01  # but for the floor


@pytest.mark.parametrize("scale", tables.SCALES)
def test_the_papers_nine_rows_are_the_published_methods(scale):
    for name, cls in METHODS.items():
        if cls is not EMTransitionClassifier:
            own = tables.settings("cifar10", scale, "ResNet-34", name)
            assert tables.make(name).get_params() == cls.as_published().get_params()
            # GLC's T, as in the paper
            starts = {"transition_init": "gold"} if name in ("S-Model", "T-Revision") else {}
            assert {key: own[key] for key in own.keys() & {"transition_init", "from_warm_up", "balanced"}} == starts


# ---------------------------------------------------------------------------- features
def write_features(folder, seed):
    folder.mkdir()
    rng = np.random.default_rng(seed)
    for part, n in (("train", 300), ("test", 40)):
        np.save(folder / f"cifar10_{part}.npy", np.eye(10)[np.arange(n) % 10] * 3 + rng.normal(size=(n, 10)))
    return folder


def test_a_file_of_results_has_rows_of_the_same_features(data_root, out, tmp_path):
    chosen = ("--methods", "cross-entropy", "--network", "linear", "--n-meta", "30", "--features-dir")
    options = {"noise": "worse", "scale": "features"}
    first, other = (str(write_features(tmp_path / str(seed), seed)) for seed in (0, 1))
    assert table("cifar10n", data_root, out, *chosen, first, **options)
    with pytest.raises(SystemExit, match="other features"):
        table("cifar10n", data_root, out, *chosen, other, **options)


# ---------------------------------------------------------------------------- resumption
def test_what_is_there_is_not_run_again(data_root, out, capsys):
    first = table("cifar10n", data_root, out, "--methods", "GLC", noise="worse")
    whole = out.read_bytes()
    out.write_bytes(whole + b'{"method": "GC')  # killed in a write
    both = table("cifar10n", data_root, out, "--methods", "GLC", "GCE", noise="worse")
    assert both["GLC"] == first["GLC"]
    assert out.read_bytes().startswith(whole)
    assert len(read_rows(out)) == 2
    assert capsys.readouterr().out.count("[1/1,") == 2
    assert not any(out.with_name(out.name + ".states").iterdir())


# ---------------------------------------------------------------------------- hyper-parameters, the page, images
def test_the_search_writes_what_run_reads(data_root, out):
    own = tune.ladders("cifar10", "features")
    assert set(own) == set(tables.METHODS) - set(tables.SETTINGS_OF)
    assert all(start in values for ladder in own.values() for values, start in ladder.values())
    options = ["--scale", "smoke", "--seeds", "100", "--cell", "worse", "--methods", "GCE"]
    tune.main(["cifar10n", *options, "--data-root", str(data_root), "--out", str(out), "--tuned", str(tables.TUNED)])
    rows = read_rows(out)
    assert not any("transition_error" in row for row in rows)
    accuracy = {tuple(row["settings"][name] for name in ("lr", "q")): row["accuracy"] for row in rows}
    found = {name: tables.settings("cifar10n", "smoke", "small CNN", "GCE")[name] for name in ("lr", "q")}
    beside = tune.around(found, tune.ladders("cifar10n", "smoke")["GCE"])
    assert accuracy[tuple(found.values())] == max(accuracy[tuple(own.values())] for own in beside)


def test_the_steps_of_the_search():
    ladder = {"lr": ([0.1, 1.0, 10.0], 1.0), "new": ([False, True], False)}
    assert tune.first(ladder) == {"lr": 1.0, "new": False}
    found = [tuple(own.values()) for own in tune.around({"lr": 10.0, "new": False}, ladder)]
    assert found == [(10.0, False), (1.0, False), (10.0, True)]


def test_the_page_of_the_last_settings(out):
    for seed, (base, own) in enumerate([(0.7, 0.72), (0.6, 0.64), (0.65, 0.68)]):
        for method, accuracy, lr in (("fine-tuning", base, 0.1), ("GLC", 0.1, 5.0), ("GLC", own, 0.1)):
            cell = tables.Cell("cifar10", "cifar10", "symmetric", 0.4, method, seed, "gpu", "CNN", 1000, {"lr": lr})
            measured = {"accuracy": accuracy, "seconds": 1.0, "identity": 0.8, "versions": {"torch": "2.15"}}
            add_row(out, cell._asdict() | measured | ({"transition_error": 0.2} if method == "GLC" else {}))
    page.main([str(out)])
    text = out.with_suffix(".md").read_text()
    for line in ("fine-tuning | 0.650 ± 0.050", "GLC | 0.200 ± 0.000", "identity | 0.800", "GLC | +3.0 [+0.5, +5.5]"):
        assert f"| {line}" in text


def test_the_figures_of_the_paper_are_in_a_second_line():
    tables_of_noise = {"none": None, "asymmetric 0.4": None}
    lines = [("GLC", ["0.848", "0.840"]), ("EM", ["0.851", "0.846"])]
    both = page.with_the_paper("cifar10", "accuracy", tables_of_noise, lines)
    assert both == [lines[0], ("GLC, the paper", ["", "0.918"]), lines[1]]


@pytest.mark.parametrize("path", sorted(run.RESULTS.glob("cifar*.jsonl")), ids=lambda path: path.stem)
def test_committed_results_are_read(path):
    assert page.page(read_rows(path)).startswith("# Results")
