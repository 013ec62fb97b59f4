"""Write the results of `run` as a Markdown page: accuracy, error of T, differences to fine-tuning.

    python -m examples.paper.page FILE

The page has the name of FILE with the suffix .md, and is printed. The tables of accuracy and of the error of T are also
written as .csv files for the docs.
"""

import argparse
from pathlib import Path

from examples.benchmarks.shared import Results, markdown, overview, paired, read_rows, write_csv
from examples.paper.tables import METHODS, N_META, PAPER

REFERENCES = {"identity": "identity", "sampling limit": "limit"}
BASE = "fine-tuning"
# columns with equal values in a section, and in a column of its tables
SECTION, COLUMN = ("data", "scale", "network", "n_meta"), ("noise", "rate")


def newest(rows):
    """Select the rows with the last settings of each method, since a file may have rows with older settings."""
    of = {}
    for row in rows:
        of[_kind(row)] = row["settings"]
    return [row for row in rows if row["settings"] == of[_kind(row)]]


def _kind(row):
    return tuple(row[name] for name in (*SECTION, *COLUMN, "method"))


def grouped(rows, names):
    """Group rows by their values of these columns, in the order of the file."""
    groups = {}
    for row in rows:
        groups.setdefault(tuple(row[name] for name in names), []).append(row)
    return groups


def comparison(rows):
    """Return the results for one noise, with rows for the identity and the sampling limit."""
    references = [
        {"method": method, "seed": row["seed"], "transition_error": row[column]}
        for method, column in REFERENCES.items()
        for row in {row["seed"]: row for row in rows if column in row}.values()
    ]
    return Results(references + rows, [*REFERENCES, *METHODS])


def comparisons(rows):
    """Return the results of each noise by its name."""
    return {
        f"{noise} {rate:g}" if rate else noise: comparison(own) for (noise, rate), own in grouped(rows, COLUMN).items()
    }


def section(names, rows):
    """Write title and tables for a data set, scale, network and number of clean samples."""
    data, scale, network, n_meta = names
    tables = comparisons(rows)
    with_base = {name: table for name, table in tables.items() if table.values(BASE, "accuracy")}
    seeds = sorted({row["seed"] for row in rows})
    clean = "all" if n_meta is None else f"{n_meta:,}"
    parts = [
        f"## {data}, {scale}: {network}, {clean} clean samples",
        f"Mean ± standard deviation over seeds ({', '.join(map(str, seeds))}).",
        "### Test accuracy\n\n" + markdown(tables, overview(tables, "accuracy")),
        "### Error of T\n\n" + markdown(tables, overview(tables, "transition_error")),
    ]
    if with_base and len(seeds) > 1:
        text = f"### Difference of accuracy to {BASE}\n\nIn points, paired, with 95 % intervals.\n\n"
        parts.append(text + markdown(with_base, paired(with_base, BASE)))
    return [
        *parts,
        "### Seconds\n\n" + markdown(tables, overview(tables, "seconds")),
        "### Settings\n\n" + settings_table(rows),
    ]


def settings_table(rows):
    """Write a table of the settings: a line of the common settings, and a line for each method."""
    of = {row["method"]: row["settings"] for row in rows}
    first = next(iter(of.values()))
    common = {k: v for k, v in first.items() if all(own.get(k) == v for own in of.values())}
    lines = [("all", [_words(common)])]
    lines += [(m, [_words({k: v for k, v in of[m].items() if k not in common})]) for m in METHODS if m in of]
    return markdown(["settings"], lines)


def _words(settings):
    return ", ".join(f"{name}={value!r}" for name, value in settings.items())


def page(rows):
    """Write all rows as Markdown."""
    parts = [part for names, own in grouped(newest(rows), SECTION).items() for part in section(names, own)]
    kinds = {tuple(row["versions"].items()): None for row in rows}
    found = "; ".join(", ".join(f"{name} {value}" for name, value in kind) for kind in kinds)
    return "\n\n".join(["# Results", f"Produced by `examples/paper/run.py`, with {found}.", *parts]) + "\n"


def write_tables(path, rows):
    """Write the tables of each section as .csv files."""
    for (_, _, network, n_meta), own in grouped(newest(rows), SECTION).items():
        tables = comparisons(own)
        for column in ("accuracy", "transition_error"):
            name = f"{path.stem}_{network}_{n_meta}_{column}.csv".replace(" ", "_")
            lines = overview(tables, column)
            if n_meta == N_META.get(own[0]["data"]):
                lines = with_the_paper(own[0]["table"], column, tables, lines)
            write_csv(path.with_name(name), tables, lines)


def with_the_paper(table, column, tables, lines):
    """Add a second line to each method with figures in the paper."""
    found, both = PAPER.get((table, column), {}), []
    for name, own in lines:
        both.append((name, own))
        if figures := found.get(name):
            both.append((f"{name}, the paper", [f"{figures[k]:.3f}" if k in figures else "" for k in tables]))
    return both


def main(arguments=None):
    """Write the page of a file of results."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("file", type=Path)
    path = parser.parse_args(arguments).file
    if not (rows := read_rows(path)):
        raise SystemExit(f"{path} has no results; give a .jsonl file of examples.paper.run.")
    text = page(rows)
    path.with_suffix(".md").write_text(text)
    write_tables(path, rows)
    print(text)


if __name__ == "__main__":
    main()
