"""The README of wheel and source archive: a package index shows it without the files that it links to."""

import re
from pathlib import Path

from hatchling.metadata.plugin.interface import MetadataHookInterface

# picture or link to a file of the repository
RELATIVE = re.compile(r"(!?)\[([^]]*)\]\((?!https?:)([^)]*)\)")


def with_absolute_links(readme, repository=None):
    """Return the README with links to the repository; without a repository, with the text of the links."""

    def absolute(match):
        is_picture, text, path = match.groups()
        if repository is None:
            return "" if is_picture else text
        return f"{is_picture}[{text}]({repository}/{'raw' if is_picture else 'blob'}/main/{path})"

    return RELATIVE.sub(absolute, readme)


class ReadmeHook(MetadataHookInterface):
    """Read the address of the repository from ``Repository`` in ``[project.urls]``."""

    def update(self, metadata):
        """Set the README."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        text = with_absolute_links(text, metadata.get("urls", {}).get("Repository"))
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
