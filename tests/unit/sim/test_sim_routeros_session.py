"""A RouterOS session, sentence by sentence."""

from __future__ import annotations

import dataclasses

import pytest

from poller.sim import fleet, hardware, life
from poller.sim.fleet import Fault
from poller.sim.routeros import query, sentences, tables
from poller.sim.routeros.session import REFUSED, Router, Session

NOW = life.EPOCH + 100 * life.DAY
CHALLENGE = bytes.fromhex("259e0bc05acd6f46926dc2f809ed1bba")
LOGIN = ("/login", f"=name={fleet.USERNAME}", f"=password={fleet.PASSWORD}")


def router(model: str = "rb5009", software: str = "7.18.2", fault: Fault = Fault.NONE) -> Router:
    device = next(d for d in fleet.devices(1000, faulty_share=0, snmp_share=0) if d.model == model)
    made = Router(dataclasses.replace(device, fault=fault))
    made.chassis = dataclasses.replace(made.chassis, software=software)
    return made


def say(session: Session, *words: str, now: float = NOW) -> list[list[str]]:
    reply = session.answer([word.encode() for word in words], now)
    return [[word.decode() for word in sentence] for sentence in sentences.Decoder().feed(reply)]


def rows(reply: list[list[str]]) -> list[dict[str, str]]:
    assert reply[-1][0] == "!done"
    return [dict(w[1:].split("=", 1) for w in sentence[1:]) for sentence in reply if sentence[0] == "!re"]


@pytest.fixture
def session() -> Session:
    """A session that is logged in."""
    opened = Session(router(), CHALLENGE)
    assert say(opened, *LOGIN) == [["!done"]]
    return opened


def test_wrong_password_is_a_trap_and_opens_nothing() -> None:
    """A refused login is a trap with the router's words, and commands stay forbidden."""
    session = Session(router(), CHALLENGE)
    refused = [["!trap", f"=message={REFUSED}"], ["!done"]]
    assert say(session, "/login", f"=name={fleet.USERNAME}", "=password=guess") == refused
    assert say(session, "/login", "=name=admin", f"=password={fleet.PASSWORD}") == refused
    assert not session.closed
    assert say(session, "/system/identity/print") == [["!fatal", "not logged in"]]
    assert session.closed


def test_wrong_credentials_refuses_the_demo_password() -> None:
    """A device with other credentials refuses those of the demo."""
    session = Session(router(fault=Fault.WRONG_CREDENTIALS), CHALLENGE)
    assert say(session, *LOGIN)[0][0] == "!trap"


def test_challenge_login_of_old_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    """The challenge and a published answer to it log in; a wrong answer does not."""
    monkeypatch.setattr(fleet, "PASSWORD", "test")
    session = Session(router(software="6.42.1"), CHALLENGE)
    assert say(session, "/login") == [["!done", f"=ret={CHALLENGE.hex()}"]]
    name = f"=name={fleet.USERNAME}"
    assert say(session, "/login", name, "=response=00" + "0" * 32)[0][0] == "!trap"
    assert say(session, "/login", name, "=response=00c7fd865183a43a772dde231f6d0bff13") == [["!done"]]


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
        assert {"type", "mac-address", "actual-mtu", "running", "disabled", "link-downs"} <= row.keys()
        assert all(
            row[f"{way}-{what}"].isdigit() for way in ("rx", "tx") for what in ("byte", "packet", "error", "drop")
        )
    assert {row["type"] for row in found} == {"ether", "bridge", "vlan"}


def test_counters_grow(session: Session) -> None:
    """A minute later a running port has received more."""
    ask = ("/interface/print", "=.proplist=rx-byte", "?name=ether1")
    before, after = (int(rows(say(session, *ask, now=NOW + s))[0]["rx-byte"]) for s in (0, 60))
    assert 0 < (after - before) * 8 < hardware.GBIT * 60


def test_proplist_is_respected(session: Session) -> None:
    """Only the properties asked for come back, unknown ones are left out."""
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
    assert rows(say(session, "/system/identity/print"))[0]["name"].startswith("rt-")


def test_health_has_rows_since_version_7_and_properties_before() -> None:
    """Sensors are rows in version 7 and properties of one row in version 6."""
    new, old = Session(router(), CHALLENGE), Session(router(software="6.49.18"), CHALLENGE)
    for session in (new, old):
        say(session, *LOGIN)
    sensors = {row["name"]: row for row in rows(say(new, "/system/health/print"))}
    assert sensors["voltage"]["type"] == "V"
    assert 20 < float(sensors["voltage"]["value"]) < 28
    assert [sorted(row) for row in rows(say(old, "/system/health/print"))] == [["temperature", "voltage"]]


@pytest.mark.parametrize(("software", "expected"), [("7.18.2", [["!empty"], ["!done"]]), ("7.14.3", [["!done"]])])
def test_nothing_is_called_empty_since_7_18(software: str, expected: list[list[str]]) -> None:
    """No rows are announced with !empty from version 7.18 on."""
    session = Session(router("hap-ac2", software), CHALLENGE)
    say(session, *LOGIN)
    assert say(session, "/system/health/print") == expected
    assert say(session, "/interface/print", "?name=nosuch") == expected


@pytest.mark.parametrize("command", ["/nonsense/print", "/interface/explode", "print", "/", ""])
def test_unknown_commands_are_traps(session: Session, command: str) -> None:
    """What does not exist is a trap, and the session goes on."""
    reply = say(session, command)
    assert reply[0][0] == "!trap"
    assert reply[0][2].startswith("=message=no such command")
    assert reply[1] == ["!done"]
    assert not session.closed


def test_quit_says_goodbye(session: Session) -> None:
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
    ("words", "kept"),
    [
        (["name=ether1"], True),
        (["=name=ether1"], True),
        (["name=ether2"], False),
        (["comment"], False),
        (["-comment"], True),
        ([">mtu=1000"], True),
        (["<mtu=1000"], False),
        ([">name=a"], True),
        (["<nosuch=1"], False),
        (["name=ether2", "#!"], True),
        (["name=ether2", "mtu=1500", "#|"], True),
        (["name=ether2", "mtu=1500", "#&"], False),
        (["name=ether2", "mtu=1500"], False),
        (["#&"], True),
    ],
)
def test_query_language(words: list[str], kept: bool) -> None:
    """Tests push truth, operations combine it, and a row stays when nothing false is left."""
    assert query.matches(words, {"name": "ether1", "mtu": "1500"}.get) is kept


@pytest.mark.parametrize(("seconds", "text"), [(0, "0s"), (59.9, "59s"), (3600, "1h"), (788_645, "1w2d3h4m5s")])
def test_uptime_as_routers_write_it(seconds: float, text: str) -> None:
    """Durations are written in weeks to seconds without zero parts."""
    assert tables.uptime(seconds) == text
