"""Messages of polls on a bus, and the subjects they go to."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from poller.domain.metrics.reading import Reading, ReadingSet
from poller.sinks.api import Sample
from poller.sinks.bus import poll_messages
from poller.sinks.bus.poll_messages import MessageMaker
from poller.testing.sink_conformance import TARGET, samples

PLENTY = 1_000_000


def test_a_message_has_the_facts_of_the_target_and_all_readings() -> None:
    """A reader needs no database: device, site, tags and address are in every message."""
    (sample,) = samples(number=1)
    sample = replace(sample, target=replace(TARGET, tags=("core", "role:edge")))
    ((message,), left_out) = MessageMaker().messages(sample, PLENTY)
    body = json.loads(message.payload)
    assert message.id == body["id"] == f"1-{sample.at_ms}"
    assert left_out == 0
    facts = ("target", "device", "address", "site", "tags", "collector", "at_ms")
    assert [body[fact] for fact in facts] == [
        1, "olt-1", "192.0.2.3", "ams", ["core", "role:edge"], "olt", sample.at_ms,
    ]  # fmt: skip
    assert body["data"][0] == ["olt_temperature", {"slot": "1"}, "gauge", 21.5]
    assert body["data"][3] == ["olt_unknown", {}, "gauge", None]


def test_a_repeated_poll_has_the_same_messages() -> None:
    """A bus that knows ids can tell a repetition."""
    (sample,) = samples(number=1)
    assert MessageMaker().messages(sample, PLENTY) == MessageMaker().messages(sample, PLENTY)


def test_a_large_poll_is_several_messages() -> None:
    """Every part fits, has its own id, and says how many parts there are."""
    readings = [Reading("m", float(port), {"port": f"é{port}"}) for port in range(200)]
    sample = Sample(TARGET, 7, ReadingSet.of(readings))
    messages, left_out = MessageMaker().messages(sample, 1000)
    bodies = [json.loads(message.payload) for message in messages]
    assert all(len(message.payload) <= 1000 for message in messages)
    parts = len(messages)
    assert [message.id for message in messages[:2]] == [f"1-7-1/{parts}", f"1-7-2/{parts}"]
    assert [body["part"] for body in bodies] == list(range(1, len(bodies) + 1))
    assert {body["parts"] for body in bodies} == {len(bodies)}
    assert [entry[3] for body in bodies for entry in body["data"]] == list(range(200))
    assert left_out == 0


def test_a_reading_that_fits_no_message_is_left_out() -> None:
    """One endless label does not keep the other readings of its poll back."""
    readings = ReadingSet.of([Reading("long", 1.0, {"text": "x" * 5000}), Reading("short", 2.0)])
    messages, left_out = MessageMaker().messages(Sample(TARGET, 7, readings), 1000)
    assert [entry[0] for entry in json.loads(messages[0].payload)["data"]] == ["short"]
    assert left_out == 1


def test_facts_in_a_subject_are_made_safe() -> None:
    """Dots, blanks and wildcards of names would change the subject."""
    target = replace(TARGET, device="r1.lab *", site="", name="r1/snmp>")
    subject = poll_messages.place("p.{site}.{device}.{target}.{id}", target)
    assert subject == "p._.r1_lab__.r1_snmp_.1"
    assert poll_messages.wildcard("p.{site}.x-{device}") == "p.*.*"


@pytest.mark.parametrize(
    ("template", "text"),
    [
        ("p.{host}", "{host}.* is none of {site}"),
        ("p.{site!r}", "none of"),
        ("p.{site.name}", "none of"),
        ("p.*", "characters"),
        ("p q", "characters"),
        ("p..{site}", "dot"),
    ],
)
def test_templates_that_make_no_subject_are_refused(template: str, text: str) -> None:
    """A mistake is said at start."""
    with pytest.raises(ValueError, match=text):
        poll_messages.check_template(template)
