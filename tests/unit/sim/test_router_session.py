"""A RouterOS session, sentence by sentence."""

from __future__ import annotations

import dataclasses

import pytest

from poller import errors
from poller.sim import device_traffic, fleet, hardware
from poller.sim.fleet import Fault
from poller.sim.routeros import (
    menu_commands,
    menu_plans,
    menu_tables,
    router_users,
    sentence_framing,
)
from poller.sim.routeros.injected_faults import Accident, Mishap
from poller.sim.routeros.router import Router
from poller.sim.routeros.router_session import (
    MAX_LOGINS,
    NEVER,
    REFUSED,
    REFUSED_BEFORE_6_43,
    Session,
)

NOW = device_traffic.EPOCH + 100 * device_traffic.DAY
CHALLENGE = bytes.fromhex("259e0bc05acd6f46926dc2f809ed1bba")
LOGIN = ("/login", f"=name={fleet.USERNAME}", f"=password={fleet.PASSWORD}")


def router(model: str = "rb5009", software: str = "7.18.2", fault: Fault = Fault.NONE) -> Router:
    device = fleet.devices(1, faulty_share=0, snmp_share=0)[0]
    return Router(
        dataclasses.replace(device, model=model, variant=0, software=software, fault=fault)
    )


def heard(session: Session, now: float = NOW, at: float = 0.0) -> list[list[str]]:
    """Return all sentences that the session has ready."""
    said = b"".join(iter(lambda: session.next_output(now, at), b""))
    return [
        [word.decode() for word in sentence] for sentence in sentence_framing.Decoder().feed(said)
    ]


def say(session: Session, *words: str, now: float = NOW, at: float = 0.0) -> list[list[str]]:
    session.receive([word.encode() for word in words])
    return heard(session, now, at)


def logged_in(router: Router, user: str = fleet.USERNAME) -> Session:
    session = Session(router, CHALLENGE)
    assert say(session, "/login", f"=name={user}", f"=password={fleet.PASSWORD}") == [["!done"]]
    return session


def rows(reply: list[list[str]]) -> list[dict[str, str]]:
    assert reply[-1][0] == "!done"
    return [
        dict(w[1:].split("=", 1) for w in sentence[1:])
        for sentence in reply
        if sentence[0] == "!re"
    ]


@pytest.fixture
def session() -> Session:
    """A session that is logged in."""
    return logged_in(router())


def test_wrong_password_is_a_trap_and_opens_nothing() -> None:
    """A refused login is a trap with the router's message, and commands stay forbidden."""
    session = Session(router(), CHALLENGE)
    refused = [["!trap", f"=message={REFUSED}"], ["!done"]]
    assert say(session, "/login", f"=name={fleet.USERNAME}", "=password=guess") == refused
    assert say(session, "/login", "=name=nobody", f"=password={fleet.PASSWORD}") == refused
    assert not session.closed
    assert say(session, "/system/identity/print") == [["!fatal", "not logged in"]]
    assert session.closed


def test_wrong_credentials_refuses_the_demo_password() -> None:
    """A device with other credentials refuses those of the demo."""
    session = Session(router(fault=Fault.WRONG_CREDENTIALS), CHALLENGE)
    assert say(session, *LOGIN)[0][0] == "!trap"


def test_challenge_login_of_old_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The correct response to the challenge logs in; a wrong response does not."""
    monkeypatch.setattr(fleet, "PASSWORD", "test")
    session = Session(router(software="6.42.1"), CHALLENGE)
    name = f"=name={fleet.USERNAME}"
    for words in ((), (name, "=password=test")):
        assert say(session, "/login", *words) == [["!done", f"=ret={CHALLENGE.hex()}"]]
    assert not session.logged_in
    refused = say(session, "/login", name, "=response=00" + "0" * 32)
    assert refused == [["!trap", f"=message={REFUSED_BEFORE_6_43}"], ["!done"]]
    assert say(session, "/login", name, "=response=00c7fd865183a43a772dde231f6d0bff13") == [
        ["!done"]
    ]


def test_tag_is_on_every_sentence(session: Session) -> None:
    """Every sentence of a reply repeats the tag of its command."""
    reply = say(session, "/interface/print", ".tag=a=1")
    assert len(reply) > 5
    assert all(sentence[-1] == ".tag=a=1" for sentence in reply)


def test_interfaces_have_counters_and_state(session: Session) -> None:
    """Each port is a row with identity, state and counters."""
    found = rows(say(session, "/interface/print", "=stats="))
    assert [row["name"] for row in found][:2] == ["ether1", "ether2"]
    assert len({row[".id"] for row in found}) == len(found)
    for row in found:
        assert {
            "type",
            "mac-address",
            "actual-mtu",
            "running",
            "disabled",
            "link-downs",
        } <= row.keys()
        assert all(
            row[f"{way}-{what}"].isdigit()
            for way in ("rx", "tx")
            for what in ("byte", "packet", "error", "drop")
        )
    assert {row["type"] for row in found} == {"ether", "bridge", "vlan"}


def test_counters_grow(session: Session) -> None:
    """A minute later a running port has received more."""
    ask = ("/interface/print", "=.proplist=rx-byte", "?name=ether1")
    before, after = (int(rows(say(session, *ask, now=NOW + s))[0]["rx-byte"]) for s in (0, 60))
    assert 0 < (after - before) * 8 < hardware.GBIT * 60


def test_proplist_is_respected(session: Session) -> None:
    """Only requested properties are returned, and unknown ones are left out."""
    found = rows(say(session, "/interface/print", "=.proplist=name,rx-byte,nonsense"))
    assert all(list(row) == ["name", "rx-byte"] for row in found)


def test_resource_and_identity(session: Session) -> None:
    """The system menus describe the device."""
    resource = rows(say(session, "/system/resource/print"))[0]
    assert resource["version"] == "7.18.2 (stable)"
    assert resource["board-name"] == "RB5009UG+S+"
    assert int(resource["free-memory"]) < int(resource["total-memory"])
    assert 0 <= int(resource["cpu-load"]) <= 100
    assert "w" in resource["uptime"]
    assert rows(say(session, "/system/routerboard/print"))[0]["current-firmware"] == "7.18.2"
    assert rows(say(session, "/system/identity/print")) == [{"name": session.router.device.name}]


def test_health_has_rows_since_version_7_and_properties_before() -> None:
    """Sensors are rows in version 7 and properties of one row in version 6."""
    new, old = logged_in(router()), logged_in(router(software="6.49.18"))
    sensors = {row["name"]: row for row in rows(say(new, "/system/health/print"))}
    assert sensors["voltage"]["type"] == "V"
    assert 20 < float(sensors["voltage"]["value"]) < 28
    assert [sorted(row) for row in rows(say(old, "/system/health/print"))] == [
        ["temperature", "voltage"]
    ]


@pytest.mark.parametrize(
    ("software", "expected"), [("7.18.2", [["!empty"], ["!done"]]), ("7.14.3", [["!done"]])]
)
def test_nothing_is_called_empty_since_7_18(software: str, expected: list[list[str]]) -> None:
    """An empty result is announced with !empty since version 7.18."""
    session = logged_in(router("hap-ac2", software))
    assert say(session, "/system/health/print") == expected
    assert say(session, "/interface/print", "?name=nosuch") == expected


@pytest.mark.parametrize("command", ["/nonsense/print", "/interface/explode", "print", "/", ""])
def test_unknown_commands_are_traps(session: Session, command: str) -> None:
    """An unknown command is a trap, and the session continues."""
    *traps, done = say(session, command)
    assert [trap[0] for trap in traps] == ["!trap"] * len(traps)
    assert traps[0][1:] >= ["=category=0", "=message=no such command"]
    assert done == ["!done"]
    assert not session.closed


def test_a_missing_menu_is_two_traps_in_version_7_and_one_in_version_6() -> None:
    """Version 7 also names the missing part of the path; both report an unknown prefix."""
    prefix = "=message=no such command prefix"
    for command, part in (
        ("/caps-man/remote-cap/print", "caps-man"),
        ("/interface/lte/print", "lte"),
    ):
        assert say(logged_in(router()), command) == [
            ["!trap", "=category=0", f"=message=no such command or directory ({part})"],
            ["!trap", prefix],
            ["!done"],
        ]
        assert say(logged_in(router(software="6.49.18")), command) == [
            ["!trap", "=category=0", prefix],
            ["!done"],
        ]


def test_quit_ends_the_session(session: Session) -> None:
    """Quit ends the session with a fatal sentence."""
    assert say(session, "/quit") == [["!fatal", "session terminated on request"]]
    assert session.closed


def test_count_only(session: Session) -> None:
    """A count is a return value, not rows."""
    assert say(session, "/interface/print", "=count-only=", "?type=vlan") == [["!done", "=ret=1"]]


def test_bad_query_is_a_trap(session: Session) -> None:
    """A query operation that does not exist is a trap."""
    assert say(session, "/interface/print", "?#x")[0][0] == "!trap"


@pytest.mark.parametrize(
    ("seconds", "text"), [(0, "0s"), (59.9, "59s"), (3600, "1h"), (788_645, "1w2d3h4m5s")]
)
def test_uptime_in_the_format_of_routeros(seconds: float, text: str) -> None:
    """Durations are written in weeks to seconds without zero parts."""
    assert menu_tables.uptime(seconds) == text


def test_login_attempts_are_limited() -> None:
    """The number of login attempts is limited, and the next attempt ends the session."""
    session = Session(router(), CHALLENGE)
    for _ in range(MAX_LOGINS):
        assert say(session, "/login")[0][0] == "!done"
    assert say(session, "/login") == [["!fatal", "too many commands before login"]]
    assert session.closed


@pytest.mark.parametrize(
    ("user", "command", "allowed"),
    [
        (router_users.GUEST, ("/interface/print",), False),
        (router_users.LIMITED, ("/interface/print",), True),
        (router_users.LIMITED, ("/interface/ethernet/monitor", "=numbers=0", "=once="), False),
        (fleet.USERNAME, ("/interface/ethernet/monitor", "=numbers=0", "=once="), True),
        (fleet.USERNAME, ("/ip/address/add", "=address=10.1.1.1/24", "=interface=ether1"), False),
        (
            router_users.ADMIN,
            ("/ip/address/add", "=address=10.1.1.1/24", "=interface=ether1"),
            True,
        ),
    ],
)
def test_a_denied_command_is_a_trap_without_category(
    user: str, command: tuple[str, ...], allowed: bool
) -> None:
    """Reading, testing and writing need a policy, and a refusal does not end the session."""
    session = logged_in(router(), user)
    reply = say(session, *command)
    assert reply[-1][0] == "!done"
    assert (reply == [["!trap", f"=message={menu_commands.DENIED}"], ["!done"]]) is not allowed
    assert not session.closed


def test_unknown_parameters_are_traps(session: Session) -> None:
    """An unknown parameter of print is refused, not ignored."""
    assert say(session, "/interface/print", "=colour=red") == [
        ["!trap", "=message=unknown parameter colour"],
        ["!done"],
    ]


def test_commands_with_tags_are_answered_concurrently() -> None:
    """Two long answers are interleaved, each complete and in order."""
    session = logged_in(router("lab-200"))
    for tag in ("a", "b"):
        session.receive([b"/interface/print", f".tag={tag}".encode()])
    reply = heard(session)
    tags = [sentence[-1] for sentence in reply]
    assert tags[0] == ".tag=a"
    assert tags.index(".tag=b") < len(tags) - 1 - tags[::-1].index(".tag=a")
    names = [port.name for port in session.router.chassis.ports]
    for tag in ("a", "b"):
        mine = [sentence[:-1] for sentence in reply if sentence[-1] == f".tag={tag}"]
        assert [row["name"] for row in rows(mine)] == names


def test_commands_without_a_tag_are_answered_in_order() -> None:
    """Answers to commands without a tag are never interleaved."""
    session = logged_in(router("lab-200"))
    for _ in range(2):
        session.receive(
            [b"/interface/print", b"=.proplist=name,comment,mac-address,type,mtu,rx-byte"]
        )
    replies = [sentence[0] for sentence in heard(session)]
    assert replies == (["!re"] * 200 + ["!done"]) * 2


def test_a_long_answer_comes_in_pieces() -> None:
    """A long answer is made in parts, so that a slow reader needs no memory."""
    session = logged_in(router("lab-300"))
    session.receive([b"/interface/print"])
    pieces = list(iter(lambda: session.next_output(NOW), b""))
    assert len(pieces) > 3
    assert max(map(len, pieces)) < 2 * menu_plans.PIECE


def test_listen_reports_changes_until_it_is_cancelled() -> None:
    """New, changed and removed rows are reported as they happen, until /cancel."""
    device = router()
    session, other = logged_in(device), logged_in(device, router_users.ADMIN)
    assert say(session, "/ip/address/listen", ".tag=l") == []
    assert 0 < session.ready_at < NEVER
    given = ("=address=10.9.9.1/24", "=interface=ether1")
    number = say(other, "/ip/address/add", *given)[0][1].removeprefix("=ret=")
    say(other, "/ip/address/set", f"=.id={number}", "=comment=new")
    say(other, "/ip/address/remove", f"=.id={number}")
    told = heard(session, at=1.0)
    assert [sentence[-1] for sentence in told] == [".tag=l"] * 3
    assert {f"=.id={number}", *given} <= set(told[0])
    assert "=comment=new" in told[1]
    assert told[2][1:3] == [f"=.id={number}", "=.dead=yes"]
    assert say(session, "/cancel", "=tag=l", ".tag=c", at=1.0) == [
        ["!trap", "=category=2", "=message=interrupted", ".tag=l"],
        ["!done", ".tag=c"],
        ["!done", ".tag=l"],
    ]
    assert session.ready_at == NEVER


def test_print_follow_returns_rows_and_then_changes() -> None:
    """With follow the rows come first; follow-only leaves them out."""
    device = router()
    session, other = logged_in(device), logged_in(device, router_users.ADMIN)
    assert len(say(session, "/ip/address/print", "=follow=", ".tag=1")) == 2
    assert say(session, "/ip/address/print", "=follow-only=", ".tag=2") == []
    say(other, "/ip/address/add", "=address=10.9.9.1/24", "=interface=ether1")
    assert sorted(sentence[-1] for sentence in heard(session, at=1.0)) == [".tag=1", ".tag=2"]
    assert [s[0] for s in say(session, "/cancel", at=1.0)] == [
        "!trap",
        "!trap",
        "!done",
        "!done",
        "!done",
    ]


def test_monitor_goes_on_until_cancelled(session: Session) -> None:
    """Without =once= the items are reported repeatedly while other commands are answered."""
    assert len(say(session, "/interface/ethernet/monitor", "=numbers=0,1", ".tag=m")) == 2
    assert heard(session, at=0.5) == []
    assert len(heard(session, at=1.1)) == 2
    assert say(session, "/system/identity/print", at=1.2)[-1] == ["!done"]
    assert say(session, "/cancel", "=tag=m", at=1.2)[-1] == ["!done", ".tag=m"]
    assert heard(session, at=9.0) == []


@pytest.mark.parametrize("numbers", ["0,8", "*1,*9", "ether1,sfp-sfpplus1"])
def test_monitor_takes_items_by_position_id_and_name(session: Session, numbers: str) -> None:
    """Several items are monitored in the requested order, with optics."""
    found = rows(say(session, "/interface/ethernet/monitor", f"=numbers={numbers}", "=once="))
    assert [row["name"] for row in found] == ["ether1", "sfp-sfpplus1"]
    assert found[0]["status"] == "link-ok"
    assert found[0]["rate"] == "1Gbps"
    assert found[1]["sfp-module-present"] == "true"
    assert -9 < float(found[1]["sfp-rx-power"]) < -3


@pytest.mark.parametrize("words", [("=numbers=99",), ("=numbers=ether1,nosuch",), ()])
def test_monitor_of_a_missing_item_is_a_trap(session: Session, words: tuple[str, ...]) -> None:
    """An unknown item and a missing item are traps."""
    reply = say(session, "/interface/ethernet/monitor", "=once=", *words)
    assert [sentence[0] for sentence in reply] == ["!trap", "!done"]


def test_rows_that_clients_add_can_be_found_changed_and_removed() -> None:
    """A writable menu has ids, queries, and traps for missing or wrong values."""
    session = logged_in(router(), router_users.ADMIN)
    add = ("/ip/firewall/address-list/add", "=list=mine")
    assert say(session, *add)[0][2] == "=message=missing value for argument address"
    number = say(session, *add, "=address=10.0.0.1")[0][1].removeprefix("=ret=")
    found = rows(
        say(session, "/ip/firewall/address-list/print", "?list=mine", "=.proplist=.id,address")
    )
    assert found == [{".id": number, "address": "10.0.0.1"}]
    assert say(session, "/ip/firewall/address-list/print", "=count-only=", "?list=mine") == [
        ["!done", "=ret=1"]
    ]
    wrong = say(session, "/ip/address/add", "=address=10.0.0.1/24", "=interface=nosuch")
    assert wrong[0][1:] == ["=category=1", "=message=input does not match any value of interface"]
    assert say(session, "/ip/firewall/address-list/remove", f"=.id={number}") == [["!done"]]
    assert (
        say(session, "/ip/firewall/address-list/remove", f"=.id={number}")[0][2]
        == "=message=no such item"
    )
    assert say(session, "/interface/add", "=name=x")[0][2] == "=message=no such command"


def test_flags_of_print_choose_rows(session: Session) -> None:
    """`active` leaves out the leases that are not bound."""
    everyone = rows(say(session, "/ip/dhcp-server/lease/print"))
    active = rows(say(session, "/ip/dhcp-server/lease/print", "=active"))
    assert 0 < len(active) < len(everyone)
    assert {row["status"] for row in active} == {"bound"}


def test_statistics_are_shown_on_request(session: Session) -> None:
    """The counters of the switch need =stats=, or their name in the property list."""
    path = "/interface/ethernet/switch/port/print"
    assert "rx-bytes" not in rows(say(session, path))[0]
    assert "rx-bytes" in rows(say(session, path, "=stats="))[0]
    assert list(rows(say(session, path, "=.proplist=rx-bytes"))[0]) == ["rx-bytes"]


def test_a_router_counts_its_visits(session: Session) -> None:
    """A router counts logins, commands by name, and sent sentences."""
    say(session, "/system/identity/print")
    say(session, "/no/such/print")
    seen = session.router
    assert (seen.logins, seen.commands) == (
        1,
        {"/login": 1, "/system/identity/print": 1, "unknown": 1},
    )
    assert seen.said == 1 + 2 + 3


@pytest.mark.parametrize("software", ["seven", "7.x", "7..1"])
def test_software_that_is_not_a_version_is_refused(software: str) -> None:
    """A wrong version is refused by name when the router is made."""
    with pytest.raises(errors.InvalidInput, match=software) as refused:
        router(software=software)
    assert refused.value.hint


@pytest.mark.parametrize("fields", [{"after": -1}, {"times": -2}, {"seconds": -0.5}])
def test_accidents_that_cannot_happen_are_refused(fields: dict[str, float]) -> None:
    """An invalid accident is refused with the name of the wrong field."""
    with pytest.raises(errors.InvalidInput, match=next(iter(fields))):
        Accident(Mishap.STALL, **fields)  # type: ignore[arg-type]


def test_mobile_links_have_monitor_in_version_7_and_info_in_version_6() -> None:
    """Version 7 has monitor of several numbers, version 6 has info of one number."""
    new, old = logged_in(router("lab-100", "")), logged_in(router("lab6-100", ""))
    monitor, info = (
        ("/interface/lte/monitor", "=numbers=0", "=once="),
        ("/interface/lte/info", "=number=0", "=once="),
    )
    for session, right, wrong in ((new, monitor, info), (old, info, monitor)):
        assert rows(say(session, *right))[0]["registration-status"] == "registered"
        assert say(session, *wrong)[0][1:] == ["=category=0", "=message=no such command"]
    assert say(old, "/interface/lte/info", "=number=0,0", "=once=")[0][0] == "!trap"
