"""Which of our errors does an exception of a device library become?"""

from __future__ import annotations

import asyncio
import errno
import os
import resource
import socket
import ssl
from collections.abc import Iterator
from typing import Any

import gufo.snmp
import pytest
from librouteros import exceptions as librouteros_exceptions

from poller import errors
from poller.collectors.dns_cache import Resolver
from poller.collectors.routeros import librouteros_errors
from poller.collectors.snmp.engines import exact_engine, gufo_community, gufo_engine


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (gufo.snmp.SnmpAuthError("no"), errors.DeviceAuthFailed),
        (TimeoutError("connection refused"), errors.DeviceUnreachable),
        (ConnectionRefusedError(), errors.DeviceUnreachable),
        (OSError(101, "network is unreachable"), errors.DeviceUnreachable),
        (OSError(errno.EMFILE, "too many open files"), errors.CollectorBusy),
        (OSError(errno.ENFILE, "of all processes together"), errors.CollectorBusy),
        (OSError("Too many open files (os error 24)"), errors.CollectorBusy),
        (OSError("Network is unreachable (os error 101)"), errors.DeviceUnreachable),
    ],
)
def test_snmp_kinds(error: Exception, kind: type[errors.DeviceError]) -> None:
    assert type(gufo_engine.translate(error, "10.0.0.1")) is kind


@pytest.fixture
def no_files() -> Iterator[None]:
    """This process may open no more of them."""
    last, limits = (
        os.dup(0),
        resource.getrlimit(resource.RLIMIT_NOFILE),
    )  # the lowest number that was free
    resource.setrlimit(resource.RLIMIT_NOFILE, (last + 1, limits[1]))
    yield
    resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    os.close(last)


@pytest.mark.parametrize("connect", [gufo_community.connect, exact_engine.connect])
def test_a_worker_without_files_holds_it_against_no_device(connect: Any, no_files: None) -> None:
    """Whichever engine wants a socket."""
    with pytest.raises(errors.CollectorBusy, match=r"no socket was left for 127\.0\.0\.1 port 161"):
        connect("127.0.0.1", 161, "public", "2c")


def test_a_name_without_a_lookup_is_no_unknown_name(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The next poll looks the name up again."""

    async def run() -> None:
        loop, resolver = asyncio.get_running_loop(), Resolver()

        async def short(*_: object, **__: object) -> None:
            raise OSError(errno.EMFILE, "too many open files")

        monkeypatch.setattr(loop, "getaddrinfo", short)
        with pytest.raises(errors.CollectorBusy):
            await resolver.address("r1.example")
        monkeypatch.undo()
        assert await resolver.address("localhost")
        assert "r1.example" not in resolver._cache

    asyncio.run(run())


def test_no_piece_of_a_datagram_is_repeated() -> None:
    """The library prints the bytes it stumbled over, and those may be the community."""
    error = gufo.snmp.SnmpDecodeError(
        "Unsupported tag: Universal primitive tag 11: [70, 75, 62, 6C, 69, 63]"
    )
    assert "70" not in str(gufo_engine.translate(error, "agent"))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (librouteros_exceptions.TrapError("not enough permissions (9)"), errors.DeviceAuthFailed),
        (librouteros_exceptions.TrapError("no such command prefix"), errors.DeviceUnsupported),
        (
            librouteros_exceptions.TrapError("failure: already exists"),
            librouteros_errors.CommandRefused,
        ),
        (librouteros_exceptions.ConnectionClosed("gone"), errors.DeviceUnreachable),
        (ConnectionResetError(), errors.DeviceUnreachable),
        (socket.gaierror(-2, "unknown"), errors.DeviceUnreachable),
        (ssl.SSLCertVerificationError("self-signed"), errors.DeviceProtocolError),
        (TimeoutError(), errors.DeviceTimeout),
        (UnicodeDecodeError("utf-8", b"", 0, 1, "x"), errors.DeviceProtocolError),
        (KeyError("ret"), errors.DeviceProtocolError),
    ],
)
def test_routeros_kinds(error: Exception, kind: type[errors.DeviceError]) -> None:
    assert type(librouteros_errors.translate(error, "10.0.0.1", "login")) is kind
