"""Which port? The one that was asked for or an error; else the usual one or, saying so, the next."""

from __future__ import annotations

import socket
from collections.abc import Iterator

import pytest

from poller import errors
from poller.cli.up import listen_ports

HERE = "127.0.0.1"


@pytest.fixture
def taken() -> Iterator[int]:
    """A port somebody listens on."""
    with socket.create_server((HERE, 0)) as listener:
        yield listener.getsockname()[1]


def test_the_usual_port_is_taken_without_a_word(free_port: int) -> None:
    """Nothing to say when all is as expected."""
    said: list[str] = []
    assert listen_ports.choose_port("web_port", None, free_port, HERE, said.append) == free_port
    assert said == []


def test_the_next_free_one_is_named(taken: int) -> None:
    """With the setting that chooses another."""
    said: list[str] = []
    port = listen_ports.choose_port("web_port", None, taken, HERE, said.append)
    assert taken < port <= taken + listen_ports.NEAR
    assert said == [f"{taken} is in use, took {port}; POLLER_WEB_PORT chooses another"]


def test_a_port_that_was_asked_for_is_never_replaced(taken: int) -> None:
    """The error names the setting."""
    with pytest.raises(errors.PortInUse, match=f"web_port: {HERE}:{taken} is in use") as refused:
        listen_ports.choose_port("web_port", taken, 8080, HERE, pytest.fail)
    assert "POLLER_WEB_PORT" in refused.value.hint


def test_zero_is_any_port(free_port: int) -> None:
    """As everywhere."""
    assert listen_ports.is_free(
        HERE, listen_ports.choose_port("web_port", 0, free_port, HERE, pytest.fail)
    )
