"""The Lua scripts as files: names, head comments and the prelude."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

import poller.state
from poller.state.board import lua_scripts

STATE = Path(poller.state.__file__).parent
SCRIPTS = {path.stem for path in (STATE / "board" / "lua").glob("*.lua")} - {"prelude"}


def test_every_script_is_run_by_its_name() -> None:
    """No script is left over, and none is missing."""
    sources = [path.read_text() for path in STATE.rglob("*.py")]
    run = re.compile(r'\.run(?:_as_leader)?\("(\w+)"')
    assert {name for source in sources for name in run.findall(source)} == SCRIPTS


@pytest.mark.parametrize("name", sorted(SCRIPTS))
def test_every_script_documents_its_keys_and_reply(name: str) -> None:
    """The head comment starts with the name of the script."""
    text = (STATE / "board" / "lua" / f"{name}.lua").read_text()
    assert text.startswith(f"-- {name}: ")
    assert "\n-- KEYS[1] prefix" in text
    assert "\n-- Returns " in text


def test_the_prelude_is_the_beginning_of_every_script() -> None:
    """The record formats have one owner."""
    prelude = (STATE / "board" / "lua" / "prelude.lua").read_text()
    for name in SCRIPTS:
        text = lua_scripts.source(name)
        assert text.startswith(prelude)
        assert "'^%d+|" not in text.removeprefix(prelude)
