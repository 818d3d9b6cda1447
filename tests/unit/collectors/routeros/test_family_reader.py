"""Which sentences a poll sends, what it remembers of refusals, and how often a family is read."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
from collections import Counter
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest

from poller import errors
from poller.collectors.api import SessionLost
from poller.collectors.routeros.families import DEFAULT, FAMILIES
from poller.collectors.routeros.families.family import Rows
from poller.collectors.routeros.family_reader import MAX_ROWS, CommandCache, FamilyReader
from poller.collectors.routeros.router_memory import FORGET_S, RouterMemory

Answer = Callable[..., Rows]
NOTHING: Rows = []
PORTS = [
    {"name": "ether1", "type": "ether"},
    {"name": "a,b", "type": "ether"},
    {"name": "bridge", "type": "bridge"},
]


class Script:
    """A router that answers by command, and has nothing else."""

    def __init__(self, **menus: Any) -> None:
        self.menus = {
            "/" + name.replace("__", "-").replace("_", "/"): rows for name, rows in menus.items()
        }
        self.heard: list[tuple[str, tuple[str, ...], dict[str, str]]] = []

    async def call(self, command: str, /, *queries: str, **words: str) -> Rows:
        self.heard.append((command, queries, words))
        answer = self.menus.get(
            command, errors.DeviceUnsupported("refused", cause="no such command prefix")
        )
        if isinstance(answer, Exception):
            raise answer
        return answer

    @property
    def commands(self) -> list[str]:
        return [command for command, _, _ in self.heard]


@contextlib.asynccontextmanager
async def forever(text: str, rows: int) -> AsyncIterator[None]:
    yield


def ask(
    router: Script, memory: RouterMemory, *names: str, now: float = 0.0, lists: tuple[str, ...] = ()
) -> FamilyReader:
    reader = FamilyReader(memory, {"address_lists": lists}, now)
    due = memory.due([FAMILIES[name] for name in names], {}, now)
    asyncio.run(reader.read(CommandCache(router, forever), due))
    return reader


def test_ports_are_monitored_in_one_sentence_and_only_those_that_exist() -> None:
    """Names come from the interfaces of this poll; a name with a comma is left out."""
    router = Script(
        interface_print=PORTS, interface_ethernet_monitor=[{"name": "ether1", "rate": "1Gbps"}]
    )
    ask(router, RouterMemory(), "interfaces", "ethernet")
    assert router.commands == ["/interface/print", "/interface/ethernet/monitor"]
    assert router.heard[1][2]["numbers"] == "ether1"
    assert "once" in router.heard[1][2]


def test_without_the_interfaces_ports_are_queried_by_type() -> None:
    router = Script(interface_print=PORTS[:1], interface_ethernet_monitor=NOTHING)
    ask(router, RouterMemory(), "ethernet")
    assert [queries for _, queries, _ in router.heard] == [("?type=ether",), ()]


def test_a_router_without_ports_gets_no_monitor_command() -> None:
    router = Script(interface_print=[PORTS[2]])
    ask(router, RouterMemory(), "interfaces", "ethernet")
    assert router.commands == ["/interface/print"]


def test_default_families_cost_five_sentences() -> None:
    router = Script(
        system_resource_print=[{"version": "7.18"}],
        system_identity_print=[{"name": "r"}],
        system_health_print=NOTHING,
        interface_print=PORTS,
        interface_ethernet_monitor=NOTHING,
    )
    ask(router, RouterMemory(), *DEFAULT)
    assert len(router.heard) == 5
    assert all(".proplist" in words for _, _, words in router.heard)


def test_a_menu_that_is_not_there_is_skipped_remembered_and_no_error() -> None:
    router, memory = Script(routing_bgp_session_print=NOTHING), RouterMemory()
    assert ask(router, memory, "bgp").failures == []
    ask(router, memory, "bgp", now=60)
    assert router.commands == [
        "/routing/bgp/session/print",
        "/routing/bgp/peer/print",
        "/routing/bgp/session/print",
    ]
    assert memory.presence([FAMILIES["bgp"]], 60) == {"bgp": True}
    ask(router, memory, "bgp", now=FORGET_S + 1)
    assert router.commands[-1] == "/routing/bgp/peer/print"


def test_a_new_version_has_other_menus() -> None:
    router, memory = Script(system_resource_print=[{"version": "6.49"}]), RouterMemory()
    ask(router, memory, "resource", "bgp")
    router.menus["/system/resource/print"] = [{"version": "7.18"}]
    ask(router, memory, "resource", "bgp", now=60)
    ask(router, memory, "resource", "bgp", now=120)
    assert router.commands.count("/routing/bgp/session/print") == 2


def test_a_family_that_the_router_lacks_is_not_read_again() -> None:
    router, memory = Script(), RouterMemory()
    ask(router, memory, "poe")
    assert memory.presence([FAMILIES["poe"]], 0) == {"poe": False}
    assert memory.due([FAMILIES["poe"]], {}, 60) == []
    assert memory.due([FAMILIES["poe"]], {}, FORGET_S + 1) == [FAMILIES["poe"]]


def test_no_permission_names_the_policy_and_costs_only_that_family() -> None:
    router = Script(
        system_resource_print=errors.DeviceAuthFailed(
            "refused", cause="not enough permissions (9)"
        ),
        system_identity_print=[{"name": "r"}],
    )
    reader = ask(router, RouterMemory(), "resource", "identity")
    [failure] = reader.failures
    assert failure.part == "resource"
    assert "needs the policies api, read" in failure.error.cause
    assert failure.error.hint.endswith("policy=api,read")
    assert [table.family for table in reader.tables] == ["identity"]


def test_trouble_with_the_connection_ends_the_pass_and_says_where() -> None:
    router = Script(
        system_resource_print=NOTHING, system_identity_print=errors.DeviceTimeout("no answer")
    )
    memory = RouterMemory()
    reader = FamilyReader(memory, {}, 0.0)
    with pytest.raises(errors.DeviceTimeout):
        asyncio.run(
            reader.read(CommandCache(router, forever), [FAMILIES[name] for name in DEFAULT])
        )
    assert reader.current == "identity"
    assert memory.read == {"resource"}


def cut(router: Script, memory: RouterMemory, *names: str, now: float) -> FamilyReader:
    """A poll in which the connection ends."""
    reader = FamilyReader(memory, {}, now)
    with pytest.raises(errors.DeviceTimeout):
        asyncio.run(
            reader.read(
                CommandCache(router, forever), memory.due([FAMILIES[n] for n in names], {}, now)
            )
        )
    return reader


def test_a_family_that_ends_the_connection_keeps_no_other_from_being_read() -> None:
    """The family is read after all others, then pauses, and counts as failed all the time."""
    wanted = ("interfaces", "resource", "identity")
    router, memory = (
        Script(system_resource_print=NOTHING, system_identity_print=[{"name": "r"}]),
        RouterMemory(),
    )
    router.menus["/interface/print"] = errors.DeviceTimeout("no complete answer")
    assert cut(router, memory, *wanted, now=0).tables == []
    assert {table.family for table in cut(router, memory, *wanted, now=60).tables} == {
        "resource",
        "identity",
    }
    asked = []
    for now in range(120, 4 * 3600, 60):
        due = memory.due([FAMILIES[name] for name in wanted], {}, now)
        if FAMILIES["interfaces"] in due:
            asked.append(now)
            assert due[-1] is FAMILIES["interfaces"]
            cut(router, memory, *wanted, now=now)
        else:
            [failure] = memory.standing_failures([FAMILIES["interfaces"]], now)
            assert failure.part == "interfaces"
            assert " times in a row, and not asked again for " in failure.error.message
    pauses = [after - before for before, after in itertools.pairwise(asked)]
    assert pauses[:5] == [120, 240, 480, 900, 1740]  # doubled; a poll may come a tenth early
    assert set(pauses[6:]) == {3240}
    router.menus["/interface/print"] = PORTS
    now = asked[-1] + 3600
    assert [table.family for table in ask(router, memory, *wanted, now=now).tables][
        -1
    ] == "interfaces"
    assert memory.standing_failures([FAMILIES["interfaces"]], now) == []
    assert [
        family.name for family in memory.due([FAMILIES[name] for name in wanted], {}, now + 60)
    ] == list(wanted)


def test_one_bad_moment_costs_no_pause() -> None:
    router, memory = Script(), RouterMemory()
    router.menus["/interface/print"] = errors.DeviceTimeout("no complete answer")
    cut(router, memory, "interfaces", now=0)
    assert memory.due([FAMILIES["interfaces"]], {}, 1) == [FAMILIES["interfaces"]]


def test_without_others_there_is_no_pause() -> None:
    """A router that has healed is asked at the next probe, whatever it did before."""
    router, memory = Script(), RouterMemory()
    router.menus["/system/resource/print"] = errors.DeviceTimeout("no complete answer")
    for now in range(5):
        cut(router, memory, "resource", now=now)
    assert memory.due([FAMILIES["resource"]], {}, 5) == [FAMILIES["resource"]]


def test_a_family_that_was_not_reached_comes_first_the_next_time() -> None:
    """A slow family that answers leaves the others some of the time, in rotation."""
    wanted = [
        FAMILIES[name]
        for name in ("resource", "identity", "interfaces", "routes", "dhcp", "queues")
    ]
    memory, reads = RouterMemory(), Counter[str]()
    for poll in range(12):
        now = 60.0 * poll
        time_s = 2.0
        for family in memory.due(wanted, {"routes": 0, "dhcp": 0, "queues": 0}, now):
            takes = 1.4 if family.name == "interfaces" else 0.2
            late = time_s < 1.5
            time_s -= takes
            if time_s < 0:
                memory.record_cut(
                    family, errors.DeviceTimeout("no complete answer"), now, unlucky=late
                )
                break
            memory.record_read(family, (), now)
            reads[family.name] += 1
    assert len(reads) == len(wanted)
    assert min(reads.values()) >= 5
    assert all(trouble.cuts == 0 for trouble in memory.failures.values())


def test_a_family_that_fails_with_enough_time_is_blamed() -> None:
    wanted = [FAMILIES[name] for name in ("resource", "interfaces", "routes")]
    memory, slow = RouterMemory(), FAMILIES["routes"]
    memory.record_read(wanted[0], (), 0)
    memory.record_cut(slow, errors.DeviceTimeout("x"), 0, unlucky=True)
    assert memory.due(wanted, {}, 60)[0] is slow
    memory.record_cut(slow, errors.DeviceTimeout("x"), 60, unlucky=False)
    memory.record_read(wanted[0], (), 60)
    assert memory.due(wanted, {}, 120)[-1] is slow
    memory.record_cut(
        slow, errors.DeviceTimeout("x"), 120, unlucky=True
    )  # at the end there never is enough
    assert slow not in memory.due(wanted, {}, 150)


def test_no_family_is_blamed_for_a_session_that_had_ended() -> None:
    memory = RouterMemory()
    router = Script(interface_print=SessionLost("it has ended the session"))
    with pytest.raises(SessionLost):
        asyncio.run(
            FamilyReader(memory, {}, 0).read(
                CommandCache(router, forever), [FAMILIES["interfaces"]]
            )
        )
    assert memory.failures == {}


def test_a_refused_family_is_read_at_its_own_interval() -> None:
    """The refusal stands until the next read."""
    refused = errors.DeviceAuthFailed("refused", cause="not enough permissions (9)")
    router, memory = (
        Script(certificate_print=refused, system_resource_print=NOTHING),
        RouterMemory(),
    )
    for now in (0, 60, 120):
        ask(router, memory, "certificates", "resource", now=now)
        [failure] = memory.standing_failures([FAMILIES["certificates"]], now)
        assert isinstance(failure.error, errors.DeviceAuthFailed)
    assert router.commands.count("/certificate/print") == 1
    router.menus["/certificate/print"] = NOTHING
    ask(router, memory, "certificates", now=FAMILIES["certificates"].every_s)
    assert (
        memory.standing_failures([FAMILIES["certificates"]], FAMILIES["certificates"].every_s) == []
    )


def test_modems_of_version_6_are_read_one_by_one() -> None:
    """The command of version 6 takes one name, that of version 7 takes all names."""
    router = Script(interface_lte_print=[{"name": "lte1"}, {"name": "lte2"}, {"name": "a,b"}])

    async def call(command: str, /, *queries: str, **words: str) -> Rows:
        if command != "/interface/lte/info":
            return await Script.call(router, command, *queries, **words)
        assert "," not in words["number"]
        router.heard.append((command, queries, words))
        return [{"rssi": "-71" if words["number"] == "lte1" else "-88"}]

    router.call = call  # type: ignore[method-assign]
    [table] = ask(router, RouterMemory(), "lte").tables
    assert [row.get("rssi") for row in table.rows] == ["-71", "-88", None]


def test_routes_are_counted_by_the_router() -> None:
    router = Script(ip_route_print=[{"ret": "3"}], ipv6_route_print=[{"ret": "1"}])
    reader = ask(router, RouterMemory(), "routes")
    assert len(router.heard) == 12
    assert all("count-only" in words and ".proplist" not in words for _, _, words in router.heard)
    assert ("?bgp=yes",) in [queries for _, queries, _ in router.heard]
    assert len(reader.tables) == 12


def test_entries_of_address_lists_are_read_for_lists_that_were_named() -> None:
    path = "/ip/firewall/address-list/print"
    router = Script()
    router.menus[path] = [{"ret": "1"}]
    ask(router, RouterMemory(), "address_lists")
    assert router.commands.count(path) == 3
    ask(router, RouterMemory(), "address_lists", lists=("a", "b", "c"))
    assert ("?list=a", "?list=b", "?#|", "?list=c", "?#|") in [
        queries for _, queries, _ in router.heard
    ]


def test_a_sentence_is_sent_once_a_poll() -> None:
    """Two families may read the clients of the wireless interfaces."""
    router = Script()
    router.menus["/interface/wifi/registration-table/print"] = [
        {"mac-address": "AA", "interface": "wifi1"}
    ]
    reader = ask(router, RouterMemory(), "wireless_clients", "capsman")
    assert router.commands.count("/interface/wifi/registration-table/print") == 1
    assert {table.family for table in reader.tables} == {"wireless_clients", "capsman"}


def test_clients_are_known_by_the_name_in_their_lease() -> None:
    router, memory = Script(), RouterMemory()
    router.menus["/ip/dhcp-server/lease/print"] = [
        {"mac-address": "AA", "address": "10.0.0.5", "host-name": "phone"}
    ]
    router.menus["/interface/wifi/registration-table/print"] = [
        {"mac-address": "AA"},
        {"mac-address": "BB"},
    ]
    rows = ask(router, memory, "dhcp", "wireless_clients").tables[-1].rows
    assert (rows[0]["dhcp-name"], rows[0]["dhcp-address"]) == ("phone", "10.0.0.5")
    assert "dhcp-name" not in rows[1]


def test_version_6_calls_things_differently() -> None:
    router = Script(
        routing_bfd_neighbor_print=[{"address": "10.0.0.1", "interface": "ether1", "up": "true"}]
    )
    [table] = ask(router, RouterMemory(), "bfd").tables
    assert table.rows[0]["remote-address"] == "10.0.0.1"


def test_a_poll_with_nothing_due_still_asks_whether_the_router_is_there() -> None:
    router, memory = (
        Script(system_identity_print=[{"name": "r"}], ip_route_print=[{"ret": "3"}]),
        RouterMemory(),
    )
    ask(router, memory, "routes")
    router.heard.clear()
    assert ask(router, memory, "routes", now=60).tables == []
    assert router.commands == ["/system/identity/print"]


@pytest.mark.parametrize(
    ("every_s", "polled_s", "read_at"),
    [
        ({}, 60, [0, 300, 600]),
        ({"routes": 120}, 60, [0, 120, 240, 360, 480, 600]),
        ({"routes": 0}, 60, [0, 60, 120, 180, 240, 300, 360, 420, 480, 540, 600]),
        ({"routes": 90}, 60, [0, 120, 240, 360, 480, 600]),
        ({"routes": 3600}, 60, [0]),
    ],
)
def test_a_family_is_read_at_its_own_interval(
    every_s: dict[str, float], polled_s: int, read_at: list[int]
) -> None:
    """Polls come a little early or late; a family is not put off for that."""
    memory, routes, read = RouterMemory(), FAMILIES["routes"], []
    for number, planned in enumerate(range(0, 601, polled_s)):
        now = planned + (-0.5 if number % 2 else 0.5)
        if memory.due([routes], every_s, now):
            memory.record_read(routes, (), now)
            read.append(planned)
    assert read == read_at


@pytest.mark.parametrize(
    "after",
    [
        {"version": "7.16", "board-name": "hAP", "uptime": "2d"},
        {"version": "7.15", "board-name": "CCR", "uptime": "2d"},
        {"version": "7.15", "board-name": "hAP", "uptime": "5m"},
    ],
    ids=["upgraded", "replaced", "rebooted"],
)
def test_another_router_at_the_address_is_read_completely(after: dict[str, str]) -> None:
    """Another router may have other menus and other leases."""
    router = Script(
        system_resource_print=[{"version": "7.15", "board-name": "hAP", "uptime": "1d"}]
    )
    memory = RouterMemory()
    ask(router, memory, "resource", "interfaces")
    memory.dhcp.replace([{"mac-address": "m", "address": "10.0.0.1", "host-name": "tv"}])
    ask(router, memory, "resource", "interfaces")
    assert (memory.missing != {}, memory.dhcp.names != {}) == (True, True)
    router.menus |= {"/system/resource/print": [after], "/interface/print": PORTS}
    ask(router, memory, "resource", "interfaces")  # learns of it
    router.heard.clear()
    found = ask(router, memory, "resource", "interfaces")
    assert router.commands == ["/system/resource/print", "/interface/print"]
    assert [table.family for table in found.tables].count("interfaces") > 0
    assert memory.dhcp.names == {}


def test_a_menu_without_end_costs_itself_only() -> None:
    """The readings of such a menu would occupy a worker for seconds."""
    many = [{"name": f"e{number}"} for number in range(MAX_ROWS + 1)]
    found = ask(
        Script(interface_print=many, system_identity_print=[{"name": "r"}]),
        RouterMemory(),
        "identity",
        "interfaces",
    )
    assert {table.family for table in found.tables} == {"identity"}
    [failed] = found.failures
    assert failed.part == "interfaces"
    assert failed.error.message == "/interface/print has 20,001 rows, and at most 20,000 are read"
