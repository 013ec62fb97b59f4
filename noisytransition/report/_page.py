"""Report as a self-contained HTML page."""

from collections.abc import Iterator
from functools import cache
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from . import _text

_MOST_NUMBERS = 14  # largest number of classes with numbers in the heat map
_BRIEF = 3  # longest class name that is not rotated above its column
_DARK = 0.75  # opacity of a cell above which its text is light
_SIDE = 200.0  # side of the reliability diagram in SVG units
_NAME = 40  # longest class name in a table
_HEADING = 16  # longest class name beside the heat map


def to_html(facts: dict[str, Any], words: dict[str, list[str]]) -> str:
    """Render facts and sentences as a page; all text is escaped."""
    return (
        _environment()
        .get_template("page.html")
        .render(facts=facts, words=words, heat=_heat(facts), diagram=_diagram(facts["calibration"]))
    )


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("noisytransition.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "number": _text.number,
        "percent": _text.percent,
        "decimals": "{:.2f}".format,
        "unbroken": lambda sentence: sentence.replace(" %", "\N{NO-BREAK SPACE}%"),
        "brief": lambda value: _text.short(value, _HEADING),
        "name": lambda value: _text.short(value, _NAME),
    }
    environment.globals |= {"interval": _text.interval, "percents": _text.percents}
    return environment


def _heat(facts: dict[str, Any]) -> dict[str, Any]:
    """Opacity, number and text of each cell of the heat map; the opacity of flips is relative to the largest."""
    T = facts["transition"]
    largest = max(0.01, *(p for i, row in enumerate(T["matrix"]) for j, p in enumerate(row) if i != j))
    return {
        "numbers": len(T["classes"]) <= _MOST_NUMBERS,
        "brief": not T["n_left_out"] and max(len(str(name)) for name in T["classes"]) <= _BRIEF,
        "largest": largest,
        "rows": [(name, list(_cells(T, i, largest))) for i, name in enumerate(T["classes"])],
    }


def _cells(T: dict[str, Any], i: int, largest: float) -> Iterator[dict[str, Any]]:
    names = [_text.short(name, _NAME) for name in T["classes"]]
    for j, p in enumerate(T["matrix"][i]):
        bounds = "" if T["low"] is None else f" {_text.interval(T['low'][i][j], T['high'][i][j])}"
        opacity, kind = (p, "kept") if i == j else (p / largest, "")
        yield _cell(p, opacity, kind, f"{names[i]} → {names[j]}: {p:.3f}{bounds}")
    if T["n_left_out"]:
        p = T["other_classes"][i]
        yield _cell(p, p, "rest", f"{names[i]} → others: {p:.3f}")


def _cell(p: float, opacity: float, kind: str, words: str) -> dict[str, Any]:
    number = f"{p:.2f}".removeprefix("0") if p < 0.995 else "1"
    kinds = f"{kind} dark" if opacity > _DARK else kind
    return {"opacity": round(opacity, 2), "number": number if p >= 0.005 else "", "words": words, "kind": kinds.strip()}


def _diagram(calibration: dict[str, Any] | None) -> list[dict[str, float | str]]:
    """Points of the reliability diagram, in a square of `_SIDE` with y downwards."""
    if calibration is None:
        return []
    most = max(b["n_rows"] for b in calibration["bins"])
    return [
        {
            "x": round(_SIDE * b["confidence"], 1),
            "y": round(_SIDE * (1 - b["accuracy"]), 1),
            "top": round(_SIDE * (1 - b["high"]), 1),
            "bottom": round(_SIDE * (1 - b["low"]), 1),
            "radius": round(2.5 + 4.5 * (b["n_rows"] / most) ** 0.5, 1),
            "words": f"probability {b['confidence']:.2f}, accuracy {b['accuracy']:.2f} "
            f"{_text.interval(b['low'], b['high'])}, {_text.of(b['n_rows'], 'sample')}",
        }
        for b in calibration["bins"]
    ]
