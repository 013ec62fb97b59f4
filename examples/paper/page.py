"""Tables of a file of results of `run`, as Markdown: accuracy, error of T, differences to fine-tuning.

python -m examples.paper.page FILE            # written beside the file, with the ending .md, and printed

The tables of accuracy and of the error of T are also written as files .csv, which the docs show.
"""

import argparse
from pathlib import Path

from examples.benchmarks.shared import Results, markdown, overview, paired, read_rows, write_csv
from examples.paper.tables import METHODS

REFERENCES = {"identity": "identity", "sampling limit": "limit"}
BASE = "fine-tuning"
# what the rows of one section have in common, and of one column of it
SECTION, COLUMN = ("data", "scale", "network", "n_meta"), ("noise", "rate")


def newest(rows):
    """Rows with each method's last settings: a file may have older ones."""
    of = {}
    for row in rows:
        of[_kind(row)] = row["settings"]
    return [row for row in rows if row["settings"] == of[_kind(row)]]


def _kind(row):
    return tuple(row[name] for name in (*SECTION, *COLUMN, "method"))


def grouped(rows, names):
    """Rows by their values of these columns, in the order of the file."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def comparison(rows):
    """Rows of a noise, with those of the identity and the limit."""
    references = [
        {"method": method, "seed": row["seed"], "transition_error": row[column]}
        for method, column in REFERENCES.items()
        for row in {row["seed"]: row for row in rows if column in row}.values()
    ]
    return Results(references + rows, [*REFERENCES, *METHODS])


def comparisons(rows):
    """One for each noise, by its name."""
    return {
        f"{noise} {rate:g}" if rate else noise: comparison(own) for (noise, rate), own in grouped(rows, COLUMN).items()
    }


def section(names, rows):
    """Title and tables of one data set, scale, network and number of clean rows."""
    data, scale, network, n_meta = names
    tables = comparisons(rows)
    with_base = {name: table for name, table in tables.items() if table.values(BASE, "accuracy")}
    seeds = sorted({row["seed"] for row in rows})
    clean = "all" if n_meta is None else f"{n_meta:,}"
    parts = [
        f"## {data}, {scale}: {network}, {clean} clean rows",
        f"Mean ± standard deviation over seeds ({', '.join(map(str, seeds))}).",
        "### Test accuracy\n\n" + markdown(tables, overview(tables, "accuracy")),
        "### Error of T\n\n" + markdown(tables, overview(tables, "transition_error")),
    ]
    if with_base and len(seeds) > 1:
        text = f"### Accuracy less that of {BASE}\n\nIn points, paired, with 95 % intervals.\n\n"
        parts.append(text + markdown(with_base, paired(with_base, BASE)))
    return [
        *parts,
        "### Seconds\n\n" + markdown(tables, overview(tables, "seconds")),
        "### Settings\n\n" + settings_table(rows),
    ]


def settings_table(rows):
    """Settings of the methods: those that all have, and the others."""
    of = {row["method"]: row["settings"] for row in rows}
    first = next(iter(of.values()))
    common = {k: v for k, v in first.items() if all(own.get(k) == v for own in of.values())}
    lines = [("all", [_words(common)])]
    lines += [(m, [_words({k: v for k, v in of[m].items() if k not in common})]) for m in METHODS if m in of]
    return markdown(["settings"], lines)


def _words(settings):
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())


def page(rows):
    """Markdown of all rows."""
    parts = [part for names, own in grouped(newest(rows), SECTION).items() for part in section(names, own)]
    kinds = {tuple(row["versions"].items()): None for row in rows}
    found = "; ".join(", ".join(f"{name} {value}" for name, value in kind) for kind in kinds)
    return "\n\n".join(["# Results", f"By `examples/paper/run.py`, with {found}.", *parts]) + "\n"


def write_tables(path, rows):
    """Write files of the tables of each section."""
    for (_, _, network, n_meta), own in grouped(newest(rows), SECTION).items():
        tables = comparisons(own)
        for column in ("accuracy", "transition_error"):
            name = f"{path.stem}_{network}_{n_meta}_{column}.csv".replace(" ", "_")
            write_csv(path.with_name(name), tables, overview(tables, column))


def main(arguments=None):
    """Write the page of a file."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    path = parser.parse_args(arguments).file
    if not (rows := read_rows(path)):
        raise SystemExit(f"{path} has no results.")
    text = page(rows)
    path.with_suffix(".md").write_text(text)
    write_tables(path, rows)
    print(text)


if __name__ == "__main__":
    main()
