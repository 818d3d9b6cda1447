"""A site goes dark and comes back, with a real beat, worker, server and SNMP devices.

The benchmark section `outage` runs it in half a minute; these tests check its figures.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from poller import errors
from poller.cli.up import embedded_server
from tests.conftest import missing
from tests.integration.test_benchmarks import measured, values

pytestmark = pytest.mark.alone

FAR, INTERVAL_S = 25, 4
PHASES = ("before", "opening", "dark", "recovering", "after")


@pytest.fixture(scope="module")
def figures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """The figures of 60 devices at 4 s, 25 of which go dark; canaries are polled every 2 s."""
    try:
        embedded_server.find_server()
    except errors.ConfigError as error:
        missing(str(error))
    folder: Path = tmp_path_factory.mktemp("outage")
    return values(measured(folder, "outage"))


def test_devices_of_other_sites_stay_on_time(figures: dict[str, float]) -> None:
    """No healthy device times out, and 99 % start within half an interval of their slot."""
    assert figures["healthy_timeouts"] == 0
    assert max(figures[f"{phase}_late_p99_ms"] for phase in PHASES) < INTERVAL_S * 500


def test_a_dark_site_costs_the_time_outs_of_its_canaries(figures: dict[str, float]) -> None:
    """Three canaries every two seconds, with retries, instead of all devices every interval."""
    assert figures["before_timeouts"] == figures["after_timeouts"] == 0
    assert figures["opening_timeouts"] > FAR * 60 / INTERVAL_S / 4  # the outage was real
    assert 0 < figures["dark_timeouts"] < FAR * 60 / INTERVAL_S / 2
    assert figures["outage_timeouts"] < figures["blind_timeouts"]


def test_a_dark_site_is_one_event_each_way(figures: dict[str, float]) -> None:
    """There is no event for each of its devices."""
    assert (figures["site_opened"], figures["site_recovered"]) == (1, 1)
    assert figures["devices_down"] < FAR / 2


def test_all_targets_come_back_soon_and_spread_out(figures: dict[str, float]) -> None:
    """All targets are polled within a probe, two intervals and a few seconds, without a peak."""
    assert figures["first_back_s"] <= figures["all_back_s"] < 2 + 2 * INTERVAL_S + 5
    assert figures["back_peak"] <= max(3.0, 2 * figures["before_peak"])


def test_no_target_is_lost_or_doubled(figures: dict[str, float]) -> None:
    """Every target is in exactly one place of the board."""
    assert (figures["lost"], figures["doubled"]) == (0, 0)
