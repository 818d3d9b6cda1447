"""Module files are read once, read again after an edit, and never stop a worker."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from poller import errors
from poller.collectors.snmp.modules import module_catalog, module_files, module_parser
from poller.collectors.snmp.modules.module_files import FileCache

ONE = "one: {walk: [1.3.6.1.2.1.1], metrics: [{name: m, oid: 1.3.6.1.2.1.1, type: gauge}]}"


def write(path: Path, text: str) -> str:
    path.write_text(text)
    return str(path)


def test_a_file_is_read_once_for_all_targets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A target that names a second file reuses the first one, too."""
    reads, read = [], module_parser.read
    monkeypatch.setattr(
        module_parser, "read", lambda text, source: reads.append(source) or read(text, source)
    )
    one, two = write(tmp_path / "one.yml", ONE), write(tmp_path / "two.yml", "two: {walk: [1.4]}")
    cache = FileCache()
    library = cache.library((one,))
    assert all(cache.library((one,)) is library for _ in range(1000))
    assert cache.library((one, two)).names() == {"one", "two"}
    assert reads == [one, two]


def test_an_edited_file_is_read_again(tmp_path: Path) -> None:
    """The next selection uses the edited file and new module sets."""
    path = write(tmp_path / "one.yml", ONE)
    before = module_catalog.select(("one",), (path,))
    assert module_catalog.select(("one",), (path,)) is before
    write(tmp_path / "one.yml", ONE.replace("name: m", "name: longer"))
    assert module_catalog.select_cached(("one",), (path,)) is None
    assert module_catalog.select(("one",), (path,)).modules[0].metrics[0].name == "longer"


def test_a_broken_edit_is_an_error_until_it_is_repaired(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the file, and the broken file is parsed once for all targets."""
    path = write(tmp_path / "one.yml", ONE)
    cache = FileCache()
    cache.library((path,))
    write(tmp_path / "one.yml", "one: {walk: [")
    for _ in range(3):
        with pytest.raises(errors.ConfigError, match=r"one\.yml is not valid YAML"):
            cache.library((path,))
        monkeypatch.setattr(module_parser, "read", lambda *_: pytest.fail("read again"))
    monkeypatch.undo()
    write(tmp_path / "one.yml", ONE)
    assert cache.library((path,)).names() == {"one"}


def test_a_removed_file_is_not_cached(tmp_path: Path) -> None:
    """A file that is gone or never existed is not cached, and a selection raises ConfigError."""
    path = write(tmp_path / "one.yml", ONE)
    module_catalog.select(("one",), (path,))
    os.unlink(path)
    for config in ((path,), (str(tmp_path / "*.yml"),), (str(tmp_path / "never.yml"),)):
        assert module_catalog.select_cached(("one",), config) is None
        with pytest.raises(errors.ConfigError):
            module_catalog.select(("one",), config)


def test_later_files_win(tmp_path: Path) -> None:
    """Files of both formats can be mixed, and a pattern sorts its files by name."""
    write(tmp_path / "a.yml", "both: {walk: [1.1], auth: {community: a}}\nfirst: {walk: [1.1]}")
    write(tmp_path / "b.yml", "auths: {both: {community: b}}\nmodules: {both: {walk: [1.2]}}")
    library = module_files.library((str(tmp_path / "*.yml"),))
    assert library.names() == {"both", "first"}
    assert library.module("both").walk == ("1.2",)
    assert library.auth("both").credential.secrets() == ["b"]
    assert module_files.library((str(tmp_path / "b.yml"), str(tmp_path / "a.yml"))).module(
        "both"
    ).walk == ("1.1",)


def test_modules_of_files_win_over_built_in_ones(tmp_path: Path) -> None:
    """A file replaces a built-in module of the same name; other built-in modules stay."""
    path = write(tmp_path / "one.yml", "system: {walk: [1.7]}")
    module_set = module_catalog.select(("system", "if_mib"), (path,))
    assert module_set.modules[0].walk == ("1.7",)
    assert module_set.modules[1] is module_catalog.built_in()["if_mib"]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda path: None, "cannot be read (no such file or directory)"),
        (lambda path: path.mkdir(), "is not a file"),
        (lambda path: os.mkfifo(path), "is not a file"),
        (lambda path: path.write_bytes(b"a: \xff\xfe"), "is not UTF-8 text"),
        (lambda path: path.symlink_to(path), "cannot be read"),
        (lambda path: path.write_bytes(b"a: {walk: [1.3]}\0"), "is not valid YAML"),
    ],
)
def test_an_unusable_file_is_refused(tmp_path: Path, make: object, message: str) -> None:
    """The error names the file and the reason."""
    path = tmp_path / "x.yml"
    make(path)  # type: ignore[operator]
    with pytest.raises(errors.ConfigError) as raised:
        module_files.library((str(path),))
    assert message in str(raised.value)
    assert str(path) in str(raised.value)


def test_a_pattern_without_files_is_refused() -> None:
    """The error names the pattern."""
    with pytest.raises(errors.ConfigError, match=r"no module file matches /nowhere/\*\.yml"):
        module_files.library(("/nowhere/*.yml",))


def test_a_huge_file_is_not_read(tmp_path: Path) -> None:
    """A file beyond the limit is refused before it is parsed."""
    path = tmp_path / "x.yml"
    with path.open("wb") as file:
        file.truncate(10**9)
    with pytest.raises(errors.ConfigError, match="more than 20,000,000 bytes"):
        module_files.library((str(path),))


def test_an_unknown_login_is_refused_with_the_known_names(tmp_path: Path) -> None:
    """The error lists names and no secret."""
    path = write(tmp_path / "x.yml", "auths: {public_v2: {community: hidden-word}}\nmodules: {}")
    with pytest.raises(
        errors.ConfigError, match='unknown auth "public_v3"; did you mean public_v2'
    ) as raised:
        module_catalog.auth("public_v3", (path,))
    assert "hidden-word" not in str(raised.value)
