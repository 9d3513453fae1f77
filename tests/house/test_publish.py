"""What a package index shows of the project has no link that works in the repository alone."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

from publish import with_absolute_links, with_urls

ROOT = Path(__file__).parents[2]
URL = "https://forge.example/team/secateur"
TARGET = re.compile(r"\]\(([^)\s]+)\)")


def test_links_of_the_readme_are_addresses_of_its_files() -> None:
    text = (ROOT / "README.md").read_text("utf-8")
    before, after = TARGET.findall(text), TARGET.findall(with_absolute_links(text, URL))
    assert len(before) == len(after) > 10
    for relative, absolute in zip(before, after, strict=True):
        kind, _, path = absolute.removeprefix(f"{URL}/").partition("/main/")
        assert kind in ("blob", "raw")
        assert path == relative
        assert (ROOT / path.partition("#")[0]).exists()
    assert any(address.startswith(f"{URL}/raw/main/docs/") for address in after)


def test_other_links_stay() -> None:
    text = "[there](https://elsewhere.example/x) [below](#limits) [mail](mailto:a@b.example)"
    assert with_absolute_links(text, URL) == text


def test_the_project_says_where_it_is() -> None:
    text = (ROOT / "pyproject.toml").read_text("utf-8")
    before, after = tomllib.loads(text), tomllib.loads(with_urls(text, URL))
    urls = after["project"].pop("urls")
    assert after == before
    assert {address.startswith(URL) for address in urls.values()} == {True}
