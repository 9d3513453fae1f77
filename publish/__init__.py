"""The package as an index shows it: README with links that work outside of the repository, and where the project is."""

from __future__ import annotations

import re

_LINK = re.compile(r"(?P<image>!?)\[(?P<text>[^\]]*)\]\((?P<target>[^)\s]+)\)")
_ELSEWHERE = re.compile(r"[a-z][a-z+.-]*:|#")  # an address with its scheme, or a place in the same page


def with_absolute_links(markdown: str, url: str) -> str:
    """Return a page whose links to files are addresses in the repository at `url`, as GitHub and GitLab form them."""

    def absolute(link: re.Match[str]) -> str:
        target = link["target"]
        if not _ELSEWHERE.match(target):
            target = f"{url}/{'raw' if link['image'] else 'blob'}/main/{target}"
        return f"{link['image']}[{link['text']}]({target})"

    return _LINK.sub(absolute, markdown)


def with_urls(project: str, url: str) -> str:
    """Return the text of pyproject.toml with the project's addresses."""
    return f"""{project}
[project.urls]
Homepage = "{url}"
Documentation = "{url}/blob/main/docs/start.md"
Changelog = "{url}/blob/main/CHANGELOG.md"
Issues = "{url}/issues"
"""
