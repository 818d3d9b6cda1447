"""The codes of runs are a closed list: nothing in the package, and no plugin, can write another one."""

from __future__ import annotations

import ast
import asyncio
import inspect
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest

import poller
from poller import errors
from poller.collectors import api
from poller.collectors.poll_runner import run_poll
from poller.domain.failures import error_codes

SOURCES = Path(poller.__file__).parent
#: Where an error code stands among the positional arguments of what carries one.
CARRIERS = {"Outcome": 1, "Run": 4}


def test_every_code_is_explained_in_one_line() -> None:
    """To an operator: what it means, and what to do."""
    constants = {
        value
        for name, value in vars(error_codes).items()
        if name.isupper() and isinstance(value, str)
    }
    assert constants == set(error_codes.TABLE)
    for each in error_codes.TABLE.values():
        assert each.meaning
        assert each.hint
        assert "\n" not in each.meaning + each.hint


def test_every_error_of_a_device_has_a_code_of_the_list() -> None:
    """And no two the same."""
    kinds = [
        kind
        for _, kind in inspect.getmembers(errors, inspect.isclass)
        if issubclass(kind, errors.DeviceError)
    ]
    codes = [kind.error_code for kind in kinds]
    assert set(codes) <= set(error_codes.TABLE)
    assert len(set(codes)) == len(codes)


def given_codes() -> Iterator[tuple[str, ast.expr]]:
    """Every expression that is given to an outcome or a run as its error code."""
    for path in sorted(SOURCES.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text())):
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in CARRIERS
            ):
                named = [word.value for word in node.keywords if word.arg == "error_code"]
                place = CARRIERS[node.func.id]
                for value in [*named, *node.args[place : place + 1]]:
                    yield f"{path.relative_to(SOURCES)}:{node.lineno}", value


def is_of_the_list(value: ast.expr) -> bool:
    """`error_codes.X`, somebody's `.error_code`, or a function that returns nothing else."""
    if isinstance(value, ast.Call) and isinstance(value.func, ast.Name):
        return all(map(is_of_the_list, returned_by(value.func.id)))
    if isinstance(value, ast.IfExp):
        return is_of_the_list(value.body) and is_of_the_list(value.orelse)
    if not isinstance(value, ast.Attribute):
        return False
    of_the_module = isinstance(value.value, ast.Name) and value.value.id == "error_codes"
    return value.attr == "error_code" or (
        of_the_module and getattr(error_codes, value.attr) in error_codes.TABLE
    )


def returned_by(name: str) -> list[ast.expr]:
    found = [
        inner.value
        for path in SOURCES.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef) and node.name == name
        for inner in ast.walk(node)
        if isinstance(inner, ast.Return) and inner.value is not None
    ]
    assert found, f"nobody knows what {name} returns"
    return found


def test_nothing_else_is_written_by_the_package() -> None:
    """Whoever makes an outcome or a run takes its code from the list, or from an error that has one."""
    codes = list(given_codes())
    assert len(codes) >= 4, "outcomes and runs are made elsewhere by now: look there"
    assert [
        f"{place}: {ast.unparse(value)}" for place, value in codes if not is_of_the_list(value)
    ] == []


class Strange(errors.DeviceTimeout):
    """A plugin's own error, with a code of its own."""

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
def test_a_plugin_cannot_add_one(item: Any, code: str) -> None:
    """Its errors come under the nearest of ours."""

    async def polled() -> str:
        deadline = asyncio.get_running_loop().time() + 5
        poll = api.Poll(1, "d", "127.0.0.1", api.Options(), None, deadline, {})
        return (await run_poll(Plugin(item), poll)).error_code

    assert asyncio.run(polled()) == code
