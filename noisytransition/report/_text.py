"""Names and numbers as short text."""

from typing import Any

import numpy as np

# longest name of a class or row, and longest text of a sample, in the facts
LONGEST_NAME, LONGEST_TEXT = 200, 300


def short(text: object, most: int) -> str:
    """Text on one line of at most `most` characters, without its middle; what cannot be printed is a space."""
    line = " ".join("".join(char if char.isprintable() else " " for char in str(text)).split())
    if len(line) <= most:
        return line
    end = (most - 1) // 3
    return f"{line[: most - 1 - end]}…{line[len(line) - end :]}"


def plain(value: Any, most: int = LONGEST_NAME) -> Any:
    """Value that JSON takes: a finite number, a bool, None or short text."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and np.isfinite(value)):
        return value
    return short(value, most)


def percent(share: float) -> str:
    """A share such as "38 %" or "3.8 %"; those near 0 and 1 have a decimal, and 0 and 1 have none."""
    decimals = int(0.0005 <= min(share, 1 - share) < 0.0995)
    return f"{100 * share:.{decimals}f} %"


def number(n: float) -> str:
    """A number of rows such as "1,697"."""
    return f"{n:,.0f}"


def interval(low: float | None, high: float | None) -> str:
    """An interval such as "[0.35, 0.42]"; "" if it is not known."""
    return "" if low is None or high is None else f"[{low:.2f}, {high:.2f}]"


def percents(low: float | None, high: float | None) -> str:
    """An interval such as "35 % to 42 %"; "" if it is not known."""
    return "" if low is None or high is None else f"{percent(low)} to {percent(high)}"


def of(n: int, noun: str) -> str:
    """A number with its noun, such as "1 row" or "2 rows"; of "class", "2 classes"."""
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{number(n)} {noun if n == 1 else plural}"
