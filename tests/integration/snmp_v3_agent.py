"""An SNMPv3 agent in a thread. A test may replace each of its responses."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from poller.collectors.snmp.wire.usm_keys import Passwords
from poller.sim.snmp.usm_agent import Authority, SecuredRequest
from tests.unit.collectors import snmp_agent
from tests.unit.collectors.snmp_agent import Request

ENGINE_ID = bytes.fromhex("80001f8804") + b"hostile"
USERS = {
    b"nobody": Passwords(),
    b"shaonly": Passwords("SHA", b"authpass123"),
    b"shaaes": Passwords("SHA", b"authpass123", "AES", b"privpass123"),
    b"md5des": Passwords("MD5", b"authpass123", "DES", b"privpass123"),
}
Rows = Sequence[tuple[str, bytes]]
Handler = Callable[[Request], tuple[Rows, int]]
#: Gets the answer and what was asked, sends what it likes instead.
Spoil = Callable[["V3Agent", bytes, SecuredRequest], Sequence[bytes]]


class V3Agent:
    def __init__(
        self, handler: Handler, spoil: Spoil | None = None, *, silent: bool = False
    ) -> None:
        self._silent = silent  # answer the discovery and nothing else
        self.authority = Authority(ENGINE_ID, USERS, started=time.time() - 1000, boots=5)
        self._handler = handler
        self._spoil = spoil
        self._socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self._socket.bind(("127.0.0.1", 0))
        self.port = int(self._socket.getsockname()[1])
        self.requests: list[Request] = []
        self.datagrams = 0
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            data, peer = self._socket.recvfrom(65535)
            if data == b"stop":
                return
            self.datagrams += 1
            for answer in self._answers(data):
                self._socket.sendto(answer, peer)

    def _answers(self, data: bytes) -> Sequence[bytes]:
        asked = self.authority.receive(data, time.time())
        if asked is None or (self._silent and self.datagrams > 1):
            return ()
        if isinstance(asked, bytes):
            return (asked,)
        request = snmp_agent.parse_pdu(asked.pdu)
        self.requests.append(request)
        rows, status = self._handler(request)
        answer = self.authority.seal(
            snmp_agent.response_pdu(request.request_id, rows, status), asked, time.time()
        )
        return self._spoil(self, answer, asked) if self._spoil else (answer,)

    def stop(self) -> None:
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as caller:
            caller.sendto(b"stop", ("127.0.0.1", self.port))
        self._thread.join(10)
        self._socket.close()


@contextmanager
def v3_agent(
    handler: Handler, spoil: Spoil | None = None, *, silent: bool = False
) -> Iterator[V3Agent]:
    made = V3Agent(handler, spoil, silent=silent)
    try:
        yield made
    finally:
        made.stop()
