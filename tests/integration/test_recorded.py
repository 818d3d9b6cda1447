"""Recorded replies: the replies of a device are recorded without its secrets, and replayed."""

from __future__ import annotations

import asyncio
import json
import threading
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from poller import errors, testing
from poller.collectors.credentials import Community, Login
from poller.collectors.routeros import RouterOsCollector
from poller.collectors.snmp import SnmpCollector
from poller.domain.failures.outcome import Outcome, Result
from poller.sim import fleet
from poller.sim.fleet import Fault, Protocol
from poller.testing import recorded
from tests.integration import plugin_zoo

LOGIN = Login(username=fleet.USERNAME, password=fleet.PASSWORD)


def read(port: int) -> Outcome:
    secret = plugin_zoo.LOGIN
    return asyncio.run(testing.collect(plugin_zoo.Good(), "127.0.0.1", secret, 2.0, port=port))


def test_a_conversation_is_replayed_turn_by_turn(tmp_path: Path) -> None:
    """A replay needs no device and works any number of times; the password is in no file."""
    path = tmp_path / "good.json"
    with plugin_zoo.device() as device:
        with recorded.recording(
            path, device.address, device.options["port"], plugin_zoo.LOGIN.secrets()
        ) as port:
            live = read(port)
        assert live.result is Result.OK
    assert "correct-horse" not in path.read_text()
    assert json.loads(path.read_text())["conversations"] == [
        [
            {"ask": "login mon *************\n", "answer": "welcome\n"},
            {"ask": "read\n", "answer": "21.5\n"},
        ]
    ]
    with recorded.replayed(path) as port:
        assert [read(port).readings for _ in range(3)] == [live.readings] * 3


def test_a_router_is_recorded_and_replayed(tmp_path: Path) -> None:
    """The collector reads the same numbers from a replay of a login and hundreds of binary
    words.
    """
    router = next(
        d for d in fleet.devices(20) if d.protocol is Protocol.ROUTEROS and d.fault is Fault.NONE
    )
    path = tmp_path / "router.json"

    def collected(port: int) -> Outcome:
        return asyncio.run(
            testing.collect(RouterOsCollector(), "127.0.0.1", LOGIN, port=port, tls=False)
        )

    with (
        testing.simulated([router]) as ports,
        recorded.recording(path, router.address, ports.routeros, LOGIN.secrets()) as port,
    ):
        live = collected(port)
    assert live.result is Result.OK
    assert fleet.PASSWORD not in path.read_text()
    with recorded.replayed(path) as port:
        assert collected(port).readings == live.readings


def test_datagrams_are_answered_with_the_number_of_the_request(tmp_path: Path) -> None:
    """`adjust` puts the request id into the response; SNMP has it at the same place in both."""
    agent = next(
        d for d in fleet.devices(20) if d.protocol is Protocol.SNMP and d.fault is Fault.NONE
    )
    path, community = tmp_path / "agent.json", Community(community=fleet.COMMUNITY)

    def collected(port: int) -> Outcome:
        options = {"modules": ["system"], "timeout": 0.3, "retries": 0}
        return asyncio.run(
            testing.collect(SnmpCollector(), "127.0.0.1", community, port=port, **options)
        )

    with (
        testing.simulated([agent]) as ports,
        recorded.recording(path, agent.address, ports.snmp) as port,
    ):
        assert collected(port).result is Result.OK

    def renumbered(now: bytes, then: bytes, answer: bytes) -> bytes:
        return answer.replace(_request_id(then), _request_id(now), 1)

    with recorded.replayed(path, renumbered) as port:
        assert collected(port).result is Result.OK
    with recorded.replayed(path) as port:
        assert collected(port).error_code == "timeout"


def _request_id(message: bytes) -> bytes:
    """Return the position of the request id: an INTEGER behind version, community and the head of
    the PDU.
    """
    at = message.index(fleet.COMMUNITY.encode()) + len(fleet.COMMUNITY)
    at += 2 if message[at + 1] < 0x80 else 2 + (message[at + 1] & 0x7F)
    return message[at : at + 2 + message[at + 1]]


class Api(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    served = 0

    def do_GET(self) -> None:
        Api.served += 1
        body = json.dumps({"path": self.path, "times": Api.served}).encode()
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        pass


@contextmanager
def web_api() -> Iterator[int]:
    with ThreadingHTTPServer(("127.0.0.1", 0), Api) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield server.server_address[1]
        server.shutdown()
        thread.join()


def get(port: int, path: str) -> dict[str, object]:
    request = urllib.request.Request(
        f"http://127.0.0.1:{port}{path}", headers={"Authorization": "Bearer hush-hush"}
    )
    with urllib.request.urlopen(request, timeout=5) as answer:
        found: dict[str, object] = json.loads(answer.read())
        return found


def test_http_is_answered_by_method_and_path_in_any_order(tmp_path: Path) -> None:
    """Responses to equal requests come in their order; headers, which hold tokens, are not
    recorded.
    """
    path = tmp_path / "api.json"
    with web_api() as there, recorded.recording(path, "127.0.0.1", there) as port:
        said = [get(port, "/nodes"), get(port, "/guests"), get(port, "/nodes")]
    assert "hush-hush" not in path.read_text()
    with recorded.replayed(path) as port:
        assert get(port, "/guests") == said[1]
        assert [get(port, "/nodes"), get(port, "/nodes"), get(port, "/nodes")] == [
            said[0],
            said[2],
            said[0],
        ]
        with pytest.raises(urllib.error.HTTPError, match="404"):
            get(port, "/else")


@pytest.mark.parametrize(
    "text", ["", "[]", '{"protocol": "tcp"}', '{"protocol": "tcp", "conversations": [[1]]}']
)
def test_a_file_that_is_no_recording_is_refused_by_name(tmp_path: Path, text: str) -> None:
    path = tmp_path / "odd.json"
    path.write_text(text)
    with pytest.raises(errors.InvalidInput, match="is not a recording"), recorded.replayed(path):
        pass
