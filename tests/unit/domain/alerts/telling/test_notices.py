"""A notice survives its way through SQL, and reads well."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from poller.domain.alerts.alert import Subject
from poller.domain.alerts.telling import notice, notice_text
from poller.domain.alerts.telling.notice import Notice, NoticeKind
from tests.unit.domain.alerts.telling.told_alerts import NOW, alert, ended


def made(*alerts: Any, kind: NoticeKind = NoticeKind.FIRING, **changes: Any) -> Notice:
    told = tuple(notice.told_alert(each, web_url="https://p.example") for each in alerts)
    values: dict[str, Any] = {"key": "k", "route": "ops", "alerts": told, "created_ms": NOW}
    return Notice(kind=kind, **{**values, **changes})


def test_a_notice_is_the_same_after_json() -> None:
    """What SQL stores is what was told."""
    given = made(alert(1, value=3.5, labels={"ifAlias": "uplink"}), replies_to=("a", "b"))
    assert notice.unpack(json.loads(json.dumps(notice.pack(given)))) == given


def test_a_large_notice_is_cut_or_has_parts() -> None:
    """A cut notice counts what it leaves out; parts have keys of their own and miss nothing."""
    large = made(*(alert(number) for number in range(1, 8)))
    cut = large.cut(3)
    assert (len(cut.alerts), cut.more) == (3, 4)
    parts = list(large.pages(3))
    assert [part.key for part in parts] == ["k", "k.1", "k.2"]
    assert [each.id for part in parts for each in part.alerts] == [*range(1, 8)]


def test_the_subject_says_what_is_wrong() -> None:
    """One alert is named, several are counted with what they have in common."""
    one = made(alert())
    assert notice_text.subject(one) == "[critical] sw-1: no target responds"
    over = made(ended(), kind=NoticeKind.RESOLVED)
    assert notice_text.subject(over) == "[resolved] sw-1: no target responds"
    group = {"site": "fra", "rule": "device-unreachable", "severity": "critical"}
    many = made(alert(1), alert(2), group=group)
    assert notice_text.subject(many) == "[critical] 2 alerts: fra, device-unreachable"
    assert notice_text.subject(made(alert(1), alert(2))) == "[critical] 2 alerts"
    summary = made(alert(1), ended(2), kind=NoticeKind.SUMMARY)
    assert notice_text.subject(summary) == "[summary] 1 firing, 1 resolved"
    waiting = made(alert(), kind=NoticeKind.ESCALATION)
    assert notice_text.subject(waiting).startswith("[critical, not acknowledged]")
    assert notice_text.subject(made(kind=NoticeKind.TEST)).startswith("[test]")


def test_the_body_tells_place_time_and_link() -> None:
    """A reader learns since when, what it stands for, and where to look."""
    told = made(alert(1, flaps=3))
    folded = replace(told.alerts[0], folded=1999)
    body = notice_text.body(replace(told, alerts=(folded,), more=4))
    for part in ("site fra", "since 2027-01-15", "stands for 1999 more", "3 times", "4 more"):
        assert part in body
    assert "https://p.example/alerts/1" in body
    assert "over at" in notice_text.body(made(ended(), kind=NoticeKind.RESOLVED))


def test_alerts_without_a_device_are_named() -> None:
    """A site and the platform are subjects, too."""
    assert made(alert(subject=Subject(site="fra"))).alerts[0].subject == "site fra"
    assert made(alert(subject=Subject(series="no_leader"))).alerts[0].subject == "poller no_leader"


@pytest.mark.parametrize(
    ("subject", "text", "headline"),
    [
        (Subject(device="sw-1"), "sw-1 is unreachable", "sw-1 is unreachable"),
        (Subject(device="sw-1"), "sw-1: a processor is at 95 %", "sw-1: a processor is at 95 %"),
        (Subject(device="sw-1", series="eth0"), "sw-1 eth0 is down", "sw-1 eth0 is down"),
        (Subject(site="fra"), "site fra is dark", "site fra is dark"),
        (Subject(device="sw-1"), "sw-10 is its neighbour", "sw-1: sw-10 is its neighbour"),
        (Subject(device="sw-1"), "the link is full", "sw-1: the link is full"),
        (Subject(device="sw-1"), "", "sw-1: device-unreachable"),
    ],
)
def test_a_headline_names_its_subject_once(subject: Subject, text: str, headline: str) -> None:
    """A text that begins with the device or the site needs no name before it."""
    given = notice.told_alert(alert(subject=subject, text=text))
    assert notice_text.headline(given) == headline
