"""A report as Markdown."""

import re
from collections.abc import Iterable, Sequence
from typing import Any

from ._text import interval, number, percent, percents, probability, short

# longest name of a class, and longest text of a row
_NAME, _TEXT = 40, 120


def to_markdown(facts: dict[str, Any], words: dict[str, list[str]]) -> str:
    """Sections with their sentences and tables."""
    data = facts["data"]
    head = [
        f"# {_safe(facts['title'])}",
        f"{_safe(data['classifier'])}, {number(data['n_rows'])} rows, {number(data['n_classes'])} classes, "
        f"{_safe(facts['created'])}",
    ]
    sections = [
        ("Summary", words["summary"], []),
        ("Share of wrong labels", words["noise"], []),
        ("Transition matrix", words["transition"], [*_matrix(facts), *_flips(facts)]),
        ("Classes", words["classes"], _classes(facts)),
        ("Calibration", words["calibration"], _calibration(facts)),
        ("Labels to check", words["label_issues"], _rows(facts)),
        ("Is one T enough?", words["one_transition_matrix"], []),
        ("What the data cannot tell", words["limits"], _limits(facts)),
        ("Settings and versions", [], _settings(facts)),
    ]
    return "\n\n".join(head + [part for section in sections for part in _section(*section)]) + "\n"


def _section(title: str, sentences: Sequence[str], table: Sequence[str]) -> Iterable[str]:
    yield f"## {title}"
    if sentences:
        yield "\n".join(f"- {_safe(sentence)}" for sentence in sentences)
    if table:
        yield "\n".join(table)


def _safe(value: object, most: int | None = None) -> str:
    """Text in which nothing is Markdown or HTML."""
    text = short(value, len(str(value)) if most is None else most).replace("&", "&amp;").replace("<", "&lt;")
    return re.sub(r"([\\`*_\[\]|#~$])", r"\\\1", text)


def _table(columns: Sequence[str], rows: Iterable[Sequence[object]], most: int = _NAME) -> list[str]:
    lines = [columns, ["---"] * len(columns), *([_safe(cell, most) for cell in row] for row in rows)]
    return [f"| {' | '.join(line)} |" for line in lines]


def _matrix(facts: dict[str, Any]) -> list[str]:
    T = facts["transition"]
    others = bool(T["n_left_out"])
    columns = ["true \\ noisy", *(_safe(name, _NAME) for name in T["classes"]), *(["others"] if others else [])]
    rows = (
        [name, *(probability(p) for p in row), *([probability(rest)] if others else [])]
        for name, row, rest in zip(T["classes"], T["matrix"], T["other_classes"], strict=True)
    )
    return [*_table(columns, rows), ""]


def _flips(facts: dict[str, Any]) -> list[str]:
    rows = (
        (f["true"], f["noisy"], probability(f["probability"]), interval(f["low"], f["high"]), number(f["n_rows"]))
        for f in facts["flips"]
    )
    return _table(["true", "labelled", "probability", "interval", "rows"], rows)


def _classes(facts: dict[str, Any]) -> list[str]:
    rows = (
        (
            of["class"],
            percent(of["noise"]),
            percents(of["low"], of["high"]),
            number(of["n_rows"]),
            number(of["n_given"]),
            "" if of["n_clean"] is None else number(of["n_clean"]),
            "; ".join(of["risks"]),
        )
        for of in facts["classes"]["listed"]
    )
    columns = ["class", "wrong labels", "interval", "rows", "rows with this label", "clean rows", "risks"]
    return _table(columns, rows, _TEXT)


def _calibration(facts: dict[str, Any]) -> list[str]:
    if facts["calibration"] is None:
        return []
    rows = (
        (
            f"{b['from']:.1f} to {b['to']:.1f}",
            number(b["n_rows"]),
            probability(b["confidence"]),
            probability(b["accuracy"]),
            interval(b["low"], b["high"]),
        )
        for b in facts["calibration"]["bins"]
    )
    return _table(["probability", "rows", "mean probability", "right", "interval"], rows)


def _rows(facts: dict[str, Any]) -> list[str]:
    rows = (
        (
            of["row"],
            of["given"],
            of["proposed"],
            f"{of['given_probability']:.3f}",
            f"{of['proposed_probability']:.3f}",
            of["sample"].get("text", "(picture)"),
        )
        for of in facts["label_issues"]["listed"]
    )
    columns = ["row", "given", "proposed", "P(given is right)", "P(proposed is right)", "sample"]
    return _table(columns, rows, _TEXT) if facts["label_issues"]["listed"] else []


def _limits(facts: dict[str, Any]) -> list[str]:
    rows = (
        (of["class"], "" if of["half_width"] is None else f"± {of['half_width']:.2f}", number(of["n_more"]))
        for of in facts["limits"]["listed"]
    )
    return (
        _table(["class", "noise rate known within", "more rows to verify"], rows) if facts["limits"]["listed"] else []
    )


def _settings(facts: dict[str, Any]) -> list[str]:
    return _table(
        ["setting", "value"], ((k, v) for group in facts["settings"].values() for k, v in group.items()), _TEXT
    )
