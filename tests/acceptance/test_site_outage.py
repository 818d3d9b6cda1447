"""A site goes dark and comes back, with a real beat, worker, server and SNMP: few notice, and nobody is lost.

The benchmark section `outage` does all of it at a size that takes half a minute; here is what its figures must say.
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
def found(tmp_path_factory: pytest.TempPathFactory) -> dict[str, float]:
    """The figures of 60 devices at 4 s, 25 of which go dark; canaries ask every 2 s."""
    try:
        embedded_server.find_server()
    except errors.ConfigError as error:
        missing(str(error))
    folder: Path = tmp_path_factory.mktemp("outage")
    return values(measured(folder, "outage"))


def test_devices_of_other_sites_stay_on_time(found: dict[str, float]) -> None:
    """None of them times out, and hardly one waits much longer than the tick it waits for anyway."""
    assert found["healthy_timeouts"] == 0
    assert max(found[f"{phase}_late_p99_ms"] for phase in PHASES) < INTERVAL_S * 500


def test_a_dark_site_costs_the_time_outs_of_its_canaries(found: dict[str, float]) -> None:
    """Three every two seconds, and their retries, instead of everybody every interval."""
    assert found["before_timeouts"] == found["after_timeouts"] == 0
    assert found["opening_timeouts"] > FAR * 60 / INTERVAL_S / 4  # it was dark indeed
    assert 0 < found["dark_timeouts"] < FAR * 60 / INTERVAL_S / 2
    assert found["outage_timeouts"] < found["blind_timeouts"]


def test_a_dark_site_is_one_event_each_way(found: dict[str, float]) -> None:
    """And not one for each of its devices."""
    assert (found["site_opened"], found["site_recovered"]) == (1, 1)
    assert found["devices_down"] < FAR / 2


def test_everybody_comes_back_soon_and_spread_out(found: dict[str, float]) -> None:
    """Within a round of the canaries, an interval and a moment to notice; never many more at once than usual."""
    assert found["first_back_s"] <= found["all_back_s"] < 2 + 2 * INTERVAL_S + 5
    assert found["back_peak"] <= max(3.0, 2 * found["before_peak"])


def test_nobody_is_lost_or_doubled_on_the_way(found: dict[str, float]) -> None:
    """Every target is in exactly one place of the board."""
    assert (found["lost"], found["doubled"]) == (0, 0)
