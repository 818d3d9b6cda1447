"""Every Redis key we own. All begin with the prefix (`poller:` by default).

| key                 | type   | content                                                                      |
|---------------------|--------|------------------------------------------------------------------------------|
| `due:<queue>`       | zset   | target id -> instant it falls due, in ms; one set per queue                  |
| `urgent:<queue>`    | zset   | the same for those that go first: 1 = asked for by a person, else a probe    |
| `inflight`          | zset   | target id -> end of its lease, in ms                                         |
| `parked`            | zset   | target id -> next slow retry, in ms                                          |
| `held`              | zset   | target id -> number of its site, which is dark; waits for the site           |
| `returned`          | set    | targets that waited for their site and were not polled since                 |
| `queues`            | set    | queues that have targets; one without goes when nothing waits in it          |
| `spec`              | hash   | target id -> version, interval, timeout, queue of every enabled target       |
| `run`               | hash   | target id -> token, plan, attempts, call while it is in flight               |
| `edited`            | hash   | target id -> instant it falls due after its flight, if edited or removed     |
| `status`            | hash   | target id -> state letter and JSON, see domain/record/target_status.py                     |
| `barred`            | hash   | target id -> end, start, name of the person who keeps it from being polled   |
| `counts`            | hash   | mark of a status -> number of targets; kept by scripts that write `status`   |
| `needs`             | hash   | queue -> polls its targets need, in millionths per second                    |
| `board`             | hash   | `version` of the inventory it agrees with; `clock`: last seen by a leader    |
| `outbox`            | string | the last claim, until the leader says that it was published                  |
| `epoch`             | string | number of leaders so far                                                     |
| `leader`            | hash   | token, name, epoch, since and lock time of the leader                        |
| `standbys`          | zset   | beat processes -> last seen, in ms                                           |
| `workers`           | hash   | worker name#instance -> what it says of itself, as JSON                      |
| `doubts`            | hash   | collector and its release -> crashes, isolation, quarantine, as JSON         |
| `stats:<n>`         | hash   | counters of the n-th slice of ten seconds; expires                           |
| `sites:<n>`         | hash   | polls and dark polls by site in that slice; expires                          |
| `dark`              | hash   | site that is dark -> since, canaries and when they were asked, as JSON       |
| `totals`            | hash   | the same counters since the board was made                                   |
| `errors`            | list   | the newest failures, as JSON; bounded                                        |
| `events`            | stream | what happened, see domain/record/event_kinds.py; bounded; anybody may follow it          |
| `recorded`          | string | id of the last entry of `events` that is in SQL                              |
| `own`               | set    | queues of single workers, `<queue>~<worker>`, that batches were published to |
| `attending`         | hash   | worker name#instance -> its start in ms, if said to have joined              |
| `readings`          | stream | polls of the `stream` sink; bounded                                          |
| `wake`              | channel| notes for the leader: `inventory`, `demand`, `leader`, `worker`              |
| `domains`           | channel| notes for the workers: a queue came or went                                  |
| `redbeat::lock`     | string | RedBeat's lock: the token of the leader                                      |
| `redbeat:*`         | mixed  | RedBeat's own entries                                                        |

Queues are Celery's: their keys are their names (`poll.snmp`), without prefix. What goes first is in the list of
that name, routine polls are in the one with kombu's mark for priority 5 behind it. `<queue>~<worker>` is a queue that
only this worker takes from: devices whose sessions it keeps.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Keys:
    """Names with the prefix in front; the Lua scripts build the same names from the prefix."""

    prefix: str = "poller:"

    def due(self, queue: str) -> str:
        return f"{self.prefix}due:{queue}"

    def urgent(self, queue: str) -> str:
        return f"{self.prefix}urgent:{queue}"

    def sites(self, slice_number: int) -> str:
        return f"{self.prefix}sites:{slice_number}"

    def stats(self, slice_number: int) -> str:
        return f"{self.prefix}stats:{slice_number}"

    def __getattr__(self, name: str) -> str:
        if name in NAMES:
            return self.prefix + name
        raise AttributeError(name)

    @property
    def lock(self) -> str:
        return f"{self.prefix}redbeat::lock"

    @property
    def redbeat_prefix(self) -> str:
        return f"{self.prefix}redbeat:"


_PLACES = (
    "inflight",
    "parked",
    "held",
    "returned",
    "queues",
    "spec",
    "run",
    "edited",
    "board",
    "outbox",
)
_FACTS = ("status", "barred", "counts", "needs", "dark")
_PEOPLE = (
    "epoch",
    "leader",
    "standbys",
    "workers",
    "own",
    "attending",
    "doubts",
    "wake",
    "domains",
)
_NEWS = ("totals", "errors", "events", "recorded", "readings")
NAMES = frozenset((*_PLACES, *_FACTS, *_PEOPLE, *_NEWS))
