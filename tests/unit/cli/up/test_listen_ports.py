"""The port of a server: the configured one or an error; else the usual or the next free one."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from poller import errors
from poller.cli.up import listen_ports

HERE = "127.0.0.1"


@pytest.fixture
def taken() -> Iterator[int]:
    """A port that another server listens on."""
    with socket.create_server((HERE, 0)) as listener:
        yield listener.getsockname()[1]


def test_the_usual_port_is_used_silently(free_port: int) -> None:
    """There is no note."""
    said: list[str] = []
    assert listen_ports.choose_port("web_port", None, free_port, HERE, said.append) == free_port
    assert said == []


def test_the_next_free_port_is_noted(taken: int) -> None:
    """The note names the setting that chooses another port."""
    said: list[str] = []
    port = listen_ports.choose_port("web_port", None, taken, HERE, said.append)
    assert taken < port <= taken + listen_ports.NEAR
    assert said == [f"{taken} is in use, took {port}; POLLER_WEB_PORT chooses another"]


def test_a_configured_port_is_never_replaced(taken: int) -> None:
    """The error names the setting."""
    with pytest.raises(errors.PortInUse, match=f"web_port: {HERE}:{taken} is in use") as refused:
        listen_ports.choose_port("web_port", taken, 8080, HERE, pytest.fail)
    assert "POLLER_WEB_PORT" in refused.value.hint


def test_port_zero_is_any_free_port(free_port: int) -> None:
    """The system chooses the port."""
    assert listen_ports.is_free(
        HERE, listen_ports.choose_port("web_port", 0, free_port, HERE, pytest.fail)
    )
