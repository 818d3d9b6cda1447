"""A target is renamed when a store that is told of ends has other labels for it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from poller.domain.inventory.poll_target import PollTarget
from poller.sinks.api import Stores
from poller.sinks.made_sink import MadeSink
from poller.sinks.remote_write import RemoteWriteSink
from poller.sinks.remote_write.options import RemoteWriteOptions
from poller.workers.ends.target_labels import TargetLabels

TARGET = PollTarget(
    1, 1, "fast", 1, "sw1", "192.0.2.1", "ams", "snmp", 60_000, 5_000, tags=("a", "b")
)
SAME = replace(TARGET, version=2, interval_ms=5, options={"x": 1}, tags=("b", "a"))


class Taker:
    """A sink that takes ends, and says nothing of labels."""

    takes_ends = True


def labels(sink: Any) -> TargetLabels:
    return TargetLabels([MadeSink("one", "kind", sink)])


def test_any_fact_counts_for_a_sink_that_states_no_labels() -> None:
    """The order of tags, the interval and the options are none of them."""
    plain = labels(Taker())
    assert not plain.differ(TARGET, SAME)
    for fact in ("name", "device", "address", "site", "collector"):
        assert plain.differ(TARGET, replace(TARGET, **{fact: "new"}))
    assert plain.differ(TARGET, replace(TARGET, tags=("a",)))


@pytest.mark.parametrize(
    ("options", "fact", "differs"),
    [
        ({}, "device", True),
        ({}, "address", False),
        ({"label_names": {"address": "instance"}}, "address", True),
        ({"label_names": {"site": ""}}, "site", False),
        ({"drop_labels": ["site"]}, "site", False),
        ({"drop_labels": ["site"]}, "device", True),
        ({"drop_labels": ["tag.*"]}, "tags", False),
        # The label is not sent, and decides whether the series are.
        ({"drop_labels": ["site"], "exclude_labels": {"site": "new"}}, "site", True),
        ({"drop_labels": ["site"], "exclude_labels": {"site": "lab"}}, "site", False),
        ({"drop_labels": ["site"], "include_labels": {"site": "ams|fra"}}, "site", True),
    ],
)
def test_remote_write_states_the_labels_that_it_writes(
    options: dict[str, Any], fact: str, differs: bool
) -> None:
    """An edit that the store cannot see ends no series."""
    stores = Stores(None, None, None, "prom")
    made = RemoteWriteSink(stores, RemoteWriteOptions(url="http://127.0.0.1:9/w", **options))
    value = ("new", "role:core") if fact == "tags" else "new"
    assert labels(made).differ(TARGET, replace(TARGET, **{fact: value})) == differs


def test_a_sink_that_fails_to_state_its_labels_counts_any_fact() -> None:
    """Polling goes on."""

    class Broken(Taker):
        def target_labels(self, target: PollTarget) -> str:
            raise RuntimeError("a bug")

    broken = labels(Broken())
    assert not broken.differ(TARGET, SAME)
    assert broken.differ(TARGET, replace(TARGET, address="192.0.2.2"))


def test_a_sink_that_takes_no_ends_has_no_say() -> None:
    """It is told nothing anyway."""
    assert not labels(object()).differ(TARGET, replace(TARGET, device="new"))
