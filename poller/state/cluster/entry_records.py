"""RedBeat's entries of jobs in Redis, as records. Stock RedBeat can read them.

Each entry is a hash with RedBeat's `definition` and `meta`, and our `job`: the terms that decide
when it is due next. RedBeat's sorted set has its instant. Every method raises StoreError.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, NamedTuple

from redis import Redis

from poller.domain.batched import batched
from poller.state.board.lua_scripts import Scripts
from poller.state.keys import Keys
from poller.state.redis_client import store_errors

#: Entries that one tick fires; the next tick comes at once then.
MAX_DUE = 5_000

_FIELDS = ("definition", "job")


class EntryRecord(NamedTuple):
    """The two records of an entry, both JSON: for RedBeat's tools, and for the leader."""

    definition: str
    job: str


class DueJob(NamedTuple):
    """A job whose instant has come. The records are "" if another program damaged them."""

    key: str
    job: str
    meta: str


class Due(NamedTuple):
    jobs: Sequence[DueJob]
    others: Sequence[str]  # keys of entries that are not ours
    next_s: float | None  # the next instant of an entry, by the database's clock


class Advance(NamedTuple):
    """The next instant of an entry that was fired."""

    key: str
    instant_s: float
    meta: str


class EntryRecords:
    """The entries of one cluster."""

    def __init__(self, client: Redis, keys: Keys) -> None:
        self._redis = client
        self._keys = keys
        self._scripts = Scripts(client, keys)

    def key(self, name: str) -> str:
        """The key of a job's entry."""
        return self._keys.job_entry(name)

    def due(self, database_s: float | None, host_s: float) -> Due:
        """The entries that are due: jobs by the database's clock, others by this host's."""
        clock = "" if database_s is None else f"{database_s:.3f}"
        arguments = [clock, f"{host_s:.3f}", MAX_DUE]
        jobs, others, next_s = self._scripts.run("due_entries", arguments)
        rows = [DueJob(*row) for row in batched(jobs, 3)]
        return Due(rows, others, float(next_s) if next_s else None)

    def advance(self, entries: Sequence[Advance]) -> None:
        """Set the next instants of entries that were fired and still exist."""
        arguments: list[Any] = []
        for entry in entries:
            arguments += [entry.key, f"{entry.instant_s:.3f}", entry.meta]
        if arguments:
            self._scripts.run("advance_entries", arguments)

    def instants(self) -> dict[str, float]:
        """The instants of the entries of all jobs, by key, in seconds."""
        with store_errors(self._redis):
            rows: Any = self._redis.zrange(self._keys.schedule, 0, -1, withscores=True)
        first = self._keys.job_entry("")
        return {str(key): float(score) for key, score in rows if str(key).startswith(first)}

    def coming(self, after_s: float, until_s: float) -> dict[str, float]:
        """The jobs whose instant is in this time, by name, with their instants."""
        schedule, first = self._keys.schedule, self._keys.job_entry("")
        with store_errors(self._redis):
            rows: Any = self._redis.zrangebyscore(
                schedule, f"({after_s:.3f}", f"{until_s:.3f}", withscores=True
            )
        return {
            str(key).removeprefix(first): float(score)
            for key, score in rows
            if str(key).startswith(first)
        }

    def stored(self, keys: Sequence[str]) -> dict[str, EntryRecord | None]:
        """The records of entries by key; None for one that is damaged."""
        pipe = self._redis.pipeline(transaction=False)
        for key in keys:
            pipe.hmget(key, *_FIELDS)
        with store_errors(self._redis):
            rows = pipe.execute(raise_on_error=False)
        found: dict[str, EntryRecord | None] = {}
        for key, row in zip(keys, rows, strict=True):
            is_whole = isinstance(row, list) and all(row)
            found[key] = EntryRecord(*row) if is_whole else None
        return found

    def write(
        self,
        created: Mapping[str, EntryRecord],
        changed: Mapping[str, EntryRecord],
        instants: Mapping[str, float],
        removed: Collection[str],
    ) -> None:
        """Write what differs, in one pipeline. A changed entry keeps its `meta`."""
        pipe = self._redis.pipeline(transaction=False)
        for key in (*removed, *created):
            pipe.delete(key)  # also one of a wrong type
        if removed:
            pipe.zrem(self._keys.schedule, *removed)
        for key, record in (*created.items(), *changed.items()):
            fields: dict[Any, Any] = dict(zip(_FIELDS, record, strict=True))
            pipe.hset(key, mapping=fields)
        if instants:
            scores: dict[Any, Any] = dict(instants)
            pipe.zadd(self._keys.schedule, scores)
        with store_errors(self._redis):
            pipe.execute()

    def drop(self, keys: Sequence[str]) -> None:
        """Take damaged entries out of the schedule; they are written anew soon."""
        with store_errors(self._redis):
            self._redis.zrem(self._keys.schedule, *keys)

    def forget(self, name: str) -> None:
        """Remove an entry of RedBeat that is not a job's, if there is one."""
        key = self._keys.entry(name)
        pipe = self._redis.pipeline(transaction=False)
        pipe.zrem(self._keys.schedule, key)
        pipe.delete(key)
        with store_errors(self._redis):
            pipe.execute()
