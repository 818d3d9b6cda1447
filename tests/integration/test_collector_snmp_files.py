"""Polls with module files: edits count at the next poll; logins and filters apply."""

from __future__ import annotations

import asyncio
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from poller import errors
from poller.collectors import registry
from poller.collectors.credentials import Community, Credential
from poller.collectors.poll_runner import PollReport
from poller.collectors.snmp import SnmpCollector
from poller.domain.failures.outcome import Result
from tests.integration import exporters
from tests.integration.exporters import WALKS
from tests.unit.collectors.polls import by_series, polled

PUBLIC = Community.from_text("public")
BASE = "1.3.6.1.4.1.32473"


@pytest.fixture(scope="module")
def port(tmp_path_factory: pytest.TempPathFactory) -> Iterator[int]:
    with exporters.snmpd(tmp_path_factory.mktemp("walk"), WALKS / "everything.snmprec") as agent:
        yield agent


def polls(
    port: int, *steps: Any, credential: Credential | None = PUBLIC, **options: Any
) -> list[PollReport]:
    """Poll one target once per step; each step is called before its poll."""
    collector, memory = SnmpCollector(), dict[str, Any]()

    async def run() -> list[PollReport]:
        found = []
        try:
            for step in steps or (lambda: None,):
                step()
                found.append(
                    await polled(collector, "127.0.0.1", credential, memory, port=port, **options)
                )
            return found
        finally:
            await collector.close()

    return asyncio.run(run())


def module(name: str, column: str, more: str = "") -> str:
    return (
        f"mine:\n  walk: [{BASE}.{column}]\n{more}  metrics:\n"
        f"    - {{name: {name}, oid: {BASE}.{column}, type: gauge,"
        " indexes: [{labelname: n, type: gauge}]}\n"
    )


def test_an_edit_counts_at_the_next_poll(port: int, tmp_path: Path) -> None:
    """A broken or missing file fails the poll and is named; a repaired file is used again."""
    file = tmp_path / "mine.yml"
    first, second, broken, gone, repaired = polls(
        port,
        lambda: file.write_text(module("before", "6.1")),
        lambda: file.write_text(module("after", "6.1")),
        lambda: file.write_text("mine: {wlak: []}"),
        file.unlink,
        lambda: file.write_text(module("repaired", "6.1")),
        config=str(file),
        modules="mine",
    )
    for drained, name in ((first, "before"), (second, "after"), (repaired, "repaired")):
        assert {found for found, _ in by_series(drained.outcome)} == {name}
    for drained in (broken, gone):
        assert (drained.outcome.result, drained.outcome.error_code) == (
            Result.FAILED,
            "options_invalid",
        )
    assert f'{file}: module mine: unknown key "wlak"' in broken.outcome.message
    assert f"module file {file} cannot be read" in gone.outcome.message


def test_a_login_of_the_file(port: int, tmp_path: Path) -> None:
    """A target without a credential uses the login; a target with a credential does not."""
    file = tmp_path / "mine.yml"
    logins = "auths: {good: {}, bad: {community: wrong-one}}"
    file.write_text(f"{logins}\nmodules:\n{textwrap.indent(module('m', '6.1'), '  ')}")
    options = {"config": str(file), "modules": "mine", "timeout": 0.3, "retries": 0}
    (without,) = polls(port, credential=None, auth="good", **options)
    (with_own,) = polls(port, credential=PUBLIC, auth="bad", **options)
    (wrong,) = polls(port, credential=None, auth="bad", **options)
    (none,) = polls(port, credential=None, auth="nobody", **options)
    assert without.outcome.result is with_own.outcome.result is Result.OK
    assert wrong.outcome.error_code == "timeout"
    assert "wrong-one" not in repr(wrong)
    assert none.outcome.error_code == "options_invalid"


def test_filters_select_the_rows_that_match(port: int, tmp_path: Path) -> None:
    """Rows 1 and 4 have a name with an o; the column of names gives no samples."""
    file = tmp_path / "mine.yml"
    more = f"  filters: [{{oid: {BASE}.6.2, targets: [{BASE}.6.1], values: [o]}}]\n"
    file.write_text(module("m", "6.1", more))
    first, again = polls(port, lambda: None, lambda: None, config=str(file), modules="mine")
    assert by_series(first.outcome) == {("m", (("n", "1"),)): 10, ("m", (("n", "4"),)): 40}
    assert by_series(again.outcome) == by_series(first.outcome)


def test_a_filter_on_an_empty_column_selects_no_row(port: int, tmp_path: Path) -> None:
    """A column that was read and is empty matches no row."""
    file = tmp_path / "mine.yml"
    file.write_text(
        module("m", "6.1", f"  filters: [{{oid: {BASE}.99, targets: [{BASE}.6.1], values: [o]}}]\n")
    )
    (found,) = polls(port, config=str(file), modules="mine")
    assert found.outcome.error_code == "unsupported"


def test_the_options_of_a_target_are_checked_against_the_files(tmp_path: Path) -> None:
    """The check runs when a target is saved; a worker may get the file later."""
    file = tmp_path / "mine.yml"
    file.write_text(module("m", "6.1"))
    collectors = registry.load()
    collectors.checked_options(
        "snmp", {"config": str(file), "modules": "mine,system", "auth": "mine"}
    )
    for wrong, message in (
        ({"modules": "mien"}, 'collector snmp: unknown module "mien"; did you mean mine?'),
        ({"modules": "mine", "auth": "yours"}, 'collector snmp: unknown auth "yours"'),
        ({"modules": "mine", "config": str(tmp_path / "none.yml")}, "none.yml cannot be read"),
    ):
        with pytest.raises(errors.InvalidInput) as raised:
            collectors.checked_options("snmp", {"config": str(file), **wrong})
        assert message in str(raised.value)
    collectors.options("snmp", {"config": "/nowhere/snmp.yml", "modules": "anything"})
