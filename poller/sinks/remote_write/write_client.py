"""Sends requests of remote write, 2.0 where it is asked for and the store knows it."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Final

import cramjam

from poller.observability import logs
from poller.sinks.http_store import HttpStore
from poller.sinks.remote_write import encoder_v1, encoder_v2, store_answers
from poller.sinks.remote_write.outgoing_poll import Piece
from poller.sinks.store_connection import Answer

log = logs.get(__name__)

#: How long a store that does not know 2.0 gets 1.0 before 2.0 is tried again.
RETRY_V2_S: Final = 1800.0


class WriteClient:
    """The client of one store. One thread uses it."""

    def __init__(
        self,
        http: HttpStore,
        wants_v2: bool,
        not_written: Callable[[int, int], None],
        sink: str,
    ) -> None:
        self._http = http
        self._wants_v2 = wants_v2
        self._not_written = not_written
        self._sink = sink
        self._v2_mono = 0.0  # 1.0 is spoken until then
        self.last_answer = ""

    @property
    def version(self) -> str:
        """The version of the next request."""
        return "2.0" if self._wants_v2 and time.monotonic() >= self._v2_mono else "1.0"

    def send(self, pieces: Sequence[Piece]) -> str:
        """Send pieces in one request. Returns "", or why the store refuses them.

        Raises StoreUnavailable.
        """
        if self.version == "2.0":
            answer = self._post(encoder_v2.encode(pieces), encoder_v2.HEADERS)
            if store_answers.speaks_v2(answer):
                return self._result(answer, pieces)
            self._fall_back(answer)
        answer = self._post(encoder_v1.encode(pieces), encoder_v1.HEADERS)
        return self._result(answer)

    def close(self) -> None:
        """End the connection."""
        self._http.close()

    def _post(self, body: bytes, headers: Sequence[tuple[str, str]]) -> Answer:
        compressed = bytes(cramjam.snappy.compress_raw(body))
        answer = self._http.post(self._http.url.target, compressed, headers)
        words = f": {answer.text}" if answer.text else ""
        self.last_answer = f"status {answer.status}{words}"
        return answer

    def _result(self, answer: Answer, pieces: Sequence[Piece] = ()) -> str:
        reason = store_answers.refusal(answer)
        if reason or store_answers.is_taken(answer):
            written = store_answers.written(answer)
            if not reason and pieces and written is not None:
                sent = sum(piece.samples + len(piece.bridges) for piece in pieces)
                self._not_written(max(0, sent - written), sent)
            return reason
        raise self._http.failure(answer)

    def _fall_back(self, answer: Answer) -> None:
        self._v2_mono = time.monotonic() + RETRY_V2_S
        log.warning(
            "remote_write_v2_unknown",
            sink=self._sink,
            status=answer.status,
            hint="the store gets remote write 1.0; 2.0 is tried again in half an hour",
        )
