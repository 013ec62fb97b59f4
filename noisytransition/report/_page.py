"""Report as a self-contained HTML page."""

from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined

from . import _text


def to_html(facts: dict[str, Any], words: dict[str, list[str]]) -> str:
    """Render facts and sentences as a page; all text is escaped."""
    environment = Environment(
        loader=PackageLoader("noisytransition.report", "page"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {"number": _text.number, "percent": _text.percent, "decimals": "{:.2f}".format}
    environment.globals |= {"interval": _text.interval, "percents": _text.percents}
    return environment.get_template("page.html").render(facts=facts, words=words)
