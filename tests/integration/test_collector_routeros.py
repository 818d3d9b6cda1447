"""The RouterOS collector reads simulated routers, and survives what a peer on a TCP port can do."""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import datetime
import ipaddress
import logging
import os
import ssl
import time
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

from poller.collectors.credentials import Login
from poller.domain.outcome import Outcome, Result
from poller.sim import fleet
from poller.sim.fleet import Fault, SimDevice
from poller.sim.process import simulated
from tests.unit.collectors.polls import by_series, open_files, outcome, polled

if os.environ.get("CI") != "true":
    pytest.importorskip("librouteros", reason="the extra poller[routeros] is not installed")

from poller.collectors.routeros import RouterOsCollector

PASSWORD = "pässwörd-s3cret"
LOGIN = Login(username="admin", password=PASSWORD)
SIM_LOGIN = Login(username=fleet.USERNAME, password=fleet.PASSWORD)
DONE = [b"!done"]

Sentence = list[bytes]
Answer = Callable[[Sentence], list[Sentence] | bytes | None]


# The protocol once more, from the other side and without the library.


def encode(*words: bytes) -> bytes:
    framed = b"".join(
        (len(w).to_bytes(1, "big") if len(w) < 0x80 else (len(w) | 0x8000).to_bytes(2, "big")) + w for w in words
    )
    return framed + b"\0"


async def read_sentence(reader: asyncio.StreamReader) -> Sentence:
    words = []
    while True:
        first = (await reader.readexactly(1))[0]
        size = first if first < 0x80 else (first & 0x3F) << 8 | (await reader.readexactly(1))[0]
        if not size:
            return words
        words.append(await reader.readexactly(size))


@contextlib.asynccontextmanager
async def router(answer: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[tuple[int, list[Sentence]]]:
    """A server that answers each sentence with sentences, raw bytes, or nothing. Yields port and what it heard."""
    heard: list[Sentence] = []
    served: dict[asyncio.StreamWriter, asyncio.Task[None] | None] = {}

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served[writer] = asyncio.current_task()
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                heard.append(await read_sentence(reader))
                said = answer(heard[-1])
                if said is not None:
                    writer.write(said if isinstance(said, bytes) else b"".join(encode(*words) for words in said))
                if said == b"":
                    break
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1], heard
    finally:
        server.close()
        for writer in served:
            writer.transport.abort()
        await asyncio.gather(*filter(None, served.values()))


def healthy(sentence: Sentence) -> list[Sentence]:
    if sentence[0] == b"/system/resource/print":
        return [[b"!re", b"=uptime=1d2h", b"=cpu-load=7", b"=version=7.18 (stable)", b"=board-name=X"], DONE]
    if sentence[0] == b"/interface/print":
        rows = [
            [b"!re", b"=name=" + name, b"=rx-byte=123", b"=running=true"] for name in (b"ether1", "zażółć".encode())
        ]
        return [*rows, [b"!re", b"=name=007", b"=comment=caf\xe9", b"=rx-byte=18446744073709551615"], DONE]
    return [DONE]


def poll(
    answer: Answer, timeout_s: float = 5, served: ssl.SSLContext | None = None, **options: Any
) -> tuple[Outcome, list[Sentence]]:
    async def run() -> tuple[Outcome, list[Sentence]]:
        async with router(answer, served) as (port, heard):
            drained = await polled(RouterOsCollector(), "127.0.0.1", LOGIN, timeout_s=timeout_s, port=port, **options)
            return drained.outcome, heard

    return asyncio.run(run())


def test_a_poll_logs_in_and_prints_what_its_families_need() -> None:
    result, heard = poll(healthy)
    assert result.result is Result.OK, result.message
    assert heard[0] == [b"/login", b"=name=admin", b"=password=" + PASSWORD.encode()]
    assert [sentence[0] for sentence in heard[1:]] == [b"/system/resource/print", b"/interface/print"]
    assert heard[2][1].startswith(b"=.proplist=name,")
    found = by_series(result)
    assert found["routeros_system_uptime", ()] == 26 * 3600
    assert found["routeros_interface_rx_byte", (("name", "ether1"),)] == 123
    assert found["routeros_interface_rx_byte", (("name", "zażółć"),)] == 123
    assert found["routeros_interface_rx_byte", (("name", "007"),)] == 2**64 - 1
    info = [dict(labels) for name, labels in found if name == "routeros_interface_info"]
    assert {"name": "007", "comment": "café"}.items() <= info[2].items()


def test_families_can_be_chosen() -> None:
    result, heard = poll(healthy, families="resource")
    assert result.result is Result.OK
    assert [sentence[0] for sentence in heard] == [b"/login", b"/system/resource/print"]


def test_an_old_router_gets_its_challenge_answered() -> None:
    """Before 6.43 a login is two sentences, and the password goes out as a digest."""

    def old(sentence: Sentence) -> list[Sentence]:
        if sentence[0] == b"/login" and not any(word.startswith(b"=response=") for word in sentence):
            return [[b"!done", b"=ret=ebddd18303a54111e2dea05a92ab46b4"]]
        return healthy(sentence)

    result, heard = poll(old)
    assert result.result is Result.OK
    proof = next(word for word in heard[1] if word.startswith(b"=response="))
    assert len(proof) == len(b"=response=00") + 32


def test_a_refused_login_is_the_credentials_fault() -> None:
    result, heard = poll(lambda sentence: [[b"!trap", b"=message=invalid user name or password (6)"], DONE])
    assert (result.result, result.error_code) == (Result.FAILED, "auth_failed")
    assert "invalid user name or password (6)" in result.message
    assert len(heard) == 1


def test_one_refused_menu_costs_only_itself() -> None:
    def partly(sentence: Sentence) -> list[Sentence]:
        if sentence[0] == b"/system/resource/print":
            return [[b"!trap", b"=category=0", b"=message=no such command prefix"], DONE]
        return healthy(sentence)

    result, _ = poll(partly)
    assert (result.result, result.error_code) == (Result.PARTIAL, "unsupported")
    assert result.message.startswith("resource: ")
    assert ("routeros_interface_rx_byte", (("name", "ether1"),)) in by_series(result)


@pytest.mark.parametrize(
    ("said", "code"),
    [
        ([[b"!trap", b"=message=oops", b"=weird=1"], DONE], "protocol_error"),
        ([[b"!trap"], DONE], "protocol_error"),
        ([[b"!trap", b"=message=a"], [b"!trap", b"=message=b"], DONE], "protocol_error"),
        ([[b"!trap", b"=message=not enough permissions (9)"], DONE], "auth_failed"),
        ([[b"!fatal", b"too many commands"]], "protocol_error"),
        ([[b"!fatal"]], "unreachable"),
        ([[b"!re", b"nonsense"], DONE], "protocol_error"),
        ([[b"!re", b".tag=5"], DONE], "protocol_error"),
        (b"\xf8\xff\xff", "protocol_error"),
        (b"\xef\xff\xff\xff", "protocol_error"),
        (b"", "unreachable"),
        (b"\x05!done", "timeout"),
        (None, "timeout"),
    ],
)
def test_what_a_router_may_say_instead(said: list[Sentence] | bytes | None, code: str) -> None:
    """Traps of every shape, rubbish, a closed connection, silence: to a menu, after a good login."""
    result, _ = poll(
        lambda sentence: said if sentence[0].startswith(b"/interface") else healthy(sentence), timeout_s=0.5
    )
    assert (result.result, result.error_code) == (Result.PARTIAL, code), result.message
    assert ("routeros_system_uptime", ()) in by_series(result)


def test_an_empty_answer_and_empty_sentences_are_fine() -> None:
    """RouterOS 7.18 says !empty; both ends ignore sentences without words."""

    def empty(sentence: Sentence) -> list[Sentence] | bytes:
        if sentence[0] == b"/interface/print":
            return b"\0\0" + encode(b"!empty") + b"\0" + encode(b"!done")
        return healthy(sentence)

    result, _ = poll(empty)
    assert result.result is Result.OK, result.message


def test_silence_ends_with_the_poll_and_says_where() -> None:
    started = time.monotonic()
    result, _ = poll(lambda sentence: None, timeout_s=0.3)
    assert time.monotonic() - started < 1.5
    assert result.error_code == "timeout"
    assert "did not answer the login" in result.message


def test_nobody_listening_is_unreachable() -> None:
    result = outcome(RouterOsCollector(), "127.0.0.1", LOGIN, port=1)
    assert (result.result, result.error_code) == (Result.FAILED, "unreachable")
    assert "127.0.0.1 port 1 refused the connection" in result.message


def test_without_a_login_it_says_what_it_needs() -> None:
    assert "kind login" in outcome(RouterOsCollector(), "127.0.0.1", None).message


def test_an_endless_answer_is_refused() -> None:
    """A quarter of a gigabyte in one word is announced; nobody waits for it, nobody holds it."""
    result, _ = poll(lambda sentence: b"\xef\xff\xff\xff" if sentence[0] == b"/login" else None, timeout_s=2)
    assert result.error_code == "protocol_error"
    assert "longer than" in result.message


def test_no_secret_in_any_log(caplog: pytest.LogCaptureFixture) -> None:
    """The library logs every word it sends, at DEBUG; not with us."""
    caplog.set_level(logging.DEBUG)
    logging.getLogger("librouteros").setLevel(logging.DEBUG)
    logging.getLogger("librouteros").disabled = False
    result, _ = poll(healthy)
    assert result.result is Result.OK
    assert "s3cret" not in caplog.text
    assert [record for record in caplog.records if record.name.startswith("librouteros")] == []


def test_no_socket_is_left_whatever_happened() -> None:
    answers: list[Answer] = [healthy, lambda s: None, lambda s: b"", lambda s: b"\xf8", lambda s: [[b"!trap"], DONE]]

    def round_() -> None:
        for answer in answers:
            poll(answer, timeout_s=0.2)

    round_()
    before = open_files()
    for _ in range(3):
        round_()
    assert open_files() <= before  # fewer: what earlier tests left was collected meanwhile


# TLS


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1, with its key in the same file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "router")])
    now = datetime.datetime.now(datetime.UTC)
    address = x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address("127.0.0.1"))])
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(address, critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    pem = key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    path = tmp_path_factory.mktemp("tls") / "router.pem"
    path.write_bytes(made.public_bytes(serialization.Encoding.PEM) + pem)
    return path


@pytest.fixture
def server_tls(certificate: Path) -> ssl.SSLContext:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate)
    return context


def test_tls_with_the_right_ca(server_tls: ssl.SSLContext, certificate: Path) -> None:
    result, _ = poll(healthy, served=server_tls, tls=True, ca_file=str(certificate))
    assert result.result is Result.OK, result.message


def test_tls_checks_the_certificate_by_default(server_tls: ssl.SSLContext) -> None:
    result, heard = poll(healthy, served=server_tls, tls=True)
    assert (result.result, result.error_code) == (Result.FAILED, "protocol_error")
    assert "certificate verify failed" in result.message
    assert heard == []  # the password was not sent to a stranger


def test_tls_may_be_told_not_to_check(server_tls: ssl.SSLContext) -> None:
    result, _ = poll(healthy, served=server_tls, tls=True, insecure=True)
    assert result.result is Result.OK, result.message


def test_tls_without_any_certificate_works_when_told_not_to_check() -> None:
    """RouterOS' api-ssl as it comes: anonymous Diffie-Hellman."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers("AECDH:@SECLEVEL=0")
    result, _ = poll(healthy, served=context, tls=True, insecure=True)
    assert result.result is Result.OK, result.message


def test_a_ca_file_that_is_not_there_is_named(server_tls: ssl.SSLContext, tmp_path: Path) -> None:
    result, _ = poll(healthy, served=server_tls, tls=True, ca_file=str(tmp_path / "none.pem"))
    assert "none.pem" in result.message
    assert result.result is Result.FAILED


def test_plain_spoken_to_a_tls_port_is_an_error_not_a_hang(server_tls: ssl.SSLContext) -> None:
    result, _ = poll(healthy, served=server_tls, timeout_s=2)
    assert result.result is Result.FAILED


# The simulated fleet


@pytest.fixture(scope="module")
def fleet_of_routers() -> list[SimDevice]:
    pool = fleet.devices(20, snmp_share=0, faulty_share=0, slow_seconds=0.2)
    faulty = [dataclasses.replace(d, fault=f) for d, f in zip(pool[10:], fleet.FAULTS, strict=False)]
    return [*pool[:10], *faulty]


@pytest.fixture(scope="module")
def sim_port(fleet_of_routers: list[SimDevice]) -> Iterator[int]:
    with simulated(fleet_of_routers) as ports:
        yield ports.routeros


def test_every_simulated_router_gives_its_resources_and_interfaces(
    fleet_of_routers: list[SimDevice], sim_port: int
) -> None:
    async def run() -> list[Outcome]:
        collector = RouterOsCollector()
        good = [device for device in fleet_of_routers if device.fault is Fault.NONE]
        polls = [polled(collector, device.address, SIM_LOGIN, port=sim_port) for device in good]
        return [drained.outcome for drained in await asyncio.gather(*polls)]

    for result in asyncio.run(run()):
        assert result.result is Result.OK, result.message
        names = {name for name, _ in by_series(result)}
        assert {"routeros_system_uptime", "routeros_interface_rx_byte", "routeros_interface_info"} <= names


EXPECTED = {
    Fault.DOWN: {"timeout"},
    Fault.SLOW: {""},
    Fault.LOSSY: {"", "timeout", "unreachable"},
    Fault.WRONG_CREDENTIALS: {"auth_failed"},
    Fault.GARBAGE: {"timeout", "protocol_error", "unreachable"},
    Fault.REBOOT: {"", "unreachable"},
}


@pytest.mark.parametrize("fault", list(EXPECTED))
def test_a_faulty_router_fails_as_its_fault_says(
    fault: Fault, fleet_of_routers: list[SimDevice], sim_port: int
) -> None:
    device = next(device for device in fleet_of_routers if device.fault is fault)
    result = outcome(RouterOsCollector(), device.address, SIM_LOGIN, port=sim_port, timeout_s=2)
    assert result.error_code in EXPECTED[fault], result.message
