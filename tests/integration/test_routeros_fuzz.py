"""A seeded share of `make fuzz`: mutated API replies, plain and TLS."""

from __future__ import annotations

import os

import pytest

if os.environ.get("CI") != "true":
    pytest.importorskip("librouteros", reason="the extra poller[routeros] is not installed")

from tests import fuzz_routeros, hostile_router, virtual_clock


@pytest.mark.alone
def test_mutated_replies_end_in_outcomes_of_ours() -> None:
    """No crash, no hang, no open file, no revealed secret; every kind of mutation was sent."""
    report = virtual_clock.run(fuzz_routeros.fuzz(3_000, seed=7))
    assert report.faults == []
    assert report.replies >= 3_000
    kinds = {change.__name__ for change in (*hostile_router.SPEECHES, *hostile_router.BYTES)} | {
        "tls"
    }
    assert kinds <= report.seen.keys()
    codes = {code for code in report.codes if report.codes[code] > 3}
    assert {"ok", "failed timeout", "failed protocol_error", "partial protocol_error"} <= codes, (
        report.codes
    )
