"""The conformance suite for collectors: one line in a test file makes a pytest class.

    LOGIN = Login(username="mon", password="secret")
    TestOlt = conformance.suite(Olt, device=olt, credential=LOGIN)

`device` is a context manager that yields a `conformance.Device`: the address and options of a
device that answers, real or simulated. Each check is a test of its own. The message of a failed
check names the fault and the remedy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import AbstractContextManager
from typing import Any

import pytest
import uvloop

from poller.collectors.api import Collector, Credential
from poller.testing.checks import (
    contract_checks,
    fault_checks,
    leak_checks,
    reading_checks,
    secret_checks,
    session_checks,
)
from poller.testing.subject import Device, Failed, Inapplicable, Subject

Check = Callable[[Subject], Awaitable[None]]

#: The checks in the order in which a new collector usually fails them.
CHECKS: tuple[Check, ...] = (
    contract_checks.contract,
    contract_checks.options_described,
    contract_checks.options_stored,
    contract_checks.unknown_option,
    reading_checks.reads_the_device,
    reading_checks.readings,
    fault_checks.deadline,
    fault_checks.cancellation,
    fault_checks.refused,
    fault_checks.reset,
    fault_checks.garbage,
    leak_checks.leaks,
    leak_checks.side_by_side,
    secret_checks.secrets,
    session_checks.sessions,
    reading_checks.discovery,
)


def suite(
    collector: Callable[[], Collector],
    device: Callable[[], AbstractContextManager[Device]],
    *,
    options: Mapping[str, Any] | None = None,
    credential: Credential | None = None,
    port: str | None = "port",
    probe: bool = False,
) -> type:
    """Return a test class for pytest. Assign it to a name that begins with `Test`.

    options: options of the collector, in addition to those of the device.
    credential: a credential that the device accepts.
    port: the name of the option that holds the device's port. The suite sets this option to direct
        the collector to devices that are silent, hang up or send garbage. None if there is none.
    probe: whether the collector reports a device that is down by readings instead of an error.
    """

    class Suite:
        @pytest.fixture(scope="class")
        @classmethod
        def subject(cls) -> Iterator[Subject]:
            with device() as answering:
                yield Subject(collector, answering, options or {}, credential, port, probe)

    name = getattr(collector, "__name__", "the collector")
    Suite.__doc__ = f"{name} keeps the collector contract."
    for check in CHECKS:
        setattr(Suite, f"test_{check.__name__}", _test(check))
    return Suite


def run(check: Check, subject: Subject) -> None:
    """Run one check on an event loop like that of a worker. Raises Failed or Inapplicable."""
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(check(subject))  # type: ignore[arg-type]


def _test(check: Check) -> Callable[[Any, Subject], None]:
    def test(self: Any, subject: Subject) -> None:
        failure = reason = ""
        try:
            run(check, subject)
        except Failed as failed:
            failure = str(failed)
        except Inapplicable as inapplicable:
            reason = str(inapplicable)
        # Outside of `except`, so that pytest shows one message and no chain of exceptions.
        if failure:
            pytest.fail(failure, pytrace=False)
        if reason:
            pytest.skip(reason)

    test.__doc__ = check.__doc__
    test.__name__ = f"test_{check.__name__}"
    return test


__all__ = ["CHECKS", "Check", "Device", "Failed", "Inapplicable", "Subject", "run", "suite"]
