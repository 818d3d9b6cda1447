"""RedBeat's scheduler for entries that are not jobs: people may add their own."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import redis
from kombu.exceptions import KombuError
from redbeat.schedulers import RedBeatScheduler

from poller import errors
from poller.beat.jobs.due_entries import RETRY_S
from poller.observability import logs

log = logs.get(__name__)

#: Failures that are no damage of an entry: the next tick tries again.
AWAY = (errors.StoreUnavailable, redis.ConnectionError, redis.TimeoutError, KombuError, OSError)


class PlainEntries(RedBeatScheduler):  # type: ignore[misc]
    """RedBeat's tick, for entries that are named to it. It loads no entry of a job."""

    _keys: Sequence[str] = ()
    _damaged: frozenset[str] = frozenset()  # entries that were logged

    def run_plain(self, keys: Sequence[str]) -> float:
        """Run these entries if they are due. Returns RedBeat's pause, in seconds."""
        self._keys = keys
        try:
            return float(RedBeatScheduler.tick(self))
        except AWAY:
            raise
        except Exception:  # door: RedBeat's entries, which another program may have damaged
            log.exception("entries_broke")
            return RETRY_S

    @property
    def schedule(self) -> dict[str, Any]:
        """The entries that RedBeat's tick runs. One that another program damaged is left out."""
        loaded = {}
        for key in self._keys:
            try:
                entry = self.Entry.from_key(key, app=self.app)
            except AWAY:
                raise
            except Exception:  # door: RedBeat's entries, which another program may have damaged
                if key not in self._damaged:
                    self._damaged |= {key}
                    log.exception("entry_damaged", key=key)
                continue
            loaded[entry.name] = entry
        return loaded
