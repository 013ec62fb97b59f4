"""List the result files that pages show: the command, the version of the package and the date of each.

    python examples/benchmarks/all.py            # update results/versions.csv after files have changed
    python examples/benchmarks/all.py --check    # only say what is wrong; exit with 1 in this case
    python examples/benchmarks/all.py --pack     # also write all files of JSON lines in their short form

The version is that in the rows of the file of JSON lines with the same name. Without one, version and date are those of
the commit that last changed the shown file ("history"), or the present ones if it is not committed.
"""

import argparse
import ast
import csv
import hashlib
import re
import subprocess
import sys
from datetime import UTC, datetime
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

from shared import RESULTS, pack, read_rows

from noisytransition import __version__

ROOT = Path(__file__).parents[2]
LIST = RESULTS / "versions.csv"
COLUMNS = ["file", "command", "version", "date", "version from", "hash"]
LINKED = re.compile(r"(?:(?:\.\./)*examples/\w+/)?results/[\w.-]+\.(?:csv|md|png)|docs/front_page\.png")
# scripts of files with other names, by the start of these names
SCRIPTS = {
    "cifar10": "page.py",
    "figure_": "figures.py",
    "zoo_": "zoo/run.py",
    "zoo_small": "zoo/__main__.py",
}
PICTURES = dict.fromkeys(["accuracy.png", "error_of_T.png", "nine_methods.png", "zoo.png"], "pictures.py")
PICTURES |= {"front_page.png": "front_page.py"}
# the last version that changed the results of scripts, by the start of the names of files: older files are not shown
CHANGED = {"": "0.3.0"}
# networks on images, figures of a fit, and baselines are not run again
KEPT = ["cifar10_deep", "cifar10n_deep", "cifar10_gpu", "cifar10n_gpu", "figure_"]
CHANGED |= dict.fromkeys([*KEPT, "cifar100_features", "cifar10n-redrawn"], "0.2.0")


def longest(starts, name):
    """Return the longest of these texts that the name starts with, or None."""
    return max((start for start in starts if name.startswith(start)), key=len, default=None)


def shown(root=ROOT):
    """Return the paths of the result files that pages show or name, without the list itself."""
    pages = [*(root / "docs").rglob("*.rst"), *root.glob("*.md"), *(root / "examples").rglob("README.md")]
    found = set()
    for page in pages:
        for name in LINKED.findall(page.read_text()):
            folder = page.parent if name.startswith("results/") else root
            found.add((folder / name.replace("../", "")).relative_to(root).as_posix())
    return sorted(found - {LIST.relative_to(root).as_posix()})


def command(path):
    """Return the first command in the docstring of the script of a file; None if there is none."""
    if Path(path).name in PICTURES:
        script = RESULTS.parent / PICTURES[Path(path).name]
    else:
        folder, stem = (ROOT / path).parents[1], Path(path).stem
        scripts = {script.stem: script.name for script in folder.glob("*.py")} | SCRIPTS
        script = folder / scripts.get(longest(scripts, stem), "")
    text = ast.get_docstring(ast.parse(script.read_text())) if script.is_file() else ""
    commands = re.findall(r"^ *(python .*?)(?:  +#.*)?$", text or "", re.MULTILINE)
    return commands[0].replace("FILE", str(rows_of(path))) if commands else None


def rows_of(path):
    """Return the file of JSON lines with the longest common name, or None."""
    files = {rows.stem: rows.relative_to(ROOT) for rows in (ROOT / path).parent.glob("*.jsonl")}
    return files.get(longest(files, Path(path).stem))


def recorded(path):
    """Return the versions in the rows of a file; an empty text if a row has none."""
    file = rows_of(path)
    rows = read_rows(ROOT / file) if file else []
    found = set(map(version_of, rows))
    return ", ".join(sorted(found)) if found and "" not in found else ""


def version_of(row):
    versions = row.get("versions")
    return row.get("version") or (versions.get("noisytransition", "") if isinstance(versions, dict) else "")


def committed(path):
    """Return version and date of the commit that last changed a file; None if there is a later change."""
    if git("status", "--porcelain", "--", path):
        return None
    commit, date = git("log", "-1", "--format=%H %cs", "--", path).split()
    source = git("show", f"{commit}:noisytransition/__init__.py")
    return re.search(r'__version__ = "(.*)"', source)[1], date


def git(*arguments):
    return subprocess.run(["git", *arguments], cwd=ROOT, capture_output=True, text=True, check=True).stdout.strip()


def digest(path):
    return hashlib.sha256((ROOT / path).read_bytes()).hexdigest()[:12]


def entry(path):
    """Return the line of a file."""
    now = __version__, datetime.now(UTC).date().isoformat()
    by_commit = committed(path)
    version, date = by_commit or now
    of_rows = recorded(path)
    source = "rows" if of_rows else "history" if by_commit else "present"
    values = [path, command(path) or "", of_rows or version, date, source, digest(path)]
    return dict(zip(COLUMNS, values, strict=True))


def read_list():
    """Return the lines of the list, by file."""
    if not LIST.exists():
        return {}
    with LIST.open() as file:
        return {line["file"]: line for line in csv.DictReader(file)}


def update():
    """Write the list: new lines for files that have changed, the others as they are."""
    known, lines = read_list(), []
    for path in shown():
        if (ROOT / path).is_file():
            old = known.get(path, {})
            line = old if old.get("hash") == digest(path) else entry(path)
            lines.append(line | {"command": command(path) or ""})
    with LIST.open("w", newline="") as file:
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\n")
        writer.writeheader()
        writer.writerows(lines)


def faults():
    """Return what is wrong with the shown files, a text for each."""
    known = read_list()
    return [f"{path}: {text}" for path in shown() if (text := fault(path, known.get(path)))]


def fault(path, line):
    """Return what is wrong with a shown file, or None."""
    if not (ROOT / path).is_file():
        return "a page shows it, but it does not exist"
    if line is None or line["hash"] != digest(path):
        return "is new or has changed: run examples/benchmarks/all.py"
    if line["command"] != (command(path) or ""):
        return "its command has changed: run examples/benchmarks/all.py"
    if not line["command"]:
        return "no script has its name, or the docstring of the script has no command"
    changed = CHANGED[longest(CHANGED, Path(path).stem)]
    if numbers(line["version"].partition(",")[0]) < numbers(changed):
        return f"is of version {line['version']}, and results have changed in {changed}: run {line['command']}"
    return None


def numbers(version):
    """Return a version as a tuple of integers."""
    return tuple(map(int, version.split(".")))


def main():
    """Update or check the list."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--check", action="store_true", help="change nothing")
    parser.add_argument("--pack", action="store_true", help="also write files of JSON lines in their short form")
    args = parser.parse_args()
    if args.pack:
        for path in (ROOT / "examples").glob("*/results/**/*.jsonl"):
            pack(path)
    if not args.check:
        update()
    found = faults()
    print("\n".join(found) or f"{LIST.relative_to(ROOT)} has all {len(shown())} files that pages show.")
    sys.exit(bool(found))


if __name__ == "__main__":
    main()
