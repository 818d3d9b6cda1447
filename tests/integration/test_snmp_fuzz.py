"""A seeded part of `make fuzz`: mutated responses of all versions to both engines."""

from __future__ import annotations

import asyncio

import pytest

from tests import fuzz_snmp


def test_mutated_responses_end_in_our_outcomes(capfd: pytest.CaptureFixture[str]) -> None:
    """No crash, hang, leaked file or secret; the output of library panics is bounded."""
    report = asyncio.run(fuzz_snmp.fuzz(12_000, seed=7))
    panics = capfd.readouterr().err.count("panicked at")
    assert report.faults == []
    assert report.datagrams >= 12_000
    kinds = {code for code in report.codes if report.codes[code] > 3}
    assert {"failed timeout", "failed protocol_error", "partial protocol_error", "ok"} <= kinds, (
        report.codes
    )
    # Once for each that remembers nothing of the agent, and not once for each datagram.
    assert panics < report.polls / 4
