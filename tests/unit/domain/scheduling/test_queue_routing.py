"""Queue names, and the workers that serve a queue."""

from __future__ import annotations

import pytest

from poller import errors
from poller.domain.scheduling import queue_routing


def test_a_queue_name_is_canonical() -> None:
    """The order in which tags were given does not matter, and the name can be read back."""
    name = queue_routing.queue_name("snmp", {"zone": "dmz", "site": "ams"})
    assert (
        name
        == queue_routing.queue_name("snmp", {"site": "ams", "zone": "dmz"})
        == "poll.snmp;site=ams;zone=dmz"
    )
    assert queue_routing.parse(name) == ("snmp", {"site": "ams", "zone": "dmz"})
    assert queue_routing.parse(queue_routing.queue_name("snmp", {})) == ("snmp", {})


@pytest.mark.parametrize(
    ("requires", "tags", "served"),
    [
        ({}, {}, True),
        ({}, {"site": "ams"}, True),
        ({"site": "ams"}, {"site": "ams"}, True),
        ({"site": "ams"}, {"site": "ams", "zone": "dmz"}, True),
        ({"site": "ams", "zone": "dmz"}, {"zone": "dmz", "site": "ams"}, True),
        ({"site": "ams", "zone": "dmz"}, {"site": "ams", "zone": "dmz", "rack": "7"}, True),
        ({"site": "ams"}, {}, False),
        ({"site": "ams"}, {"site": "fra"}, False),
        ({"site": "ams"}, {"site": "AMS"}, False),
        ({"site": "ams"}, {"zone": "ams"}, False),
        ({"site": "ams", "zone": "dmz"}, {"site": "ams"}, False),
        ({"site": "ams", "zone": "dmz"}, {"site": "ams", "zone": "lan"}, False),
        ({"site": "ams", "zone": "dmz"}, {"site": "dmz", "zone": "ams"}, False),
        ({"a.b:c@d+e-f_g": "1.2.3.4:5"}, {"a.b:c@d+e-f_g": "1.2.3.4:5"}, True),
    ],
)
def test_a_worker_serves_what_it_carries_every_tag_for(
    requires: dict[str, str], tags: dict[str, str], served: bool
) -> None:
    """All required tags, with the same values; more on the worker does no harm."""
    assert (
        queue_routing.serves(queue_routing.queue_name("snmp", requires), ["snmp"], tags) is served
    )


def test_a_worker_without_the_collector_serves_nothing_of_it() -> None:
    """Whatever its tags."""
    assert not queue_routing.serves("poll.acme", ["snmp"], {})
    assert not queue_routing.serves("poll.acme;site=ams", ["snmp"], {"site": "ams"})


@pytest.mark.parametrize(
    "name",
    [
        "",
        "poll.",
        "snmp",
        "poll.snmp;",
        "poll.snmp;site",
        "poll.snmp;=ams",
        "poll.snmp;site=",
        "poll.snmp;rubbish",
        "poll.snmp;site=ams;site=fra",
        "poll.snmp;site=fra;site=ams",
        "poll.snmp;zone=dmz;site=ams",
        "poll.poll.snmp",
        "celery",
        "poll.snmp;site=ams;",
        "poll.snmp ;site=ams",
        "POLL.snmp",
        "poll.snmp\x06\x165",
    ],
)
def test_a_foreign_queue_name_has_no_worker(name: str) -> None:
    """Parsing a foreign queue name never fails, and no worker serves it."""
    assert not queue_routing.serves(name, ["snmp"], {"site": "ams", "zone": "dmz"})


def test_a_worker_carries_one_value_for_each_key() -> None:
    """The order makes no difference, and no tags are valid."""
    assert queue_routing.parse_tags(["zone=dmz", "site=ams"]) == {"zone": "dmz", "site": "ams"}
    assert queue_routing.parse_tags([]) == {}


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["zone"], ('"zone"', "no =")),
        (["=dmz"], ('"=dmz"', "key is empty")),
        (["zone="], ('"zone="', "value is empty")),
        (["zone=a;b=c"], ('"zone=a;b=c"', 'value contains ";"')),
        (["zone=a=b"], ('"zone=a=b"', 'value contains "="')),
        (["zo ne=a"], ('"zo ne=a"', "key contains a blank")),
        (["zone=a,b"], ('"zone=a,b"', 'value contains ","')),
        (["zone=z\u00fcrich"], ("z\u00fcrich", 'value contains "\u00fc"')),
        (["zone=a\nb"], ("zone=a\\nb", "value contains a blank")),
        (["zone=\x1b[2J"], ("zone=\\x1b[2J", "value contains an unprintable character")),
        (["zone=" + "x" * 65], ("zone=", "value has 65 characters, at most 64")),
        (["x" * 65 + "=a"], ("=a", "key has 65 characters")),
        (["zone=dmz", "zone=lan"], ('the key "zone" is given twice', "dmz and lan")),
        (["zone=dmz", "zone=dmz"], ('the key "zone" is given twice',)),
    ],
)
def test_a_wrong_tag_of_a_worker_is_refused_by_name(
    words: list[str], said: tuple[str, ...]
) -> None:
    """The error names the setting, the word and the fault, without control characters."""
    with pytest.raises(errors.InvalidSetting) as caught:
        queue_routing.parse_tags(words)
    text = str(caught.value)
    assert text.startswith("worker_tags: ")
    assert all(part in text for part in said)
    assert text.isprintable()
    assert caught.value.hint


def test_the_more_specific_level_wins() -> None:
    """Site, then device, then target."""
    assert queue_routing.merge_requirements(
        {"a": "site", "b": "site"}, {"b": "device"}, {"c": "target"}
    ) == {
        "a": "site",
        "b": "device",
        "c": "target",
    }
