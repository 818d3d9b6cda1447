"""Routes: their tables are checked, and they take alerts by severity, rule and filter."""

from __future__ import annotations

from typing import Any

import pytest

from poller import errors
from poller.domain.alerts.alert import Subject
from poller.domain.alerts.rule import Severity
from poller.domain.alerts.telling import alert_route, route_form
from poller.domain.alerts.telling.alert_route import RouteMatch
from poller.domain.inventory.filter_match import DeviceFacts
from tests.unit.domain.alerts.telling.told_alerts import HOUR, MINUTE, SECOND, alert

RECEIVERS = ("mail", "hook")
CORE = DeviceFacts("sw-1", "192.0.2.1", "fra", ("core",))


def read(**options: Any) -> alert_route.Route:
    table = {"receivers": ["mail"], **options}
    return route_form.read({"ops": table}, RECEIVERS)[0]


def test_a_table_becomes_a_route() -> None:
    """Every option of a table is in the route."""
    made = read(
        where="site:fra tag:core",
        severities=["critical"],
        rules=["uplink-*"],
        otherwise=True,
        group_by=["site"],
        group_wait="10s",
        repeat="1h",
        quiet_hours=["22:00-07:00"],
        time_zone="Europe/Amsterdam",
        quiet_passes=[],
        escalate_after="15m",
        escalate_to=["hook"],
        per_minute=3,
        tell_resolved=False,
        tell_short=True,
    )
    assert made.where.sites == ("fra",)
    assert made.severities == (Severity.CRITICAL,)
    assert (made.group_wait_ms, made.repeat_ms) == (10 * SECOND, HOUR)
    assert (made.escalate_after_ms, made.escalate_to) == (15 * MINUTE, ("hook",))
    assert made.quiet_hours.time_zone == "Europe/Amsterdam"
    assert (made.otherwise, made.tell_resolved, made.tell_short) == (True, False, True)
    assert (made.rules, made.group_by, made.per_minute) == (("uplink-*",), ("site",), 3)
    assert made.all_receivers == RECEIVERS
    assert set(route_form.OPTIONS) >= set(vars_of(made)) - {"name", "group_wait_ms", "repeat_ms"}


def vars_of(made: alert_route.Route) -> list[str]:
    """The fields of a route whose option has the same name."""
    return [name for name in made.__dataclass_fields__ if not name.endswith("_ms")]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"receivers": []}, "[route.ops] receivers: it must be set"),
        ({"receivers": "mail"}, "[route.ops] receivers: it is a list"),
        ({"receivers": ["mial"]}, '[route.ops] receivers: there is no receiver "mial"'),
        ({"recievers": []}, "[route.ops] recievers: there is no such option"),
        ({"where": "site"}, "[route.ops] where: the filter"),
        ({"where": "state:failing"}, "[route.ops] state: states change"),
        ({"where": 5}, "[route.ops] where: it is a text"),
        ({"severities": ["bad"]}, '[route.ops] severities: there is no "bad"'),
        ({"group_by": ["rack"]}, '[route.ops] group_by: there is no "rack"'),
        ({"group_wait": "1h"}, "[route.ops] group_wait: 1h is out of bounds"),
        ({"group_wait": "soon"}, '[route.ops] group_wait: "soon" is not a duration'),
        ({"repeat": "5s"}, "[route.ops] repeat: 5s is out of bounds"),
        ({"repeat": ["5s"]}, "[route.ops] repeat: it is a duration"),
        ({"quiet_hours": ["22:00-07:00"]}, "[route.ops] time_zone: quiet_hours needs it"),
        ({"time_zone": "UTC"}, "[route.ops] quiet_hours: time_zone needs it"),
        ({"escalate_after": "5m"}, "[route.ops] escalate_after: it belongs together"),
        ({"escalate_to": ["hook"]}, "[route.ops] escalate_after: it belongs together"),
        ({"per_minute": -1}, "[route.ops] per_minute: -1 is out of bounds"),
        ({"per_minute": True}, "[route.ops] per_minute: it is a whole number"),
        ({"tell_short": "yes"}, "[route.ops] tell_short: it is true or false"),
    ],
)
def test_a_wrong_table_is_refused(options: dict[str, Any], message: str) -> None:
    """The error names the table and the option."""
    with pytest.raises(errors.InvalidSetting) as raised:
        read(**options)
    assert raised.value.message.startswith(message)


def names(
    *routes: alert_route.Route, facts: DeviceFacts | None = CORE, **changes: Any
) -> list[str]:
    matches = [RouteMatch.of(each) for each in routes]
    return alert_route.routes_of(alert(**changes), facts, matches)


def test_a_route_takes_by_filter_severity_and_rule() -> None:
    """All three must fit."""
    core = read(where="tag:core", severities=["critical"], rules=["device-*"])
    assert names(core) == ["ops"]
    assert names(core, severity=Severity.WARNING) == []
    assert names(core, rule="uplink-saturated") == []
    assert names(core, facts=DeviceFacts("sw-1", site="fra")) == []


def test_an_alert_without_a_device_is_taken_by_its_site() -> None:
    """The filter of a route sees the site of a site's alert, and nothing of the platform's."""
    dark = {"facts": None, "subject": Subject(site="fra")}
    assert names(read(where="site:fra"), **dark) == ["ops"]
    assert names(read(where="site:ber"), **dark) == []
    assert names(read(), facts=None, subject=Subject(series="no_leader")) == ["ops"]


def test_the_other_routes_come_first() -> None:
    """A route with `otherwise` takes only what no other route takes."""
    tables = {
        "rest": {"receivers": ["mail"], "otherwise": True},
        "core": {"receivers": ["hook"], "where": "tag:core"},
        "all": {"receivers": ["hook"], "severities": ["critical"]},
    }
    routes = route_form.read(tables, RECEIVERS)
    assert names(*routes) == ["core", "all"]
    assert names(*routes, facts=DeviceFacts("x"), severity=Severity.INFO) == ["rest"]
