"""What the keeper of alerts reads from the board: marks, devices that are down, targets that fail,
and the news that say where to look.

`finish` keeps all of it while targets are polled. The keeper gives back what a flushed Redis lost.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from poller.domain.alerts import mark
from poller.domain.alerts.mark import Mark
from poller.domain.batched import batched
from poller.domain.record.target_status import Status
from poller.state.board import down_devices
from poller.state.board.board_reader import BoardReader
from poller.state.board.unwell_targets import Stale
from poller.state.redis_client import store_errors

_PAGE = 1_000
#: Targets that one call of a script restores: other clients wait for a few milliseconds.
_CHUNK = 200
_DEVICE, _TARGET = "d", "t"


class DownDevice(NamedTuple):
    """A device of which no target responds, as it was told."""

    since_ms: int
    target_ids: Sequence[int]


@dataclass(frozen=True, slots=True)
class News:
    """Devices and targets of which something changed that alerts are made of.

    All news before `read_until_ms` are in it; those of a longer list come with the next read.
    """

    entries: Mapping[str, float]  # member of the sorted set -> its score
    read_until_ms: int

    @property
    def device_ids(self) -> list[int]:
        """Devices that went down or came back."""
        return self._ids(_DEVICE)

    @property
    def target_ids(self) -> list[int]:
        """Targets with other marks, and those that began or ceased to fail."""
        return self._ids(_TARGET)

    def _ids(self, letter: str) -> list[int]:
        members = [member for member in self.entries if member.startswith(letter)]
        return [int(member[1:]) for member in members if member[1:].isdigit()]


class AlertLevels:
    """The levels of the board. Every method raises StoreError."""

    def __init__(self, board: BoardReader) -> None:
        self._board = board
        self._redis = board.redis
        self._keys = board.keys

    def news(self, until_ms: int, limit: int = 10_000) -> News:
        """Return the oldest news from before an instant of the board's clock.

        The instant must not lie ahead of that clock: a change at the same moment would be taken for
        one that was read.
        """
        with store_errors(self._redis):
            rows: Any = self._redis.zrange(
                self._keys.alert_news,
                "-inf",
                f"({until_ms}",
                byscore=True,
                offset=0,
                num=limit,
                withscores=True,
            )
        entries = {str(member): float(score) for member, score in rows}
        is_cut = len(entries) >= limit
        read_until_ms = int(max(entries.values())) if is_cut else until_ms
        return News(entries, read_until_ms)

    def forget_news(self, news: News) -> int:
        """Remove news that are in SQL now, unless they changed since they were read. Returns how
        many left.
        """
        left = 0
        for chunk in batched(news.entries.items(), _PAGE):
            arguments: list[Any] = []
            for member, score in chunk:
                arguments += (member, f"{score:.0f}")
            left += int(self._board.scripts.run("forget_news", arguments))
        return left

    def down_devices(self) -> dict[int, DownDevice]:
        """Return every device that is down, by id."""
        found = {}
        with store_errors(self._redis):
            rows: Any = self._redis.hscan_iter(self._keys.down, count=_PAGE)
            for device, record in rows:
                if device.isdigit():
                    found[int(device)] = _down_device(record)
        return found

    def troubled(self) -> set[int]:
        """Return every target that was told as failing."""
        with store_errors(self._redis):
            members: Any = self._redis.sscan_iter(self._keys.troubled, count=_PAGE)
            return {int(member) for member in members if member.isdigit()}

    def statuses(self, ids: Sequence[int]) -> dict[int, Status]:
        """Return the status of each of these targets that has one."""
        found = {}
        for chunk in batched(ids, _PAGE):
            found.update(self._board.statuses(chunk))
        return found

    def marks(self, ids: Sequence[int]) -> dict[int, list[Mark]]:
        """Return the marks of those of these targets that have any."""
        found = {}
        for chunk in batched(ids, _PAGE):
            members = [str(target_id) for target_id in chunk]
            with store_errors(self._redis):
                texts: Any = self._redis.hmget(self._keys.marks, members)
            for target_id, text in zip(chunk, texts, strict=True):
                if text:
                    found[target_id] = mark.unpack(text)
        return found

    def all_marks(self) -> Iterator[dict[int, list[Mark]]]:
        """Yield all marks by target, in pages and in no order. A target may come twice."""
        cursor = 0
        while True:
            with store_errors(self._redis):
                reply: Any = self._redis.hscan(self._keys.marks, cursor, count=_PAGE)
            cursor, texts = reply
            yield {
                int(member): mark.unpack(text) for member, text in texts.items() if member.isdigit()
            }
            if cursor == 0:
                return

    def unwell_before(self, instant_ms: int, limit: int = 10_000, since_ms: int = 0) -> list[Stale]:
        """Return targets whose last good poll ended before an instant, the stalest first: those
        that never had one come at the very beginning, with 0. `since_ms` leaves out older ones.
        """
        with store_errors(self._redis):
            rows: Any = self._redis.zrange(
                self._keys.unwell,
                since_ms,
                f"({instant_ms}",
                byscore=True,
                offset=0,
                num=limit,
                withscores=True,
            )
        return [Stale(int(member), int(ok_ms)) for member, ok_ms in rows if member.isdigit()]

    def put_marks(self, leader: str, texts: Mapping[int, str]) -> int:
        """Give targets of the board the marks that they lack: Redis may have lost them. A mark that
        is there stays as it is. Returns the number of targets that got one. Raises NotLeader.
        """
        changed = 0
        for chunk in batched(texts.items(), _CHUNK):
            arguments: list[Any] = []
            for target_id, text in chunk:
                rows = [mark.pack([each])[1:-1] for each in mark.unpack(text)]
                arguments += (target_id, len(rows), *rows)
            changed += int(self._board.scripts.run_as_leader("put_marks", leader, arguments))
        return changed

    def rules_version(self) -> int:
        """Return the version of the rules that workers are told; 0: none."""
        with store_errors(self._redis):
            text = self._redis.get(self._keys.rules)
        return int(text) if text and str(text).isdigit() else 0

    def set_rules_version(self, leader: str, version: int) -> None:
        """Tell the workers which version of the rules is in SQL. Raises NotLeader."""
        self._board.scripts.run_as_leader("set_rules", leader, [version])


def _down_device(record: str) -> DownDevice:
    return DownDevice(down_devices.since_ms(record), down_devices.target_ids(record))
