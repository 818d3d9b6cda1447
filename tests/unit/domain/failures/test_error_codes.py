"""The list of error codes is closed: neither the package nor a plugin can write another code."""

from __future__ import annotations

import ast
import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from functools import cache
from pathlib import Path
from typing import Any, ClassVar

import pytest

import poller
from poller import errors
from poller.collectors import api
from poller.collectors.poll_runner import run_poll
from poller.domain.failures import error_codes

SOURCES = Path(poller.__file__).parent
#: Position of the error code among the arguments of the classes that carry one.
CARRIERS = {"Outcome": 1, "Run": 4}


def test_every_code_has_a_row_with_a_meaning_and_a_hint_in_one_line() -> None:
    """The constants of the module are the keys of the table."""
    constants = {
        value
        for name, value in vars(error_codes).items()
        if name.isupper() and isinstance(value, str)
    }
    assert constants == set(error_codes.TABLE)
    for row in error_codes.TABLE.values():
        assert row.meaning
        assert row.hint
        assert "\n" not in row.meaning + row.hint


def test_every_device_error_has_its_own_code_of_the_list() -> None:
    """No two classes share a code."""
    kinds = [
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.DeviceError)
    ]
    codes = [kind.error_code for kind in kinds]
    assert set(codes) <= set(error_codes.TABLE)
    assert len(set(codes)) == len(codes)


@cache
def texts() -> dict[Path, str]:
    return {path: path.read_text() for path in sorted(SOURCES.rglob("*.py"))}


def nodes(*words: str) -> Iterator[tuple[Path, ast.AST]]:
    """Yield the nodes of the files that contain one of these words."""
    for path, text in texts().items():
        if any(word in text for word in words):
            for node in ast.walk(ast.parse(text)):
                yield path, node


def code_expressions() -> Iterator[tuple[str, ast.expr]]:
    """Yield every expression that an outcome or a run gets as its error code, with its place."""
    for path, node in nodes(*(f"{name}(" for name in CARRIERS)):
        if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
            continue
        if node.func.id not in CARRIERS:
            continue
        position = CARRIERS[node.func.id]
        positional = node.args[position : position + 1]
        by_keyword = [word.value for word in node.keywords if word.arg == "error_code"]
        for value in [*by_keyword, *positional]:
            yield f"{path.relative_to(SOURCES)}:{node.lineno}", value


def is_of_the_list(value: ast.expr) -> bool:
    """`error_codes.X`, `error_codes.TABLE[x].code`, `x.error_code`, or a call that returns one."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return all(map(is_of_the_list, returned_by(value.func.id)))
    if isinstance(value, ast.IfExp):
        return is_of_the_list(value.body) and is_of_the_list(value.orelse)
    if not isinstance(value, ast.Attribute):
        return False
    if value.attr == "error_code":
        return True
    if isinstance(value.value, ast.Subscript):
        return ast.unparse(value.value.value) == "error_codes.TABLE" and value.attr == "code"
    is_of_the_module = isinstance(value.value, ast.Name) and value.value.id == "error_codes"
    return is_of_the_module and getattr(error_codes, value.attr) in error_codes.TABLE


def returned_by(name: str) -> list[ast.expr]:
    """Every expression that a function of this name returns."""
    returned = [
        inner.value
        for _, node in nodes(f"def {name}(")
        if isinstance(node, ast.FunctionDef) and node.name == name
        for inner in ast.walk(node)
        if isinstance(inner, ast.Return) and inner.value is not None
    ]
    assert returned, f"no function {name} returns a value"
    return returned


def test_the_package_writes_no_other_code() -> None:
    """An outcome or a run gets its code from the list, or from an error that has one."""
    codes = list(code_expressions())
    assert len(codes) >= 4, "outcomes and runs are made elsewhere by now: look there"
    assert [
        f"{place}: {ast.unparse(value)}" for place, value in codes if not is_of_the_list(value)
    ] == []


class Strange(errors.DeviceTimeout):
    """An error of a plugin, with a code that is not on the list."""

    error_code = "made_up"


class Plugin:
    name: ClassVar[str] = "plugin"
    api_version: ClassVar[int] = api.API_VERSION
    credentials: ClassVar[tuple[type[api.Credential], ...]] = ()
    Options = api.Options

    def __init__(self, item: Any) -> None:
        self._item = item

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        if isinstance(self._item, BaseException):
            raise self._item
        yield self._item


@pytest.mark.parametrize(
    ("item", "code"),
    [
        (Strange("no"), error_codes.TIMEOUT),
        (api.PartFailed("part", Strange("no")), error_codes.TIMEOUT),
        (errors.DeviceError("something"), error_codes.DEVICE_ERROR),
        (RuntimeError("a bug"), error_codes.COLLECTOR_CRASHED),
        ("rubbish", error_codes.COLLECTOR_CRASHED),
    ],
    ids=["own code", "own code in a part", "unspecific", "bug", "rubbish"],
)
def test_a_plugin_cannot_add_a_code(item: Any, code: str) -> None:
    """A plugin's error gets the code of the nearest class of the tree."""

    async def polled() -> str:
        deadline = asyncio.get_running_loop().time() + 5
        poll = api.Poll(1, "d", "127.0.0.1", api.Options(), None, deadline, {})
        return (await run_poll(Plugin(item), poll)).error_code

    assert asyncio.run(polled()) == code
