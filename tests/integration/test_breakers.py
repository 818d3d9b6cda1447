"""`poller breaker` and `poller deadletter` on a real board and a real inventory."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import redis

from poller import bootstrap
from poller.cli import main
from poller.db import migrate
from poller.db.inventory import targets
from poller.db.record import dead_letter_rows
from poller.db.scrapes import scraped_devices
from poller.domain.failures.dead_letter import Letter, Reason
from poller.domain.failures.outcome import Result
from poller.domain.inventory.poll_target import TargetSpec
from poller.domain.record.event_kinds import Kind
from poller.domain.record.overview import State
from poller.domain.record.target_status import Status
from poller.service import command_actor
from poller.service.operations import letter_actions
from poller.state.board import moves as board_moves
from poller.state.board.board_values import Move, Place
from tests.conftest import wait_until
from tests.integration.breaker_worlds import MINUTE_MS, QUEUE, World


class Done(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Cli = Callable[..., Done]


@pytest.fixture
def world(
    home: Path, valkey_url: str, redis_client: redis.Redis, monkeypatch: pytest.MonkeyPatch
) -> Iterator[World]:
    monkeypatch.setenv("POLLER_REDIS_URL", valkey_url)
    services = bootstrap.services()
    migrate.upgrade(services.engine)
    yield World(services)
    services.engine.dispose()


@pytest.fixture
def cli(world: World, capsys: pytest.CaptureFixture[str]) -> Cli:
    def run(*arguments: str) -> Done:
        capsys.readouterr()
        return Done(main.run(arguments), *capsys.readouterr())

    return run


def test_open_breakers_are_listed_and_counted(world: World, cli: Cli) -> None:
    """The list has each open breaker with its failures, next poll and last error."""
    ids = world.add(3)
    assert cli("breaker", "list").err == "no breaker is open\n"
    world.fail(ids[:1])
    listed = cli("breaker", "list", "--json").json
    assert (listed["total"], [item["device"] for item in listed["items"]]) == (1, ["d1"])
    item = listed["items"][0]
    assert (item["breaker"], item["by"], item["failures"], item["trips"]) == (
        "open",
        "failures",
        7,
        2,
    )
    assert 600 <= item["for_seconds"] <= 610
    assert 290 <= item["in_seconds"] <= 300
    assert (item["error_code"], item["message"]) == ("timeout", "no answer")
    assert cli("breaker", "show", "d2", "--json").json["items"][0]["breaker"] == "closed"
    assert world.seen().breakers_open == 1
    assert "1 open: poller breaker list" in cli("status").out


def test_a_reset_closes_at_once_and_its_event_names_the_operator(world: World, cli: Cli) -> None:
    """The target is due at its next slot; the status keeps the last error."""
    ids = world.add(2)
    world.fail(ids[:1])
    assert cli("breaker", "reset", "d1/snmp", "d2", "--json").json["reset"] == 1
    status = world.board.statuses(ids)[ids[0]]
    assert (status.breaker.trips, status.failures, status.code) == (0, 0, "timeout")
    due = world.score(world.services.keys.due(QUEUE), ids[0])
    assert due is not None
    assert due <= world.board.now_ms() + MINUTE_MS
    events = world.events(Kind.BREAKER_CLOSED)
    assert [(event.device, event.data["who"], event.data["failures"]) for event in events] == [
        ("d1", command_actor.operator_name(), 7)
    ]
    assert world.seen().breakers_open == 0
    assert world.sound(ids)


def test_a_reset_keeps_a_run_in_flight_whose_finish_wins(world: World, cli: Cli) -> None:
    """The run keeps its token, and no target is in two places."""
    ids = world.add(1)
    world.fail(ids)
    world.board.demand(ids)
    claim = world.claim()
    started = world.board.start(claim.token, 0, "c", 15_000, ids)
    assert cli("breaker", "reset", "d1", "--json").json["in_flight"] == 1
    assert world.board.statuses(ids)[ids[0]].breaker.trips == 0
    move = Move(
        ids[0], world.board.now_ms() + 900_000, started.targets[0].status.pack(), Place.URGENT
    )
    assert world.board.finish(claim.token, [move]).results == [Result.OK]
    assert world.board.statuses(ids)[ids[0]].breaker.trips == 2
    assert (world.seen().breakers_open, world.sound(ids)) == (1, True)


def test_an_opening_by_hand_holds_until_its_end(world: World, cli: Cli) -> None:
    """A slot or an edit does not end it. The first poll after its end counts as postponed."""
    ids = world.add(2)
    done = cli("breaker", "open", "d1", "--for", "2h", "--json").json
    assert (done["opened"], done["by"]) == (1, command_actor.operator_name())
    now_ms, until_ms = world.board.now_ms(), world.board.now_ms() + 7_200_000
    assert world.claim(now_ms + 10 * MINUTE_MS).parts[0].ids == [str(ids[1])]
    world.board.place("", [(TargetSpec(ids[0], 2, QUEUE, 30_000, 5_000), now_ms)], 2)
    assert world.claim(now_ms + 11 * MINUTE_MS).targets == 0
    item = cli("breaker", "list", "--json").json["items"][0]
    assert (item["by"], item["breaker"], item["trips"]) == (
        f"hand ({command_actor.operator_name()})",
        "open",
        0,
    )
    assert world.seen().opened_by_hand == 1
    claim = world.claim(until_ms + 1_000)
    assert claim.parts[0].ids == [str(ids[0])]
    answers = world.board.start(claim.token, 0, "c", 15_000, ids[:1], until_ms + 1_000).targets
    assert (answers[0].result, answers[0].postponed) == (Result.OK, True)
    assert world.seen().opened_by_hand == 0
    events = world.events(Kind.BREAKER_OPENED)
    [event] = events
    assert (event.device, event.data["who"], event.data["by"]) == (
        "d1",
        command_actor.operator_name(),
        "hand",
    )
    assert (event.device_id, event.data["address"]) == (1, "192.0.2.1")


def test_an_opening_by_hand_survives_a_poll_in_flight(world: World, cli: Cli) -> None:
    """The result of that poll is stored; the next poll waits for the end of the opening."""
    ids = world.add(1)
    world.board.demand(ids)
    claim = world.claim()
    world.board.start(claim.token, 0, "c", 15_000, ids)
    assert cli("breaker", "open", "d1", "--json").json["in_flight"] == 1
    soon = world.board.now_ms() + 1_000
    world.board.finish(claim.token, [Move(ids[0], soon, Status(State.OK, 1, 2, 3).pack())])
    assert world.claim(soon + 1).targets == 0
    assert world.sound(ids)
    world.board.demand(ids)  # an operator wants a poll all the same
    assert world.claim().targets == 1


def test_a_reset_ends_an_opening_by_hand(world: World, cli: Cli) -> None:
    """The target is polled at its next slot."""
    world.add(1)
    cli("breaker", "open", "d1")
    assert cli("breaker", "reset", "d1", "--json").json["reset"] == 1
    assert world.claim(world.board.now_ms() + MINUTE_MS).targets == 1
    assert world.seen().opened_by_hand == 0


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (("breaker", "open", "d1", "--for", "40d"), 2, "out of bounds"),
        (("breaker", "open", "d1", "--for", "soon"), 2, '--for: "soon" is not a duration'),
        (("breaker", "open", "d1", "--for", "0s"), 2, "choose 1s to 30d"),
        (("breaker", "show", "d9"), 3, 'no device named "d9"'),
        (("breaker", "reset", "d1/ping"), 3, 'no target named "ping"'),
        (("deadletter", "show", "d1"), 3, "no dead letter"),
        (("deadletter", "requeue"), 2, "add DEVICE/TARGET, --reason auth_failed or --all"),
        (("deadletter", "requeue", "--reason", "auth_fail"), 2, "did you mean auth_failed?"),
        (("deadletter", "requeue", "d1", "--all"), 2, "say which"),
        (("deadletter", "drop", "--site", "ams"), 3, 'no site named "ams"'),
        (("deadletter", "list", "--code", "nonsense"), 2, "no error code"),
    ],
)
def test_an_invalid_command_names_the_mistake(
    world: World, cli: Cli, words: tuple[str, ...], code: int, said: str
) -> None:
    """The error names the mistake and has the exit code of its kind."""
    world.add(1)
    done = cli(*words)
    assert (done.code, said in done.err) == (code, True)


def test_letters_are_listed_by_cause_and_shown_with_advice(world: World, cli: Cli) -> None:
    """The list starts with groups by reason, and filters narrow it."""
    ids = world.add(3)
    assert cli("deadletter", "list").err == "no dead letter\n"
    world.park(ids[:2])
    world.park(ids[2:], Reason.OPEN_TOO_LONG)
    listed = cli("deadletter", "list", "--json").json
    assert [(group["reason"], group["letters"]) for group in listed["groups"]] == [
        ("auth_failed", 2),
        ("open_too_long", 1),
    ]
    assert (listed["total"], len(listed["items"])) == (3, 3)
    some = cli("deadletter", "list", "--reason", "open_too_long", "--limit", "1", "--json").json
    assert [item["device"] for item in some["items"]] == ["d3"]
    shown = cli("deadletter", "show", "d1/snmp")
    assert "reason: auth_failed" in shown.out
    assert "hint: " in shown.out
    assert world.seen().dead_letters == {"auth_failed": 2, "open_too_long": 1}
    assert "3 need a person (dead letters)" in cli("status").out


def test_few_letters_are_requeued_at_once_and_many_are_spread(world: World, cli: Cli) -> None:
    """64 letters a second are due. A target opened by hand is not requeued but reported."""
    ids = world.add(150)
    world.park(ids)
    cli("breaker", "open", "d150")
    assert cli("deadletter", "requeue", "--all", "--dry-run", "--json").json["letters"] == 150
    assert world.services.redis.zcard(world.services.keys.parked) == 150
    done = cli("deadletter", "requeue", "--reason", "auth_failed", "--json").json
    assert (done["requeued"], done["opened_by_hand"]) == (149, 1)
    now_ms = world.board.now_ms()
    assert world.claim(now_ms).targets == 64
    assert world.claim(now_ms + board_moves.REQUEUE_EVERY_MS).targets == 64
    assert world.claim(now_ms + 2 * board_moves.REQUEUE_EVERY_MS).targets == 21
    assert world.sound(ids)
    events = world.events(Kind.DEAD_LETTER_REQUEUED)
    assert {event.target_id for event in events} == set(ids[:149])
    assert None not in {event.device_id for event in events}


def test_letters_that_would_fill_the_stream_of_events_are_one_event(
    world: World, cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The event names all targets and devices. The share of the stream is made tiny here."""
    monkeypatch.setattr(letter_actions, "_STREAM_SHARE", world.services.settings.events_length // 2)
    ids = world.add(3)
    world.park(ids)
    assert cli("deadletter", "requeue", "--all", "--json").json["requeued"] == 3
    [event] = world.events(Kind.DEAD_LETTER_REQUEUED)
    assert (event.data["who"], event.data["targets"], len(event.data["devices"])) == (
        command_actor.operator_name(),
        ids,
        3,
    )


def test_waiting_for_a_requeued_letter_can_time_out(world: World, cli: Cli) -> None:
    """Without a worker the wait ends with the exit code of a timeout."""
    ids = world.add(1)
    world.park(ids)
    done = cli("deadletter", "requeue", "d1", "--wait", "0.3", "--json")
    assert (done.code, done.json["waiting"]) == (124, 1)


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_requeued_letter_that_still_fails_is_named_with_its_error(
    world: World, cli: Cli, form: str
) -> None:
    """The text has one line for each failure, JSON a list. The exit code is 1."""
    ids = world.add(2)
    world.park(ids)

    def fail_both() -> None:
        wait_until(
            lambda: len(world.events(Kind.DEAD_LETTER_REQUEUED)) == 2, "two requeued letters"
        )
        world.fail(ids, Place.PARKED, Reason.AUTH_FAILED)

    worker = threading.Thread(target=fail_both)
    worker.start()
    done = cli(
        "deadletter", "requeue", "--all", "--wait", "30", *(["--json"] if form == "json" else [])
    )
    worker.join()
    assert done.code == 1
    if form == "text":
        head = "requeued 2 dead letters: 0 answer, 2 still fail, 0 without a result"
        assert done.out.splitlines() == [
            head,
            "  d1/snmp  timeout: no answer",
            "  d2/snmp  timeout: no answer",
        ]
    else:
        failure = {
            "device": "d1",
            "target": "snmp",
            "error_code": "timeout",
            "message": "no answer",
        }
        assert done.json["failures"] == [failure, {**failure, "device": "d2"}]


def test_a_requeue_of_opened_targets_only_fails(world: World, cli: Cli) -> None:
    """No letter was requeued: a script must not take that for success."""
    world.park(world.add(1))
    cli("breaker", "open", "d1")
    done = cli("deadletter", "requeue", "d1")
    assert (done.code, done.out) == (1, "requeued 0 dead letters\n")
    assert "1 breaker opened by hand: poller breaker reset DEVICE" in done.err


def test_a_dropped_letter_disables_its_target(world: World, cli: Cli) -> None:
    """The command wants a confirmation. The letter leaves at once, with an event."""
    ids = world.add(2)
    world.park(ids)
    refused = cli("deadletter", "drop", "d1")
    assert (refused.code, "disable 1 target (d1/snmp)" in refused.err) == (2, True)
    assert cli("deadletter", "drop", "d1", "--confirm", "2").code == 2
    assert len(cli("deadletter", "list", "--json").json["items"]) == 2
    assert cli("deadletter", "drop", "d1", "--yes", "--json").json["dropped"] == 1
    assert [item["device"] for item in cli("deadletter", "list", "--json").json["items"]] == ["d2"]
    assert [target.enabled for target in targets.listing(world.services.engine)] == [False, True]
    assert [event.data["did"] for event in world.events(Kind.DEAD_LETTER_CLEARED)] == ["dropped"]


@pytest.mark.parametrize(
    ("verb", "kind"), [("requeue", Kind.DEAD_LETTER_REQUEUED), ("drop", Kind.DEAD_LETTER_CLEARED)]
)
def test_an_event_of_a_letter_names_its_device_by_id(
    world: World, cli: Cli, verb: str, kind: Kind
) -> None:
    """Tokens of one site and the history of a device find events by this id."""
    [target] = world.add(1)
    world.park([target])
    confirmed = ["--yes"] if verb == "drop" else []
    cli("deadletter", verb, "d1", *confirmed)
    [device] = scraped_devices.find(world.services.engine, ["d1"])
    [event] = world.events(kind)
    assert (event.target_id, event.device_id) == (target, device.id)


def test_a_thousand_letters_are_dropped_only_by_their_number(world: World, cli: Cli) -> None:
    """`--yes` is not enough for that many letters."""
    ids = world.add(1_001)
    rows = [Letter(i, 5, Reason.OPEN_TOO_LONG, "timeout", "no answer", 1, 2, 3, 4) for i in ids]
    dead_letter_rows.write(world.services.engine, rows)
    refused = cli("deadletter", "drop", "--all", "--yes")
    assert (refused.code, "--confirm 1001" in refused.err) == (2, True)
    assert (
        cli("deadletter", "drop", "--all", "--confirm", "1001", "--json").json["dropped"] == 1_001
    )
    assert dead_letter_rows.count(world.services.engine, dead_letter_rows.Wanted()) == 0
