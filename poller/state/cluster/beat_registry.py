"""The registry of beats: each process tells about once a second whether it leads.

| field of an entry | value                                                   |
|-------------------|---------------------------------------------------------|
| `instance`        | its name, `POLLER_INSTANCE_ID` or host:pid              |
| `leads`           | whether it fires jobs and claims targets                |
| `election`        | whether it leads only with the lock                     |
| `jobs`            | RedBeat entries that it knows of                        |
| `seen_ms`         | when it was written, by the board's clock               |
| `process`         | host:pid                                                |
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from redis import Redis

from poller.state.keys import Keys
from poller.state.redis_client import store_errors

#: A beat silent for this long counts as gone.
GONE_AFTER_MS = 10_000
#: An entry silent for this long is removed.
FORGET_AFTER_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class BeatInstance:
    instance: str
    leads: bool
    election: bool
    jobs: int
    seen_ms: int
    process: str = ""  # host:pid


def add_to(pipe: Any, keys: Keys, beat: BeatInstance) -> None:
    """Add the heartbeat of a beat to commands that go to the server together."""
    pipe.hset(keys.beats, beat.instance, json.dumps(asdict(beat)))


def announce(client: Redis, keys: Keys, beat: BeatInstance) -> None:
    """Write the heartbeat of a beat. Raises StoreError."""
    with store_errors(client):
        add_to(client, keys, beat)


def leave(client: Redis, keys: Keys, instance: str) -> None:
    """Remove the entry of a beat that stops. Raises StoreError."""
    with store_errors(client):
        client.hdel(keys.beats, instance)


def listing(client: Redis, keys: Keys, now_ms: int) -> list[BeatInstance]:
    """The living beats, sorted by name. Raises StoreError."""
    living = [beat for beat in _entries(client, keys) if _silent_ms(beat, now_ms) < GONE_AFTER_MS]
    return sorted(living, key=_name)


def forget_lost(client: Redis, keys: Keys, now_ms: int) -> None:
    """Remove entries of beats that have been silent for long. Raises StoreError."""
    for beat in _entries(client, keys):
        if _silent_ms(beat, now_ms) > FORGET_AFTER_MS:
            leave(client, keys, beat.instance)


def _entries(client: Redis, keys: Keys) -> list[BeatInstance]:
    with store_errors(client):
        rows: Any = client.hgetall(keys.beats)
    parsed = (_parse(name, text) for name, text in rows.items())
    return [beat for beat in parsed if beat]


def _parse(name: str, text: str) -> BeatInstance | None:
    """The beat of an entry; None for an entry that no beat wrote."""
    try:
        fields = json.loads(text)
    except ValueError:
        return None
    if not isinstance(fields, Mapping):
        return None
    try:
        return BeatInstance(
            instance=name,
            leads=bool(fields["leads"]),
            election=bool(fields["election"]),
            jobs=int(fields["jobs"]),
            seen_ms=int(fields["seen_ms"]),
            process=str(fields.get("process", "")),
        )
    except (KeyError, TypeError, ValueError):
        return None


def _silent_ms(beat: BeatInstance, now_ms: int) -> int:
    """How long ago it was seen. A future heartbeat dates from before the clock was set back."""
    return abs(now_ms - beat.seen_ms)


def _name(beat: BeatInstance) -> str:
    return beat.instance
