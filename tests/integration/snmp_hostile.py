"""Agents that answer correctly, and the datagrams that hostile ones send instead."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from poller.collectors.credentials import Community, Credential, SnmpV3
from poller.collectors.snmp.wire import v3_message
from poller.collectors.snmp.wire.usm_keys import Keys
from poller.sim.snmp.usm_agent import SecuredRequest
from tests.integration.snmp_v3_agent import ENGINE_ID, V3Agent, v3_agent
from tests.integration.test_collector_snmp_hostile import agent
from tests.unit.collectors import snmp_agent
from tests.unit.collectors.snmp_agent import GET, GET_BULK, Request, integer

ROOT = "1.3.6.1.4.1.99"


COLUMN = f"{ROOT}.1"


COMMUNITY = Community.from_text("public-s3cret")


Rows = Sequence[tuple[str, bytes]]


Handler = Callable[[Request], tuple[Rows, int]]


def user(name: str, auth: str | None = "SHA", priv: str | None = "AES", **other: str) -> SnmpV3:
    fields = {"username": name}
    if auth:
        fields |= {"auth_protocol": auth, "auth_password": "authpass123"}
    if priv:
        fields |= {"priv_protocol": priv, "priv_password": "privpass123"}
    return SnmpV3.from_fields({**fields, **other})


CREDENTIALS: dict[str, Credential] = {
    "2c": COMMUNITY,
    "noAuthNoPriv": user("nobody", None, None),
    "authNoPriv": user("shaonly", "SHA", None),
    "authPriv": user("shaaes"),
    "authPriv-des": user("md5des", "MD5", "DES"),
}


TABLE = [(f"{COLUMN}.{row}", integer(row, 0x41)) for row in range(1, 61)]


def key(oid: str) -> list[int]:
    return [int(part) for part in oid.split(".")]


def honest(request: Request, table: Rows = TABLE) -> tuple[Rows, int]:
    if request.kind == GET:
        there = dict(table)
        return [(oid, there.get(oid, b"\x80\0")) for oid in request.oids], 0
    after = [row for row in table if key(row[0]) > key(request.oids[0])]
    count = request.repetitions if request.kind == GET_BULK else 1
    return after[:count] or [(request.oids[0], b"\x82\0")], 0


@contextmanager
def serving(credential: Credential, handler: Handler) -> Iterator[Any]:
    """An agent for this credential; it has `port` and `requests`."""
    if isinstance(credential, SnmpV3):
        with v3_agent(handler) as made:
            yield made
        return

    def answer(request: Request) -> list[bytes]:
        found, status = handler(request)
        return [request.answer(found, status)]

    with agent(answer) as made:
        yield made


Spoiler = Callable[[bytes, Request], Sequence[bytes]]


def respond(spoil: Spoiler) -> Callable[[Request], list[bytes]]:
    def handler(request: Request) -> list[bytes]:
        found, status = honest(request)
        return list(spoil(request.answer(found, status), request))

    return handler


def renamed(request: Request, **changes: Any) -> bytes:
    """The response to another request, or to another client."""
    fields = {
        "community": request.community,
        "request_id": request.request_id,
        "version": request.version,
        **changes,
    }
    return snmp_agent.response(
        fields["community"], fields["request_id"], [], version=fields["version"]
    )


def altered(made: V3Agent, answer: bytes, asked: SecuredRequest) -> list[bytes]:
    """The response with one changed bit."""
    return [answer[:-1] + bytes((answer[-1] ^ 1,))]


def unsigned(made: V3Agent, answer: bytes, asked: SecuredRequest) -> list[bytes]:
    """A response without digest and encryption, as forged without the password."""
    envelope = asked.envelope
    pdu = snmp_agent.response_pdu(made.requests[-1].request_id, [(f"{COLUMN}.1", integer(666))])
    clock = made.authority.clock(time.time())
    return [v3_message.seal(pdu, envelope.user, ENGINE_ID, clock, Keys(), envelope.message_id, 0)]


def foreign_id(made: V3Agent, answer: bytes, asked: SecuredRequest) -> list[bytes]:
    """An authentic response to another message."""
    other = asked._replace(
        envelope=asked.envelope._replace(message_id=asked.envelope.message_id ^ 1)
    )
    return [
        made.authority.seal(
            snmp_agent.response_pdu(made.requests[-1].request_id, TABLE), other, time.time()
        )
    ]
