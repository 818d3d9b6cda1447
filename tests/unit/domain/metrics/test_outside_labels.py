"""The labels of a series in a store outside: what is added, renamed, made valid and left out."""

from __future__ import annotations

import re
from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics import outside_labels
from poller.domain.metrics.outside_labels import LabelNames

TARGET = PollTarget(
    id=1,
    version=1,
    name="sw1/snmp",
    device_id=1,
    device="sw1",
    address="192.0.2.1",
    site="ams",
    collector="snmp",
    interval_ms=60_000,
    timeout_ms=10_000,
    tags=("core", "edge", "role:access"),
)


def test_a_target_gives_its_facts_and_tags() -> None:
    """Device, site, target, collector and tags become labels, sorted by name."""
    assert outside_labels.target_labels(TARGET) == (
        ("collector", "snmp"),
        ("device", "sw1"),
        ("site", "ams"),
        ("tag", "core,edge"),
        ("tag_role", "access"),
        ("target", "sw1/snmp"),
    )


def test_a_mapping_renames_and_leaves_out() -> None:
    """A fact has the name of the mapping, and an empty name leaves it out."""
    names = LabelNames(device="instance", site="", target="", address="ip", tag="", tag_prefix="")
    assert outside_labels.target_labels(TARGET, names, (("job", "poller"),)) == (
        ("collector", "snmp"),
        ("instance", "sw1"),
        ("ip", "192.0.2.1"),
        ("job", "poller"),
    )


def test_an_empty_fact_is_no_label() -> None:
    """A target without a site and tags has no such labels."""
    target = replace(TARGET, site="", tags=())
    names = [name for name, _ in outside_labels.target_labels(target)]
    assert names == ["collector", "device", "target"]


def test_several_tags_of_one_key_share_its_label() -> None:
    """Values of one key are joined in order."""
    target = replace(TARGET, tags=("role:b", "role:a", ":x", "y:"))
    labels = dict(outside_labels.target_labels(target))
    assert labels["tag_role"] == "a,b"
    assert labels["tag"] == ":x,y:"


def test_a_label_of_the_series_gives_way_to_the_target() -> None:
    """A collision is renamed as Prometheus does, as often as it takes, and is named."""
    added = (("device", "sw1"), ("exported_site", "x"), ("site", "ams"))
    series = (("__name__", "n"), ("device", "mine"), ("site", "theirs"))
    assert outside_labels.joined(series, added) == (
        (
            ("device", "sw1"),
            ("exported___name__", "n"),
            ("exported_device", "mine"),
            ("exported_exported_site", "theirs"),
            ("exported_site", "x"),
            ("site", "ams"),
        ),
        ("__name__", "device", "site"),
    )


def test_names_are_made_valid_and_stay_apart() -> None:
    """Two names that become the same one are two labels, and an empty label is none."""
    labels, renamed = outside_labels.joined((("a-b", "1"), ("a.b", "2"), ("c", "")), ())
    assert labels == (("a_b", "1"), ("exported_a_b", "2"))
    assert renamed == ("a_b",)
    assert outside_labels.valid_metric_name("9 lives:x") == "_9_lives:x"
    assert outside_labels.valid_label_name("") == "_"


def test_faults_of_a_mapping_are_named() -> None:
    """A bad name and a name that is used twice are faults; the defaults have none."""
    assert LabelNames().faults() == []
    names = LabelNames(device="site", target="a-b", tag_prefix="9")
    assert names.faults((("collector", "x"),)) == [
        'device and site have the same name "site"',
        '"a-b" is no name of a label (target)',
        'collector and the fixed label collector have the same name "collector"',
        '"9" is no start of a label\'s name (tag_prefix)',
    ]


def test_a_name_that_a_tag_may_have_is_a_fault() -> None:
    """A device may get the tag role:core at any time, so that its label must be free."""
    fault = 'the fixed label tag_role: names that begin with "tag_" are those of tags'
    assert LabelNames().faults((("tag_role", "x"),)) == [fault]
    assert LabelNames(device="tag_device").faults() == [
        fault.replace("the fixed label tag_role", "device")
    ]
    assert LabelNames(tag_prefix="").faults((("tag_role", "x"),)) == []


_PAIRS = st.lists(st.tuples(st.text(max_size=8), st.text(max_size=4)), max_size=8)


@given(_PAIRS, st.dictionaries(st.from_regex(r"\A[a-z_]{1,8}\Z"), st.text(min_size=1)))
def test_no_label_is_lost_or_doubled(series: list[tuple[str, str]], added: dict[str, str]) -> None:
    """Names are valid, sorted and unique, and every text that is not empty is there."""
    own = dict(series)
    labels, _ = outside_labels.joined(own.items(), tuple(sorted(added.items())))
    names = [name for name, _ in labels]
    assert names == sorted(set(names))
    assert all(re.fullmatch(r"[a-zA-Z_][a-zA-Z0-9_]*", name) for name in names)
    texts = [text for text in [*own.values(), *added.values()] if text]
    assert sorted(text for _, text in labels) == sorted(texts)
