"""A poll that reads only numbers equals one that reads everything, after any change."""

from __future__ import annotations

import asyncio
import dataclasses
import json
from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from poller.collectors import api
from poller.collectors.snmp.modules import module_catalog, module_parser
from poller.collectors.snmp.modules.device_table import SYS_OBJECT_ID
from poller.collectors.snmp.modules.module_model import WalkSettings
from poller.collectors.snmp.modules.module_set import ModuleSet
from poller.collectors.snmp.read import change_detection, poll_read
from poller.collectors.snmp.read.poll_links import ParallelWalkers
from poller.collectors.snmp.read.poll_read import TargetMemory, TargetModules
from poller.collectors.snmp.read.request_size import RequestSizes
from poller.collectors.snmp.read.walker import RetryPolicy, Walker
from tests.unit.collectors.snmp_device import TABLE, TEXTS, X_TABLE, Device, Link

REFRESH_S = 600.0
MODULES = ("system", "if_mib")


def new_memory(module_set: ModuleSet) -> TargetMemory:
    return TargetMemory(module_set, WalkSettings(50, 0, 0.01), RequestSizes(50))


@dataclass
class Poller:
    """Polls one device repeatedly, as a worker does."""

    device: Device
    modules: tuple[str, ...] = MODULES
    memory: TargetMemory = field(default_factory=lambda: new_memory(ModuleSet(())))
    link: dict[str, Any] = field(default_factory=dict)
    refresh_s: float = REFRESH_S
    rests: bool = False
    is_behind: bool = False
    #: The module set of every name; None: the built-in ones.
    select: ModuleSet | None = field(default=None, init=False)

    def choose(self, object_id: str, descr: str) -> tuple[str, ...]:
        self.identity = (object_id, descr)
        return ("system", "if_mib") if object_id.endswith(".1") else ("system",)

    def poll(self, silent: tuple[str, ...] = (), no_probes: bool = False) -> dict[Any, float]:
        self.last = Link(self.device.values(), **self.link)
        self.last.silent, self.last.multi_get_next = silent, not no_probes
        self.result = asyncio.run(self._poll())
        self.memory.sizes.end_poll()
        (readings,) = [item for item in self.result.items if isinstance(item, api.ReadingSet)]
        self.series = readings.series
        return {
            (s.name, s.labels): v
            for s, v in zip(readings.series.series, readings.values, strict=True)
        }

    async def _poll(self) -> poll_read.PollResult:
        now = asyncio.get_running_loop().time()
        walker = Walker(self.last, RetryPolicy(0.01, 0, now + 60), self.memory.sizes, "it")

        async def open_walker(number: int) -> Walker:
            raise AssertionError(number)

        clock = self.device.clock
        wanted = TargetModules(
            self.modules, lambda names: self.select or module_catalog.select(names), self.choose
        )
        period = change_detection.refresh_period(clock, self.refresh_s, 7)
        return await poll_read.read(
            ParallelWalkers(walker, open_walker, 1),
            wanted,
            self.memory,
            clock,
            period,
            self.rests,
            self.is_behind,
        )

    def reads_texts(self) -> bool:
        return any(
            name.startswith(tuple(f"{column}." for column in TEXTS)) for name in self.last.returned
        )


def cold(device: Device, modules: tuple[str, ...] = MODULES) -> dict[Any, float]:
    return Poller(device, modules).poll()


def device(count: int, **more: Any) -> Device:
    return Device({index: f"eth{index}" for index in range(1, count + 1)}, **more)


AGENTS: list[dict[str, Any]] = [
    {},
    {"rows": 7, "oids": 5},
    {"rows": 30},
    {"oids": 1},
    {"bulk": False, "oids": 10},
]


@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("count", [0, 1, 2, 4, 9, 33])
def test_a_repeat_poll_equals_a_first_poll(count: int, agent: dict[str, Any]) -> None:
    """Same series object, current numbers, whatever size of response the agent allows."""
    poller = Poller(device(count), link=agent)
    poller.poll()
    first = poller.series
    for _ in range(3):
        poller.device.clock += 60
        assert poller.poll() == cold(poller.device)
        assert poller.series is first


def test_a_refresh_waits_while_the_workers_are_behind() -> None:
    """Three periods at most; the first poll that is on time refreshes at once."""
    poller = Poller(device(4))
    poller.poll()
    poller.is_behind = True
    refreshed = []
    for _ in range(8):
        poller.device.clock += REFRESH_S
        poller.poll()
        refreshed.append(poller.reads_texts())
    assert refreshed == [False, False, False, True] * 2
    poller.is_behind = False
    poller.device.clock += 1
    poller.poll()
    assert not poller.reads_texts()  # of this period already
    poller.device.clock += REFRESH_S
    poller.is_behind = True
    poller.poll()
    poller.device.clock += 60
    poller.is_behind = False
    poller.poll()
    assert poller.reads_texts()


@pytest.mark.parametrize("count", [4, 60])
def test_a_repeat_poll_requests_less(count: int) -> None:
    poller = Poller(device(count))
    poller.poll()
    requests, given = len(poller.last.requested), len(poller.last.returned)
    for _ in range(5):
        poller.device.clock += 60
        poller.poll()
    assert len(poller.last.returned) < given
    assert poller.memory.shortcut is not None
    assert len(poller.memory.shortcut.route.ranges) < requests


def test_long_columns_of_texts_are_skipped() -> None:
    poller = Poller(device(100))
    poller.poll()
    assert poller.reads_texts()
    poller.poll()
    assert (
        sum(name.startswith(f"{X_TABLE}.18.") for name in poller.last.returned) <= 1
    )  # one shows a column's end


def test_with_refresh_0_everything_is_read_every_time() -> None:
    poller = Poller(device(4), refresh_s=0)
    poller.poll()
    given = poller.last.returned
    poller.poll()
    assert poller.last.returned == given


def test_a_new_name_without_a_signal_is_read_at_the_refresh() -> None:
    """The column is skipped until then, and never longer."""
    poller = Poller(device(100))
    poller.poll()
    poller.device.interfaces[3] = "uplink"
    poller.device.clock += REFRESH_S
    assert poller.poll() == cold(poller.device)


def test_targets_refresh_at_different_instants() -> None:
    """Of a thousand targets at most six refresh in the same second, and all within the period."""
    moments = [
        next(
            s
            for s in range(1, 601)
            if change_detection.refresh_period(s, 600, one)
            != change_detection.refresh_period(0, 600, one)
        )
        for one in range(1000)
    ]
    assert max(map(moments.count, moments)) <= 6


def add(made: Device) -> None:
    made.add(max(made.interfaces, default=0) + 1, "new")


def add_first(made: Device) -> None:
    made.interfaces = {index + 1: name for index, name in made.interfaces.items()}
    made.add(1, "new")


def remove(made: Device) -> None:
    made.remove(2)


def replace(made: Device) -> None:
    made.remove(2)
    made.add(77, "eth2")


def reboot_reshuffled(made: Device) -> None:
    """Restart with the same indexes and other names."""
    made.interfaces = dict(zip(made.interfaces, reversed(made.interfaces.values()), strict=True))
    made.reboot()


@pytest.mark.parametrize("has_last_change", [True, False])
@pytest.mark.parametrize("change", [add, add_first, remove, replace, reboot_reshuffled])
@pytest.mark.parametrize("agent", AGENTS)
def test_a_detectable_change_is_detected_in_the_same_poll(
    change: Any, has_last_change: bool, agent: dict[str, Any]
) -> None:
    """With and without ifTableLastChange."""
    for count in (3, 20):
        poller = Poller(device(count, has_last_change=has_last_change), link=agent)
        poller.poll()
        poller.device.clock += 60
        poller.poll()
        change(poller.device)
        poller.device.clock += 60
        assert poller.poll() == cold(poller.device)
        poller.device.clock += 60
        assert poller.poll() == cold(poller.device)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(
            ["pass", "add", "remove", "rename", "reshuffle", "reboot", "swap and reboot", "age"]
        ),
        st.integers(1, 30),
        st.floats(0.5, 700),
    ),
    max_size=12,
)


@settings(max_examples=60)
@given(STEPS, st.sampled_from(AGENTS), st.integers(0, 12), st.booleans())
def test_after_any_change_a_poll_equals_a_first_poll(
    steps: list[tuple[str, int, float]], agent: dict[str, Any], count: int, has_last_change: bool
) -> None:
    """Only names that changed without a signal may be old, until the next refresh."""
    poller = Poller(device(count, has_last_change=has_last_change), link=agent)
    poller.poll()
    behind: int | None = None  # the refresh period in which names were changed without a sign
    for step, index, wait_s in steps:
        made = poller.device
        made.clock += wait_s
        before, booted, changed = dict(made.interfaces), made.booted, made.changed
        happen(made, step, index)
        period = change_detection.refresh_period(made.clock, REFRESH_S, 7)
        told = (
            made.booted != booted
            or set(made.interfaces) != set(before)
            or (has_last_change and made.changed != changed)
        )
        if made.interfaces != before and not told:
            behind = period
        found, expected = poller.poll(), cold(made)
        if found != expected:
            assert behind == period
            assert sorted(_numbers(found)) == sorted(_numbers(expected))


def happen(made: Device, step: str, index: int) -> None:
    known = list(made.interfaces)
    match step:
        case "add":
            made.add(index, f"added{index}")
        case "remove" if known:
            made.remove(known[index % len(known)])
        case "rename" if known:
            made.interfaces[known[index % len(known)]] = f"renamed{index}"
        case "reshuffle":
            made.interfaces = {
                n * 3 + index: name for n, name in enumerate(made.interfaces.values())
            }
            made.changed = made.clock
        case "reboot":
            made.reboot()
        case "swap and reboot":
            made.interfaces = dict(zip(known, reversed(made.interfaces.values()), strict=True))
            made.reboot()
        case "age":
            made.clock += REFRESH_S


def _numbers(found: dict[Any, float]) -> list[tuple[str, str, float]]:
    return [
        (name, dict(labels).get("ifIndex", ""), value) for (name, labels), value in found.items()
    ]


@pytest.mark.parametrize("count", [1, 4, 30])
def test_a_silent_table_costs_only_its_own_series(count: int) -> None:
    """The other series stay; all series are back with the table."""
    poller = Poller(device(count))
    whole = poller.poll()
    before = poller.series
    poller.device.clock += 60
    found = poller.poll(silent=(X_TABLE,))
    assert [item.part for item in poller.result.items if isinstance(item, api.PartFailed)] == [
        "if_mib 1.3.6.1.2.1.31.1.1"
    ]
    assert set(found) == {
        series for series in whole if not series[0].startswith(("ifHC", "ifX"))
    } & set(found)
    assert {name for name, _ in found} >= {"ifMtu", "ifInOctets", "sysUpTime"}
    poller.device.clock += 60
    assert set(poller.poll()) == set(whole)
    assert poller.series is before


@pytest.mark.parametrize("gone", [True, False])
def test_names_from_before_a_restart_are_not_used(gone: bool) -> None:
    """The table of names is silent after the restart: no name is better than a wrong one."""
    poller = Poller(device(4))
    poller.poll()
    poller.device.clock += 60
    known = poller.poll(silent=(X_TABLE,))
    assert any(
        ("ifName", "name eth1") in labels for _, labels in known
    )  # nothing has happened since it was read
    reboot_reshuffled(poller.device)
    if gone:
        with pytest.raises(api.DeviceTimeout):
            poller.poll(silent=("1",))
    poller.device.clock += 60
    for _ in range(2):
        found = poller.poll(silent=(X_TABLE,))
        assert {text for _, labels in found for key, text in labels if key == "ifName"} == {""}
        poller.device.clock += 60
    assert poller.poll() == cold(poller.device)


@pytest.mark.parametrize("count", [1, 30])
@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize("silent", ["1.3.6.1.2.1.2", "1.3.6.1.2.1.31.1.1"])
def test_a_silent_table_may_be_the_first_request(
    count: int, agent: dict[str, Any], silent: str
) -> None:
    """The route's first request times out although the device responds to others."""
    poller = Poller(device(count), link=agent)
    poller.poll()
    poller.device.clock += 60
    found = poller.poll(silent=(silent,))
    (failed,) = [item for item in poller.result.items if isinstance(item, api.PartFailed)]
    assert failed.part == f"if_mib {silent}"
    assert "stopped answering" in failed.error.message
    assert ("sysUpTime", ()) in found


def test_an_unreachable_device_gets_one_more_request() -> None:
    poller = Poller(device(4))
    poller.poll()
    with pytest.raises(api.DeviceTimeout, match="no answer from it"):
        poller.poll(silent=("1",))
    assert len(poller.last.requested) == 2


ALARMS, LEVELS, GROUP = "1.3.6.1.4.1.9.5.1", "1.3.6.1.4.1.9.7.1", "1.3.6.1.4.1.9.8"
_INDEX = [{"labelname": "i", "type": "gauge"}]
SPARSE = {
    "get": [f"{GROUP}.1.0", f"{GROUP}.2.0"],
    "metrics": [
        {"name": "ifInOctets", "oid": f"{TABLE}.10", "type": "counter", "indexes": _INDEX},
        {"name": "alarm", "oid": f"{ALARMS}.2", "type": "gauge", "indexes": _INDEX},
        {"name": "alarmText", "oid": f"{ALARMS}.3", "type": "DisplayString", "indexes": _INDEX},
        {"name": "level", "oid": f"{LEVELS}.1", "type": "gauge", "indexes": _INDEX},
        {"name": "other", "oid": "1.3.6.1.4.1.9.6.1", "type": "gauge"},
        {"name": "first", "oid": f"{GROUP}.1", "type": "gauge"},
        {"name": "second", "oid": f"{GROUP}.2", "type": "gauge"},
    ],
}


@dataclass
class Sparse(Device):
    """A device with rows that come and go, besides its interfaces."""

    more: dict[str, Any] = field(default_factory=dict)

    def values(self) -> dict[str, Any]:
        return {**super().values(), **self.more}


@dataclass
class SparsePoller(Poller):
    walk: tuple[str, ...] = (TABLE, "1.3.6.1.4.1.9")

    def __post_init__(self) -> None:
        body = {**SPARSE, "walk": list(self.walk)}
        modules = module_parser.parse(json.dumps({"modules": {"sparse": body}}), "test")
        self.select = ModuleSet(tuple(modules.values()))


@pytest.mark.parametrize(
    "walk", [("1.3.6.1.4.1.9",), (TABLE, ALARMS, LEVELS), (TABLE, f"{ALARMS}.3", f"{ALARMS}.2")]
)
@pytest.mark.parametrize("agent", AGENTS)
@pytest.mark.parametrize(
    "come",
    [
        {f"{ALARMS}.2.7": 1, f"{ALARMS}.3.7": b"fire"},
        {f"{LEVELS}.1.1": 5},
        {f"{GROUP}.1.0": 1, f"{GROUP}.2.0": 2},
    ],
)
def test_the_first_row_of_an_empty_table_is_detected_in_the_same_poll(
    walk: tuple[str, ...], agent: dict[str, Any], come: dict[str, Any]
) -> None:
    """An alarm, the first tunnel, a subagent that is back: the table had no row before."""
    for more in ({"1.3.6.1.4.1.9.6.1.0": 1}, {f"{LEVELS}.1.3": 1}):
        poller = SparsePoller(
            Sparse({1: "eth1", 2: "eth2"}, more=dict(more)), link=agent, walk=walk
        )
        poller.poll()
        poller.device.clock += 60
        poller.poll()
        assert poller.memory.shortcut is not None
        poller.device.more |= come
        poller.device.clock += 60
        found = poller.poll()
        assert found == SparsePoller(poller.device, walk=walk).poll()


@dataclass
class Busy(Device):
    """While busy, the device ends ifXTable after its first column."""

    busy: bool = False

    def values(self) -> dict[str, Any]:
        kept = (TABLE, f"{X_TABLE}.1.", "1.3.6.1.2.1.1.", "1.3.6.1.2.1.2.1.")
        return {
            name: value
            for name, value in super().values().items()
            if not self.busy or name.startswith(kept)
        }


def test_a_table_that_was_cut_short_once_is_whole_in_the_next_poll() -> None:
    """No request failed, but a smaller result than before is read in full once more."""
    poller = Poller(Busy({n: f"eth{n}" for n in range(1, 31)}))
    whole = set(poller.poll())
    for busy in (False, True, False, False, False):
        poller.device = dataclasses.replace(
            poller.device, busy=busy, clock=poller.device.clock + 60
        )
        found = poller.poll()
        assert found == cold(poller.device)
        assert (set(found) == whole) is not busy
    assert poller.memory.shortcut is not None


def test_an_agent_that_ignores_probes_is_probed_again_at_the_next_refresh() -> None:
    """Its other responses still count."""
    poller = SparsePoller(Sparse({1: "eth1"}))
    poller.poll()
    expected = SparsePoller(poller.device).poll()
    assert poller.poll(no_probes=True) == expected
    asked = len(poller.last.requested)
    assert poller.poll(no_probes=True) == expected
    assert len(poller.last.requested) < asked
    poller.device.more[f"{ALARMS}.2.1"] = 1
    poller.device.clock += REFRESH_S
    assert poller.poll() == SparsePoller(poller.device).poll()


def test_a_module_of_single_columns_is_read_in_few_requests() -> None:
    """The first poll walks each column; later ones walk one column and get the others."""
    columns = [f"{TABLE}.{n}" for n in (10, 13, 14, 16, 19, 20)]
    metrics = [
        {
            "name": f"m{n}",
            "oid": column,
            "type": "counter",
            "indexes": [{"labelname": "i", "type": "gauge"}],
        }
        for n, column in enumerate(columns)
    ]
    modules = module_parser.parse(
        json.dumps({"modules": {"few": {"walk": columns, "metrics": metrics}}}), "test"
    )
    module_set = ModuleSet(tuple(modules.values()))
    memory, made, requests = new_memory(module_set), device(4), []
    for _ in range(3):
        link = Link(made.values())

        async def poll(link: Link = link) -> int:
            now = asyncio.get_running_loop().time()
            walker = Walker(link, RetryPolicy(0.01, 0, now + 60), memory.sizes, "it")
            wanted = TargetModules(("few",), lambda names: module_set, lambda *_: ())
            await poll_read.read(
                ParallelWalkers(walker, lambda _: pytest.fail("one is enough"), 1),
                wanted,
                memory,
                now,
                1,
            )
            return walker.sent

        requests.append(asyncio.run(poll()))
        memory.sizes.end_poll()
    assert requests[0] == len(columns) + 1
    assert requests[2] <= 3


def test_modules_are_chosen_by_the_identity_of_the_device() -> None:
    """Later polls do not request the identity again."""
    poller = Poller(device(4, object_id="1.3.6.1.4.1.9.1"), modules=())
    assert poller.poll() == cold(poller.device)
    assert poller.identity == ("1.3.6.1.4.1.9.1", "a device")
    poller.device.clock += 60
    poller.poll()
    assert SYS_OBJECT_ID not in poller.last.requested


@pytest.mark.parametrize(
    ("refresh_s", "wait_s"), [(REFRESH_S, 0), (REFRESH_S, REFRESH_S), (0, 3600)]
)
def test_a_replaced_device_gets_other_modules(refresh_s: float, wait_s: float) -> None:
    """At once after a restart, otherwise at the refresh, or within an hour if there is none."""
    poller = Poller(device(4, object_id="1.3.6.1.4.1.9.2"), modules=(), refresh_s=refresh_s)
    poller.poll()
    poller.device.object_id = "1.3.6.1.4.1.9.1"
    if wait_s:
        poller.device.clock += wait_s
    else:
        poller.device.reboot()
    assert poller.poll() == cold(poller.device)
