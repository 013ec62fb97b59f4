"""Tables at the scale `smoke`: every method on every data set, resumption, hyper-parameters, pages."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from examples.benchmarks.shared import add_row, crop_and_flip, crop_flip_and_cut_out, read_rows
from examples.paper import data, page, run, tables, tune
from noisytransition import transition_error

WITHOUT_T = {"cross-entropy", "clean rows only", "fine-tuning", "GCE", "MW-Net"}
FROM_GLC = ["GLC", "S-Model", "meta-transition"]


def table(name, root, out, *options, noise):
    """Run a noise of a table with one seed; return the rows by method."""
    places = ["--data-root", str(root), "--out", str(out)]
    run.main([name, "--scale", "smoke", "--seeds", "0", "--cell", noise, *places, *options])
    return {row["method"]: row for row in read_rows(out)}


@pytest.fixture
def out(tmp_path):
    return tmp_path / "rows.jsonl"


@pytest.fixture(autouse=True)
def _untuned(monkeypatch, tmp_path):
    """The settings of the repository's file do not matter."""
    monkeypatch.setattr(tables, "TUNED", tmp_path / "tuned.json")


# ---------------------------------------------------------------------------- every table
SOME = ("clean rows only", "GLC", "T-Revision", "true T", "GLC, pairs")


@pytest.mark.parametrize(
    ("name", "noise", "methods"),
    [
        ("cifar10", "asymmetric 0.4", tuple(m for m in tables.METHODS if m != tables.ONE_T)),
        ("cifar10n", "worse", (*SOME, tables.ONE_T)),
        ("cifar100", "symmetric 0.2", SOME),
    ],
)
def test_tables(data_root, out, name, noise, methods):
    """All methods once; 100 classes take long."""
    rows = table(name, data_root, out, "--methods", *methods, noise=noise)
    assert ("limit" in rows["GLC"]) == (name != "cifar100")  # some of 100 classes have no row
    assert set(rows) == set(methods)
    for method, row in rows.items():
        assert 0 <= row["accuracy"] <= 1
        assert ("T" in row) == ("transition_error" in row) == (method not in WITHOUT_T)
        assert row.get("limit", 0) < row["identity"]
        assert row["versions"]["torch"] == torch.__version__
        assert row["settings"]["optimizer__weight_decay"] == 1e-3
    assert rows["true T"]["transition_error"] < 0.01  # but for the floor


@pytest.mark.parametrize(
    ("name", "noise", "options"), [("tiny-imagenet", "asymmetric 0.4", ()), ("clothing1m", "shops", ("--n-meta", "14"))]
)
def test_images_in_files(data_root, out, name, noise, options, monkeypatch):
    """Few rows, since reading takes long; without EM, since 200 classes do."""
    monkeypatch.setitem(tables.SCALES, "smoke", tables.SCALES["smoke"]._replace(n_noisy=40))
    methods = ["clean rows only", "GLC", "meta-transition"]
    rows = table(name, data_root, out, "--methods", *methods, *options, noise=noise)
    assert list(rows) == methods
    assert 0 < rows["GLC"]["transition_error"] < 2
    assert len(rows["GLC"]["T"]) == tables.N_CLASSES[name]  # of 200 classes the diagonal


def test_the_nine_noises():
    names = {str(cell).split(", ")[1] for cell in tables.cells("cifar10", "full")}
    assert names == {"none"} | {f"{kind} {r}" for kind in ("symmetric", "asymmetric") for r in (0.2, 0.4, 0.6, 0.8)}
    assert len(tables.cells("cifar10", "full")) == 9 * 5 * 15


def test_a_text_chooses_whole_words():
    chosen = run.matching(tables.cells("cifar10", "full", [0]), ["symmetric 0.4", "EM"])
    assert {cell.noise for cell in chosen} == {"symmetric"}
    assert [cell.method for cell in chosen] == ["EM", "EM, pairs"]


def test_pairs_are_left_out_where_noisy_labels_of_clean_rows_are_unknown():
    methods = {cell.method for cell in tables.cells("clothing1m", "full")}
    assert methods == set(tables.METHODS) - {*tables.PAIRS, tables.ONE_T}


def test_T_of_people_is_counted(data_root):
    places = data.Places(data_root)
    found = data.load("cifar10", "worse", None, 0, "smoke", 30, False, places)
    pairs = zip([*found.y_true, *found.y_meta], [*found.y, *found.y_meta_noisy], strict=True)
    of_3 = [noisy for true, noisy in pairs if true == 3]
    np.testing.assert_allclose(found.transition_matrix[3], np.bincount(of_3, minlength=10) / len(of_3))


# ---------------------------------------------------------------------------- features
@pytest.fixture
def features_dir(tmp_path):
    rng = np.random.default_rng(0)
    for part, n in (("train", 300), ("test", 40)):
        rows = np.arange(n) % 10
        np.save(tmp_path / f"cifar10_{part}.npy", (5 + np.eye(10)[rows] * 3 + rng.normal(size=(n, 10))).astype("f2"))
    return tmp_path


def test_features_take_the_place_of_images(data_root, out, features_dir, monkeypatch):
    scale = tables.SCALES["features"]  # 270 rows are one batch: few steps, which have to be larger
    scale = scale._replace(n_meta=30, training=scale.training | {"lr": 0.03})
    monkeypatch.setitem(tables.SCALES, "features", scale)
    arguments = [
        "cifar10",
        "--scale",
        "features",
        "--features-dir",
        str(features_dir),
        "--cell",
        "symmetric 0.2",
        "--seeds",
        "1",
    ]
    run.main([*arguments, "--methods", "GLC", "--data-root", str(data_root), "--out", str(out)])
    rows = read_rows(out)
    assert [row["network"] for row in rows] == ["linear", "MLP"]
    assert min(row["accuracy"] for row in rows) > 0.5


@pytest.mark.parametrize(("noise", "together"), [("redrawn", False), ("redrawn by features", True)])
def test_labels_that_are_drawn_anew(data_root, features_dir, noise, together, monkeypatch):
    """By T alone, or so that they and the features fail together."""
    monkeypatch.setitem(data.POWERS, "redrawn by features", 3.0)
    monkeypatch.setitem(data.HEAD, "lr", 0.3)  # 270 rows are one batch
    places = data.Places(data_root, features_dir)
    found = data.load("cifar10", noise, None, 0, "features", 30, False, places)
    people = data.load("cifar10", "worse", None, 0, "features", 30, False, places)
    np.testing.assert_array_equal(found.y_true, people.y_true)
    np.testing.assert_array_equal(found.X, people.X)
    assert (found.y != people.y).any()
    true, given = (np.concatenate(pair) for pair in ((found.y_true, found.y_meta), (found.y, found.y_meta_noisy)))
    np.testing.assert_allclose(found.transition_matrix, data.counted(true, given, 10))
    wrong = (found.y != found.y_true).mean()
    assert (wrong < 0.2) if together else (0.25 < wrong < 0.45)  # these features tell the classes
    with pytest.raises(ValueError, match="--scale features only"):
        data.load("cifar10", noise, None, 0, "smoke", 30, False, places)


def test_features_are_of_the_same_rows(data_root, features_dir):
    places = data.Places(data_root, features_dir)
    images = data._images("cifar10", "symmetric", 0.2, 0, None, 30, data_root / "cifar10")
    found = data.load("cifar10", "symmetric", 0.2, 0, "features", 30, False, places)
    raw = np.load(features_dir / "cifar10_train.npy").astype("f4")
    np.testing.assert_allclose(found.X.mean(axis=0), 0, atol=1e-5)
    np.testing.assert_array_equal(found.y, images.y)
    np.testing.assert_allclose(np.corrcoef(found.X[:, 2], raw[images.rows, 2])[0, 1], 1, atol=1e-6)


def test_too_few_features_are_refused(data_root, features_dir):
    np.save(features_dir / "cifar10_train.npy", np.zeros((100, 4)))
    with pytest.raises(ValueError, match="features of 100"):
        data.load("cifar10", "symmetric", 0.2, 0, "features", 30, False, data.Places(data_root, features_dir))


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


def test_other_settings_are_another_cell(data_root, out):
    table("cifar10n", data_root, out, "--methods", "GCE", noise="worse")
    tables.TUNED.write_text(json.dumps({"smoke": {"cifar10": {"small CNN": {"GCE": {"q": 0.5}}}}}))
    table("cifar10n", data_root, out, "--methods", "GCE", noise="worse")
    assert [row["settings"].get("q") for row in read_rows(out)] == [None, 0.5]


def test_a_half_line_is_cut(tmp_path):
    path = tmp_path / "rows.jsonl"
    add_row(path, {"a": 1})
    path.write_text(path.read_text() + '{"a": 2, "b"')
    assert read_rows(path) == [{"a": 1}]
    add_row(path, {"a": 3})
    assert read_rows(path) == [{"a": 1}, {"a": 3}]


def test_a_line_that_is_damaged_is_named(out):
    out.write_text('{"a": 1}\n{"a\n{"a": 2}\n')
    with pytest.raises(SystemExit, match=r"rows.jsonl, line 2 is no JSON .*remove the line"):
        read_rows(out)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["cifar10", "--cell", "nonsense"], r"no cell .*'nonsense'.* noises: none, symmetric 0.2, .*asymmetric 0.8"),
        (["clothing1m", "--methods", "GLC, pairs"], "the table has none of --methods"),
        (["cifar10", "--network", "linear"], "'linear' takes features; give --scale features"),
        (["cifar10", "--scale", "features", "--network", "small CNN"], "takes images; give linear or MLP"),
        (["clothing1m"], "ResNet-50 is pretrained: give --weights"),
        (["cifar10", "--data-root", "nowhere"], r"nowhere is not a folder; docs/datasets.rst"),
        (["cifar10", "--out", "."], "is a folder; give a file"),
        (["cifar10", "--device", "gpu"], r"^--device='gpu' cannot be used: .*; give one of \['cpu'"),
        (["cifar10", "--device", "cuda:99"], r"^--device='cuda:99' cannot be used: .*; give one of \['cpu'"),
    ],
)
def test_options_that_cannot_be_run_are_refused_before_a_fit(data_root, arguments, message):
    with pytest.raises(SystemExit, match=message):
        run.main([*arguments[:1], "--data-root", str(data_root), *arguments[1:]])


@pytest.mark.parametrize("option", ["--jobs", "--n-meta"])
@pytest.mark.parametrize("number", ["0", "-1", "x"])
def test_numbers_of_processes_and_rows(option, number, capsys):
    with pytest.raises(SystemExit):
        run.main(["cifar10", f"{option}={number}"])
    assert f"'{number}' is not a whole number of at least 1" in capsys.readouterr().err


def test_a_seed_or_network_that_is_given_twice_is_one_cell():
    assert len(tables.cells("cifar10", "full", [0, 0])) == 9 * 15
    assert len(tables.cells("cifar10", "full", [0], ["small CNN", "small CNN"])) == 9 * 15


def test_pretrained_weights_are_part_of_a_cell():
    one, other = (run.with_options(tables.cells("clothing1m", "full"), path)[0] for path in ("a/w1.pt", "b/w2.pt"))
    assert one.key != other.key
    again = run.with_options(tables.cells("clothing1m", "full"), "elsewhere/w1.pt")[0]
    assert one.key == again.key


def test_the_precision_is_part_of_a_cell_and_of_the_network_that_T_starts_from(data_root, out, monkeypatch):
    warm_ups, fit_warm_up = [], run.fit_warm_up
    monkeypatch.setattr(run, "fit_warm_up", lambda cell, *args: warm_ups.append(cell) or fit_warm_up(cell, *args))
    rows = table("cifar10", data_root, out, "--methods", "GLC", "--precision", "bf16", noise="asymmetric 0.4")
    assert rows["GLC"]["settings"]["precision"] == warm_ups[0].settings["precision"] == "bf16"


def test_a_cell_that_fails_is_tried_again(data_root, out, capsys, monkeypatch):
    monkeypatch.setitem(tables.DEFAULTS, "GCE", {})
    monkeypatch.setitem(tables.PUBLISHED, "GCE", {"q": -1.0})
    with pytest.raises(SystemExit, match="1 cells failed"):
        table("cifar10n", data_root, out, "--methods", "GCE", "cross-entropy", noise="worse")
    assert "FAILED: ValueError: q == -1.0" in capsys.readouterr().out
    assert [row["method"] for row in read_rows(out)] == ["cross-entropy"]


def test_cells_run_in_several_processes(data_root, out):
    cells = ["cifar10", "--scale", "smoke", "--cell", "symmetric 0.2", "--methods", "GCE", "--seeds", "0", "1"]
    command = [
        sys.executable,
        "-m",
        "examples.paper.run",
        *cells,
        "--data-root",
        data_root,
        "--out",
        out,
        "--jobs",
        "2",
    ]
    subprocess.run(command, check=True, cwd=Path(run.__file__).parents[2], env=os.environ | {"OMP_NUM_THREADS": "1"})
    assert sorted(row["seed"] for row in read_rows(out)) == [0, 1]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_killed_runs_go_on(data_root):
    script = Path(__file__).with_name("killed_runs.py")
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, script, data_root], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr


# ---------------------------------------------------------------------------- T that methods start from
def test_methods_start_from_one_T(data_root, out, monkeypatch):
    trained, fit = [], run.fit
    monkeypatch.setattr(
        run, "fit", lambda cell, *args, **own: trained.append((cell.method, own)) or fit(cell, *args, **own)
    )
    rows = table("cifar10n", data_root, out, "--methods", *FROM_GLC, "cross-entropy", noise="worse")
    assert [name for name, _ in trained] == ["cross-entropy", *FROM_GLC]
    starts = [own["transition_init"] for name, own in trained if name != "cross-entropy"]
    assert all((start == starts[0]).all() for start in starts)
    assert transition_error(starts[0], rows["GLC"]["T"]) < 0.01  # but for the floor


def test_the_start_is_made_without_the_row_of_cross_entropy(data_root, tmp_path):
    alone = table("cifar10n", data_root, tmp_path / "alone.jsonl", "--methods", "GLC", noise="worse")
    beside = table("cifar10n", data_root, tmp_path / "beside.jsonl", "--methods", "cross-entropy", "GLC", noise="worse")
    assert alone["GLC"]["T"] == beside["GLC"]["T"]


# ---------------------------------------------------------------------------- the schedule
def test_the_step_falls_in_each_training(data_root, tmp_path):
    (cell,) = tables.cells("cifar10n", "smoke", [0], methods=["T-Revision"])[1:]
    places = data.Places(data_root, states=tmp_path)
    clf = run.fit(cell, data.load(*run.data_of(cell), places), places)
    for stage in ("warm_up", "reweighting"):
        np.testing.assert_allclose(clf.histories_[stage][:, "event_lr"], [0.05, 0.005])


def test_the_papers_setting():
    (cell,) = tables.cells("cifar100", "full", [0], methods=["meta-transition"])[:1]
    assert (cell.network, cell.n_meta) == ("ResNet-34", 1000)
    wanted = {"max_epochs": 120, "decay_at": [80, 100], "batch_size": 128, "optimizer__weight_decay": 1e-3}
    assert wanted.items() <= cell.settings.items()
    assert cell.settings["from_warm_up"] is False
    assert {c.seed for c in tables.cells("cifar100", "full")} == set(range(5))


# ---------------------------------------------------------------------------- hyper-parameters
def test_every_method_has_as_many_settings():
    for name, scale in (("cifar10", "features"), ("clothing1m", "full")):
        own = tune.candidates(name, scale)
        assert set(own) == set(tables.METHODS) - set(tables.SETTINGS_OF)
        assert {len({json.dumps(s) for s in settings}) for settings in own.values()} == {tune.N_SETTINGS}


def test_the_search_writes_what_run_reads(data_root, out, tmp_path):
    options = [
        "--scale",
        "smoke",
        "--seeds",
        "100",
        "--cell",
        "worse",
        "--data-root",
        str(data_root),
        "--out",
        str(out),
    ]
    tune.main(["cifar10n", *options, "--methods", "GCE", "--tuned", str(tables.TUNED)])
    rows = read_rows(out)
    assert len(rows) == tune.N_SETTINGS
    assert not any("transition_error" in row or "limit" in row for row in rows)
    found = tables.tuned("cifar10", "smoke", "small CNN", "GCE")
    best = max(rows, key=lambda row: row["accuracy"])
    assert found == {name: best["settings"][name] for name in ("lr", "q")}
    assert tables.settings("cifar10n", "smoke", "small CNN", "GCE") == best["settings"]


def test_the_search_uses_neither_test_rows_nor_the_seeds_of_tables(data_root):
    places = data.Places(data_root)
    given = data.load("cifar10", "worse", None, 100, "smoke", 30, False, places)
    found = data.load("cifar10", "worse", None, 100, "smoke", 30, True, places)
    assert found.transition_matrix is None
    assert len(found.X_meta) == len(found.X_test) == 30
    train = np.load(data_root / "cifar10" / "X_train.npy")
    at = [np.flatnonzero((train == image).all(axis=(1, 2, 3))) for image in [*found.X_meta, *found.X_test]]
    assert len(np.unique(np.concatenate(at))) == 60
    assert not np.isin(np.concatenate(at), found.rows).any()
    assert not any((given.X_test == image).all(axis=(1, 2, 3)).any() for image in found.X_test)
    with pytest.raises(SystemExit, match="100 and above"):
        tune.search_cells("cifar10", "features", [3])


# ---------------------------------------------------------------------------- the page
def line(method, seed, accuracy, **more):
    cell = tables.Cell("cifar10", "cifar10", "symmetric", 0.4, method, seed, "features", "linear", 1000, {"lr": 0.1})
    measured = {"accuracy": accuracy, "seconds": 1.0, "identity": 0.8, "limit": 0.01, "versions": {"torch": "2.15"}}
    return cell._asdict() | measured | more


def test_the_page(out, capsys):
    for seed, (base, own) in enumerate([(0.7, 0.72), (0.6, 0.64), (0.65, 0.68)]):
        add_row(out, line("fine-tuning", seed, base))
        add_row(out, line("GLC", seed, 0.1, transition_error=9.0, settings={"lr": 5.0}))
        add_row(out, line("GLC", seed, own, transition_error=0.1 * (seed + 1)))
    page.main([str(out)])
    text = out.with_suffix(".md").read_text()
    assert capsys.readouterr().out.strip() == text.strip()
    assert "| fine-tuning | 0.650 ± 0.050 |" in text
    assert "| GLC | 0.200 ± 0.100 |" in text  # of the last settings alone
    assert "| identity | 0.800 ± 0.000 |" in text
    assert "| sampling limit | 0.010 ± 0.000 |" in text
    assert "| GLC | +3.0 [+0.5, +5.5] |" in text


# ---------------------------------------------------------------------------- crops
def test_crops_and_flips_are_parts_of_the_image():
    torch.manual_seed(0)
    x = torch.arange(1, 1 + 16 * 16).float().reshape(1, 16, 16, 1).expand(50, 16, 16, 3)
    found = crop_and_flip(x)
    assert found.shape == x.shape
    assert len({tuple(image.flatten().tolist()) for image in found}) > 10
    steps = (found[:, 8, 1:, 0] - found[:, 8, :-1, 0])[:, 4:-4]
    assert set(steps.flatten().tolist()) == {1.0, -1.0}


def test_cutout_hides_one_square_of_each_image():
    torch.manual_seed(0)
    x = torch.full((50, 32, 32, 3), 250.0)
    hidden = crop_flip_and_cut_out(x) == 120
    assert (hidden.sum((1, 2, 3)) == 3 * 8 * 8).all()
    tall, wide = hidden[..., 0].any(2), hidden[..., 0].any(1)
    assert (tall.sum(1) == 8).all()
    assert (wide.sum(1) == 8).all()
    assert len({tuple(rows.tolist()) for rows in tall}) > 10
