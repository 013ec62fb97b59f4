"""Format names and numbers as short text."""

from typing import Any

import numpy as np

# longest name of a class or sample, and longest text of a sample, in characters
LONGEST_NAME, LONGEST_TEXT = 80, 300


def short(text: object, most: int) -> str:
    """Shorten text to one line of at most `most` characters, without its middle and unprintable characters."""
    line = " ".join("".join(char if char.isprintable() else " " for char in str(text)).split())
    if len(line) <= most:
        return line
    end = (most - 1) // 3
    return f"{line[: most - 1 - end]}…{line[len(line) - end :]}"


def plain(value: Any, most: int = LONGEST_NAME) -> Any:
    """Convert to a JSON value: a finite number, a bool, None or short text."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int) or (isinstance(value, float) and np.isfinite(value)):
        return value
    return short(value, most)


def percent(share: float) -> str:
    """Format a share, such as "38 %", with one decimal near 0 and 1, such as "3.8 %"."""
    decimals = int(0.0005 <= min(share, 1 - share) < 0.0995)
    return f"{100 * share:.{decimals}f} %"


def number(n: float) -> str:
    """Format a count, such as "1,697"."""
    return f"{n:,.0f}"


def interval(low: float | None, high: float | None) -> str:
    """Format an interval, such as "[0.35, 0.42]"; "" if unknown."""
    return "" if low is None else f"[{low:.2f}, {high:.2f}]"


def percents(low: float | None, high: float | None) -> str:
    """Format an interval, such as "35 % to 42 %"; "" if unknown."""
    return "" if low is None or high is None else f"{percent(low)} to {percent(high)}"


def estimate(share: float, low: float | None, high: float | None) -> str:
    """Format a share with its interval if known, such as "38 % (35 % to 42 %)"."""
    return percent(share) if low is None else f"{percent(share)} ({percents(low, high)})"


def of(n: int, noun: str) -> str:
    """Format a count with its noun, such as "1 sample", "2 samples" or "2 classes"."""
    plural = noun + ("es" if noun.endswith("s") else "s")
    return f"{number(n)} {noun if n == 1 else plural}"
