"""Which of our errors does an exception of a device library become?"""

from __future__ import annotations

import socket
import ssl

import gufo.snmp
import pytest
from librouteros import exceptions as librouteros_exceptions

from poller import errors
from poller.collectors.routeros import failures
from poller.collectors.snmp import gufo_engine


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (gufo.snmp.SnmpAuthError("no"), errors.DeviceAuthFailed),
        (TimeoutError("connection refused"), errors.DeviceUnreachable),
        (ConnectionRefusedError(), errors.DeviceUnreachable),
        (OSError(101, "network is unreachable"), errors.DeviceUnreachable),
    ],
)
def test_snmp_kinds(error: Exception, kind: type[errors.DeviceError]) -> None:
    assert type(gufo_engine.translate(error, "10.0.0.1")) is kind


def test_no_piece_of_a_datagram_is_repeated() -> None:
    """The library prints the bytes it stumbled over, and those may be the community."""
    error = gufo.snmp.SnmpDecodeError("Unsupported tag: Universal primitive tag 11: [70, 75, 62, 6C, 69, 63]")
    assert "70" not in str(gufo_engine.translate(error, "agent"))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (librouteros_exceptions.TrapError("not enough permissions (9)"), errors.DeviceAuthFailed),
        (librouteros_exceptions.TrapError("no such command prefix"), errors.DeviceUnsupported),
        (librouteros_exceptions.TrapError("failure: already exists"), failures.CommandRefused),
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
    assert type(failures.translate(error, "10.0.0.1", "login")) is kind
