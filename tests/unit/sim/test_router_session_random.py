"""Random input to a simulated router: every command ends, or runs until it is cancelled."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from poller.sim import device_traffic, fleet
from poller.sim.routeros import menus, sentence_framing
from poller.sim.routeros.router import Router
from poller.sim.routeros.router_session import NEVER, Session

NOW = device_traffic.EPOCH + 100 * device_traffic.DAY
DEVICES = [
    fleet.laboratory(40),
    fleet.laboratory(40, version=6),
    *fleet.devices(4, snmp_share=0, faulty_share=0),
]
LOGIN = (b"/login", b"=name=admin", f"=password={fleet.PASSWORD}".encode())

VERBS = [
    "print",
    "getall",
    "listen",
    "monitor",
    "monitor-traffic",
    "info",
    "add",
    "set",
    "remove",
    "explode",
    "",
]
NAMES = [
    ".proplist",
    ".id",
    "numbers",
    "number",
    "once",
    "interval",
    "count-only",
    "follow",
    "stats",
    "active",
    "x",
]
VALUES = [
    "",
    "0",
    "1,2",
    "*1",
    "name,rx-byte,nosuch",
    "ether1",
    "yes",
    "no",
    "1s",
    "99999999999",
    "a=b",
    "é",
]
QUERIES = [
    "?name=ether1",
    "?>mtu=5",
    "?<rx-byte=9",
    "?-comment",
    "?comment",
    "?#!",
    "?#|.1&",
    "?#7",
    "?#x",
    "?",
    "?=",
]
OTHER = st.sampled_from(["/cancel", "/login", "/quit", "/", "x"])
COMMAND = st.one_of(
    st.builds("{}/{}".format, st.sampled_from(sorted(menus.TABLES)), st.sampled_from(VERBS)),
    OTHER,
    st.text(max_size=20),
)
WORD = st.one_of(
    st.builds("={}={}".format, st.sampled_from(NAMES), st.sampled_from(VALUES)),
    st.sampled_from(QUERIES),
    st.builds(".tag={}".format, st.sampled_from(["", "1", "1", "2=3"])),
    st.text(min_size=1, max_size=20),
)
SENTENCE = st.builds(
    lambda command, words: [word.encode("utf-8", "replace") for word in (command or "/", *words)],
    COMMAND,
    st.lists(WORD, max_size=4),
)


@settings(max_examples=80)
@given(
    device=st.sampled_from(DEVICES),
    said=st.lists(st.one_of(SENTENCE, st.lists(st.binary(min_size=1), min_size=1)), max_size=8),
)
def test_every_command_ends_or_can_be_cancelled(
    device: fleet.SimDevice, said: list[list[bytes]]
) -> None:
    """No input raises, every answer consists of sentences, and /cancel ends all commands."""
    session = Session(Router(device), bytes(16))
    session.receive(LOGIN)
    for sentence in said:
        session.receive(sentence)
    heard = sentence_framing.Decoder().feed(b"".join(iter(lambda: session.next_output(NOW), b"")))
    assert {sentence[0] for sentence in heard} <= {b"!re", b"!done", b"!trap", b"!empty", b"!fatal"}
    assert session.closed == any(sentence[0] == b"!fatal" for sentence in heard)
    if not session.closed:
        session.receive([b"/cancel"])
        assert sentence_framing.Decoder().feed(
            b"".join(iter(lambda: session.next_output(NOW), b""))
        )
        assert session.ready_at == NEVER
