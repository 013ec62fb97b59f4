"""The wheel and the source archive install and work outside of the checkout."""

import os
import re
import runpy
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest

import noisytransition

ROOT = Path(__file__).parents[1]
SMOKE = """
import numpy as np, noisytransition
from noisytransition import GLCClassifier
rng = np.random.default_rng(0)
y = rng.integers(2, size=80)
X = rng.normal(size=(80, 2)) + 3 * np.eye(2)[y]
clf = GLCClassifier(max_epochs=2, random_state=0).fit(X, y, meta=(X[:20], y[:20]))
assert clf.transition_matrix_.shape == (2, 2)
clf.noise_report(X, y).save("report.html")  # needs the template, which is no module
clf.save("clf.safetensors")
assert (noisytransition.load("clf.safetensors").predict(X) == clf.predict(X)).all()
print(noisytransition.__file__, noisytransition.__version__)
"""


@pytest.fixture(scope="module")
def archives(tmp_path_factory):
    """Wheel and source archive."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "hatchling", "build", "-d", str(folder)], cwd=ROOT, check=True)
    return next(folder.glob("*.whl")), next(folder.glob("*.tar.gz"))


def installed(archive, target):
    """Install an archive into a folder, without dependencies and without an index."""
    options = ["--quiet", "--no-deps", "--no-index", "--no-build-isolation", "--target", str(target)]
    subprocess.run([sys.executable, "-m", "pip", "install", *options, str(archive)], check=True)


def test_the_oldest_versions_are_the_bounds():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"]
    bounds = dict(text.split(">=") for text in [*project["dependencies"], *extras["plot"], *extras["vision"]])
    lines = (ROOT / "tests" / "oldest_versions.txt").read_text()
    pinned = dict(re.findall(r"^([a-z0-9-]+)==(.+)$", lines, re.MULTILINE))
    assert pinned.keys() == bounds.keys()
    for name, version in pinned.items():
        assert f"{version}.".startswith(f"{bounds[name]}."), name


@pytest.mark.slow
def test_the_wheel_works_outside_of_the_checkout_and_the_source_archive_installs_the_same(archives, tmp_path):
    wheel, source = archives
    installed(wheel, tmp_path / "site")
    options = {"env": os.environ | {"PYTHONPATH": str(tmp_path / "site")}, "stdout": subprocess.PIPE, "text": True}
    done = subprocess.run([sys.executable, "-c", SMOKE], cwd=tmp_path, check=True, **options)
    where, version = done.stdout.split()
    assert Path(where).is_relative_to(tmp_path / "site")
    assert version == noisytransition.__version__
    installed(source, tmp_path)
    files = {path for path in (tmp_path / "noisytransition").rglob("*.*") if path.suffix != ".pyc"}
    with zipfile.ZipFile(wheel) as archive:
        contents = {name: archive.read(name) for name in archive.namelist() if ".dist-info/" not in name}
    assert {path.relative_to(tmp_path).as_posix(): path.read_bytes() for path in files} == contents
    assert "noisytransition/py.typed" in contents


def test_what_is_in_the_archives(archives):
    """The wheel has exactly the files of the package; the source archive has the files that tests need."""
    wheel, source = archives
    package = {str(p.relative_to(ROOT)) for p in (ROOT / "noisytransition").rglob("*") if p.is_file()}
    package = {name for name in package if "__pycache__" not in name}
    names = zipfile.ZipFile(wheel).namelist()
    assert {name for name in names if ".dist-info/" not in name} == package
    with tarfile.open(source) as archive:
        inside = {name.partition("/")[2] for name in archive.getnames()}
    assert not [name for name in inside if "/results/" in name]
    others = {"README.md", "LICENSE", "CITATION.cff", "hatch_build.py", "tests/conftest.py", "docs/conf.py"}
    assert package | others <= inside


def test_links_of_the_readme_and_metadata_are_those_of_a_package_index(archives):
    text = (ROOT / "README.md").read_text()
    assert "](docs/" in text
    with zipfile.ZipFile(archives[0]) as wheel:
        shown = wheel.read(next(name for name in wheel.namelist() if name.endswith("/METADATA"))).decode()
    assert "# noisytransition\n" in shown
    assert not re.findall(r"\]\((?!https://)[^)]*\)", shown)
    with_absolute_links = runpy.run_path(str(ROOT / "hatch_build.py"))["with_absolute_links"]
    linked = with_absolute_links(text, "https://example.org/repository")
    assert "](https://example.org/repository/raw/main/docs/front_page.png)" in linked
    assert "[API](https://example.org/repository/blob/main/docs/api.rst)" in linked
    pytest.importorskip("twine")
    subprocess.run([sys.executable, "-m", "twine", "check", "--strict", *map(str, archives)], check=True)


def test_one_version_and_one_date():
    version = noisytransition.__version__
    cited = dict(re.findall(r"^(version|date-released): (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE))
    assert cited["version"] == version
    assert f"\n## [{version}] - {cited['date-released']}\n" in (ROOT / "CHANGELOG.md").read_text()
