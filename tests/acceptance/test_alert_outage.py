"""A site goes dark and a switch dies: two pages, counted at real receivers."""

from __future__ import annotations

from pathlib import Path

import pytest

from poller import errors
from poller.cli.up import embedded_server
from tests.acceptance import alert_storm
from tests.acceptance.alert_storm import Size
from tests.conftest import missing

pytestmark = [pytest.mark.alone, pytest.mark.timeout(400)]

SMALL = Size(
    devices=80,
    far=24,
    behind=12,
    interval_s=4,
    patience_s=90,
    kills=("leader", "worker"),
    settings={"POLLER_SITE_PROBE_S": "4", "POLLER_BREAKER_FAILURES": "5"},
)


def test_two_outages_are_two_pages_and_two_recoveries(tmp_path: Path) -> None:
    """Leader and worker are killed during both; the one device that stays dead behind the switch is
    told when the switch is back.
    """
    try:
        embedded_server.find_server()
    except errors.ConfigError as error:
        missing(str(error))
    with alert_storm.storm(SMALL, tmp_path) as storm:
        storm.begins()
        storm.lasts()
        two = dict.fromkeys(storm.expected, 1)
        assert storm.told.alerts("firing") == two
        assert storm.told.alerts("resolved") == {}
        storm.ends()
        three = {**two, f"device-unreachable {storm.stuck}": 1}
        assert storm.told.alerts("firing") == three
        assert storm.told.alerts("resolved") == three
        assert storm.told.mails() == len(storm.told.mood.taken)
