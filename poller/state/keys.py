"""Every Redis key we own. All begin with the prefix (`poller:` by default).

| key              | type    | content                                                          |
|------------------|---------|------------------------------------------------------------------|
| `due:<queue>`    | zset    | target id -> instant at which it is due, in ms                   |
| `urgent:<queue>` | zset    | the same for targets that go first; 1 = at once, on demand       |
| `inflight`       | zset    | target id -> end of its lease, in ms                             |
| `parked`         | zset    | target id -> next slow retry, in ms                              |
| `held`           | zset    | target id -> number of its dark site                             |
| `unwell`         | zset    | target id, unless it is ok -> end of its last good poll, in ms   |
| `released`       | set     | targets that were held and not polled since                      |
| `queues`         | set     | queues of the board; an empty one that no target needs leaves    |
| `spec`           | hash    | target id -> version, interval, timeout, queue                   |
| `run`            | hash    | target id -> token, plan, attempts, call of its flight           |
| `edited`         | hash    | target id -> instant at which it is due, if edited in flight     |
| `status`         | hash    | target id -> mark and JSON, see domain/record/target_status.py   |
| `opened`         | hash    | target id -> end, start, operator, reason of one opened by hand   |
| `counts`         | hash    | mark of a status -> number of targets                            |
| `needs`          | hash    | queue -> polls that it needs, in millionths per second           |
| `board`          | hash    | inventory `version`, last claim's `clock`, last pause `resumed`  |
| `outbox`         | string  | the last claim, until the leader confirms its publication        |
| `epoch`          | string  | number of leaders so far                                         |
| `leader`         | hash    | token, name, epoch, start and lock time of the leader            |
| `standbys`       | zset    | beat process -> its last heartbeat, in ms                        |
| `beats`          | hash    | beat process -> its heartbeat, see cluster/beat_registry.py      |
| `job_queues`     | hash    | queue of jobs -> when a living worker last took from it, in ms   |
| `workers`        | hash    | worker name#instance -> its heartbeat, as JSON                   |
| `doubts`         | hash    | collector and release -> crashes, isolation, quarantine, as JSON |
| `stats:<n>`      | hash    | counters of the n-th slice of ten seconds; expires               |
| `sites:<n>`      | hash    | polls and dark polls by site in that slice; expires              |
| `times:<n>`      | hash    | times of batches by queue in that slice, see metrics/queue_times.py |
| `dark`           | hash    | dark site -> its outage and canaries, as JSON                    |
| `down`           | hash    | device id of a device told as down -> since, ids of its targets  |
| `troubled`       | set     | targets that were told as failing                                |
| `rules`          | string  | version of the alert rules, as the leader knows it; none before  |
| `marks`          | hash    | target id -> rules that hold for it, see domain/alerts/mark.py   |
| `alert_news`     | zset    | `t<target id>` or `d<device id>` -> when it changed, in ms       |
| `totals`         | hash    | the counters of `stats:<n>` since the board was made             |
| `job_totals`     | hash    | counters of job runs, see cluster/job_totals.py                  |
| `poll_totals`    | hash    | counters of polls by collector, see domain/metrics/poll_totals.py |
| `poll_totals:<hour>` | hash | these counters as they were in an hour of the last day; expires |
| `errors`         | list    | the newest failures, as JSON; bounded                            |
| `set_aside`      | list    | queue entries that are no Celery messages, as JSON; bounded      |
| `events`         | stream  | events, see domain/record/event_kinds.py; bounded                |
| `recorded`       | string  | id of the last entry of `events` that is in SQL                  |
| `prune`          | hash    | `reason` and `text` of old rows that the last pass did not prune |
| `own`            | set     | queues `<queue>~<worker>` that batches were published to         |
| `attending`      | hash    | worker name#instance -> its start in ms, once published          |
| `drains`         | hash    | worker name -> its drain: who, why and until when, as JSON       |
| `request:<hash>` | string  | response to a request with an Idempotency-Key, as JSON; expires  |
| `running:<name>` | string  | sign of life of such a request, while it acts; expires           |
| `ticket:<name>`  | string  | targets of a poll on demand, for an hour, as JSON; expires       |
| `tickets`        | zset    | name of a ticket -> instant of its request, in ms; bounded       |
| `act:<name>`     | string  | progress of an act on many devices, for an hour, as JSON; expires |
| `undo:<name>`    | string  | what such an act changed, to take it back, as JSON; expires      |
| `scrape:<name>`  | string  | result of the poll of a scrape, or ? and who sent it; expires     |
| `scrapes`        | zset    | running poll of a scrape -> the end of its time, in ms; bounded  |
| `scrapers`       | zset    | who asked for such a poll -> when that is forgotten, in ms       |
| `readings`       | stream  | polls of the `stream` sink; bounded                              |
| `readings:<sink>` | stream | polls of a sink of this kind with another name; bounded          |
| `counters:<sink>:<hour>` | hash | target id -> last counters that the sink wrote; expires   |
| `logins:<subject>` | string | failed log-ins of an address or user, as a hash; expires        |
| `wake`           | channel | wakes the leader: `inventory` `demand` `leader` `worker` `jobs`  |
| `domains`        | channel | wakes the workers: the list of queues changed, or a drain        |
| `scraped`        | channel | tells the web processes which poll of a scrape ended             |
| `redbeat::lock`  | string  | RedBeat's lock: the token of the leader                          |
| `redbeat::schedule` | zset | key of an entry -> when it is due, in seconds                    |
| `redbeat:job:*`  | hash    | RedBeat's entry of a job, see cluster/entry_records.py           |
| `redbeat:*`      | mixed   | RedBeat's other entries                                          |

Celery's queues are lists without the prefix. Urgent batches are in the list with the name of the
queue (`poll.snmp`), routine batches in the list with kombu's mark of priority 5 after that name.
Only one worker takes from `<queue>~<worker>`: it keeps the sessions of the devices polled there.
"""

from __future__ import annotations

from dataclasses import dataclass

#: Length of one slice of the statistics.
SLICE_MS = 10_000
#: Priorities of Celery messages. On Redis the lower number goes first, and each has its own list.
URGENT_PRIORITY = 0
ROUTINE_PRIORITY = 5
#: The mark that kombu appends to the name of a queue for the list of routine messages.
ROUTINE_MARK = f"\x06\x16{ROUTINE_PRIORITY}"

_TYPES = {
    "zset": (
        "inflight",
        "parked",
        "held",
        "unwell",
        "standbys",
        "schedule",
        "tickets",
        "scrapes",
        "scrapers",
        "alert_news",
    ),
    "set": ("released", "queues", "own", "troubled"),
    "hash": (
        *("spec", "run", "edited", "status", "opened", "counts", "needs", "board"),
        *("leader", "workers", "attending", "doubts", "dark", "down", "totals", "job_totals"),
        *("prune", "beats", "job_queues", "poll_totals", "marks", "drains"),
    ),
    "string": ("outbox", "epoch", "recorded", "lock", "rules"),
    "list": ("errors", "set_aside"),
    "stream": ("events", "readings"),
}
_CHANNELS = ("wake", "domains", "scraped")
#: The type of every key with a fixed name.
TYPES = {name: kind for kind, names in _TYPES.items() for name in names}
#: Names that `Keys` offers as attributes.
NAMES = frozenset((*TYPES, *_CHANNELS)) - {"lock", "schedule"}


@dataclass(frozen=True, slots=True)
class Keys:
    """Names of keys with the prefix in front. The Lua scripts build the same names."""

    prefix: str = "poller:"

    def due(self, queue: str) -> str:
        """The due targets of a queue."""
        return f"{self.prefix}due:{queue}"

    def urgent(self, queue: str) -> str:
        """The urgent targets of a queue."""
        return f"{self.prefix}urgent:{queue}"

    def sites(self, slice_number: int) -> str:
        """The counters of sites in one slice."""
        return f"{self.prefix}sites:{slice_number}"

    def times(self, slice_number: int) -> str:
        """The times of batches in one slice."""
        return f"{self.prefix}times:{slice_number}"

    def hourly_totals(self, hour: int) -> str:
        """The counters of polls by collector as they were in an hour since 1970."""
        return f"{self.prefix}poll_totals:{hour}"

    def stats(self, slice_number: int) -> str:
        """The counters of one slice."""
        return f"{self.prefix}stats:{slice_number}"

    def request(self, name: str) -> str:
        """The record of a request with an Idempotency-Key."""
        return f"{self.prefix}request:{name}"

    def running_request(self, owner: str) -> str:
        """The sign of life of a request with an Idempotency-Key."""
        return f"{self.prefix}running:{owner}"

    def logins(self, subject: str) -> str:
        """The counter of failed log-ins of an address or a user."""
        return f"{self.prefix}logins:{subject}"

    def counters(self, sink: str, hour: int) -> str:
        """The last counters of targets that a sink wrote within an hour."""
        return f"{self.prefix}counters:{sink}:{hour}"

    def scrape(self, name: str) -> str:
        """The result of the poll of a scrape."""
        return f"{self.prefix}scrape:{name}"

    def act(self, name: str) -> str:
        """The progress of an act on many devices."""
        return f"{self.prefix}act:{name}"

    def undo(self, name: str) -> str:
        """The changes of an act on many devices."""
        return f"{self.prefix}undo:{name}"

    def ticket(self, name: str) -> str:
        """The ticket of a poll on demand."""
        return f"{self.prefix}ticket:{name}"

    @property
    def lock(self) -> str:
        """RedBeat's lock."""
        return f"{self.prefix}redbeat::lock"

    @property
    def schedule(self) -> str:
        """RedBeat's sorted set of entries."""
        return f"{self.prefix}redbeat::schedule"

    def entry(self, name: str) -> str:
        """An entry of RedBeat."""
        return f"{self.prefix}redbeat:{name}"

    def job_entry(self, job: str) -> str:
        """RedBeat's entry of a job."""
        return self.entry(f"job:{job}")

    def __getattr__(self, name: str) -> str:
        if name in NAMES:
            return self.prefix + name
        raise AttributeError(name)
