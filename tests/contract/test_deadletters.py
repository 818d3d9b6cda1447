"""Dead letters stay true on every database, however late, often or out of order they are
written.
"""

from __future__ import annotations

import threading
from dataclasses import replace

import pytest
from sqlalchemy.engine import Engine

from poller.db.inventory import devices, targets
from poller.db.inventory.inventory_feed import Author
from poller.db.record import dead_letter_rows, letter_groups
from poller.db.record.dead_letter_rows import Wanted
from poller.domain.failures.dead_letter import Letter, Reason
from poller.domain.inventory.draft import DeviceDraft, TargetDraft

EVERY = Wanted()


@pytest.fixture
def ids(engine: Engine) -> list[int]:
    """Four devices of two sites, each with one target; the last target has another collector."""
    for number in range(1, 5):
        draft = DeviceDraft(f"d{number}", "192.0.2.1", site="ams" if number < 3 else "ber")
        devices.add(
            engine, draft, [TargetDraft(name="t", collector="snmp" if number < 4 else "ping")]
        )
    return [target.id for target in targets.listing(engine)]


def letter(target_id: int, **changes: object) -> Letter:
    made = Letter(
        target_id,
        5_000,
        Reason.AUTH_FAILED,
        "auth_failed",
        "naïve ‘no’ % ?",
        1_000,
        2_000,
        9_000,
        2,
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def stored(engine: Engine) -> dict[int, Letter]:
    return {
        named.letter.target_id: named.letter for named in dead_letter_rows.listing(engine, EVERY)
    }


def test_letters_have_pages_and_sites(engine: Engine, ids: list[int]) -> None:
    """A page begins after the key of the one before; letters of other sites are left out."""
    letters = [letter(ids[0]), letter(ids[1]), letter(ids[2], parked_ms=1_000)]
    dead_letter_rows.write(engine, letters)
    first = dead_letter_rows.listing(engine, EVERY, 2)
    assert [named.letter.target_id for named in first] == [ids[2], ids[0]]
    rest = dead_letter_rows.listing(engine, EVERY, 2, after=(2_000, ids[0]))
    assert [named.letter.target_id for named in rest] == [ids[1]]
    here = dead_letter_rows.listing(engine, Wanted(site="ber"))
    assert [named.letter.target_id for named in here] == [ids[2]]
    assert sum(group.letters for group in letter_groups.groups(engine, Wanted(site="ams"))) == 2


def test_a_letter_comes_back_as_it_was_written(engine: Engine, ids: list[int]) -> None:
    """A dead letter is read with the names of its target, also after it is written twice."""
    for _ in range(2):
        dead_letter_rows.write(engine, [letter(ids[0]), letter(ids[1])])
    found = dead_letter_rows.listing(engine, EVERY)
    assert [named.letter for named in found] == [letter(ids[0]), letter(ids[1])]
    assert (found[0].device, found[0].target, found[0].collector, found[0].site) == (
        "d1",
        "t",
        "snmp",
        "ams",
    )


def test_a_failed_retry_is_recorded_and_a_success_clears_it(engine: Engine, ids: list[int]) -> None:
    """A failed retry changes every field but the time of parking, even if the board lost that
    time.
    """
    dead_letter_rows.write(engine, [letter(ids[0])])
    again = letter(
        ids[0], last_ms=6_000, parked_ms=6_000, next_ms=12_000, attempts=3, message="still no"
    )
    dead_letter_rows.write(engine, [again])
    assert stored(engine) == {ids[0]: replace(again, parked_ms=2_000)}
    dead_letter_rows.write(engine, [Letter(ids[0], 7_000)])
    assert stored(engine) == {}


def test_an_older_letter_changes_nothing(engine: Engine, ids: list[int]) -> None:
    """A worker that was cut off writes its dead letters an hour later, without effect."""
    dead_letter_rows.write(engine, [letter(ids[0])])
    dead_letter_rows.write(engine, [letter(ids[0], last_ms=4_000, attempts=1)])
    dead_letter_rows.write(engine, [Letter(ids[0], 4_999)])
    assert stored(engine) == {ids[0]: letter(ids[0])}


def test_the_last_of_several_letters_counts(engine: Engine, ids: list[int]) -> None:
    """Several dead letters of one target in one statement leave the last one."""
    one, other = ids[:2]
    rows = [
        letter(one),
        Letter(one, 6_000),
        letter(other),
        Letter(other, 6_000),
        letter(other, last_ms=7_000),
    ]
    dead_letter_rows.write(engine, rows)
    assert stored(engine) == {other: letter(other, last_ms=7_000)}


def test_a_target_that_is_not_polled_gets_no_letter(engine: Engine, ids: list[int]) -> None:
    """A dead letter that arrives after its target or device was removed or disabled is not
    written.
    """
    devices.remove(engine, ["d1"])
    targets.edit(engine, "d2", "t", TargetDraft(enabled=False))
    devices.edit(engine, "d3", DeviceDraft("d3", enabled=False))
    dead_letter_rows.write(engine, [letter(i) for i in ids])
    assert dead_letter_rows.page(engine, 0, 10) == [(ids[3], 5_000)]


def test_letters_of_targets_that_are_not_polled_are_removed(engine: Engine, ids: list[int]) -> None:
    """Dead letters of disabled targets are not listed, and the next pass removes them."""
    dead_letter_rows.write(engine, [letter(i) for i in ids])
    devices.remove(engine, ["d1"])
    targets.edit(engine, "d2", "t", TargetDraft(enabled=False))
    assert set(stored(engine)) == set(ids[2:])
    assert dead_letter_rows.count(engine, EVERY) == 2
    assert dead_letter_rows.forget_absent(engine) == 2
    assert [key for key, _ in dead_letter_rows.page(engine, 0, 10)] == ids[2:]


@pytest.mark.parametrize(
    ("wanted", "expected"),
    [
        (Wanted(reason="auth_failed"), {0, 1, 2}),
        (Wanted(codes=["timeout"]), {3}),
        (Wanted(collector="ping"), {3}),
        (Wanted(codes=["timeout", "auth_failed"]), {0, 1, 2, 3}),
        (Wanted(collector="ping", codes=["auth_failed"]), set()),
        (Wanted(ids=[]), set()),
    ],
)
def test_filters_combine(
    engine: Engine, ids: list[int], wanted: Wanted, expected: set[int]
) -> None:
    """Reason, code, collector, site and device filter together, and the count agrees with the
    list.
    """
    dead_letter_rows.write(engine, [letter(i) for i in ids[:3]])
    dead_letter_rows.write(
        engine, [letter(ids[3], reason=Reason.OPEN_TOO_LONG, error_code="timeout")]
    )
    found = {named.letter.target_id for named in dead_letter_rows.listing(engine, wanted)}
    assert found == {ids[place] for place in expected}
    assert dead_letter_rows.count(engine, wanted) == len(expected)


def test_letters_are_grouped_by_common_fields(engine: Engine, ids: list[int]) -> None:
    """The largest group comes first, with its first and last failure."""
    dead_letter_rows.write(
        engine, [letter(i, first_ms=number, last_ms=5_000 + number) for number, i in enumerate(ids)]
    )
    largest, other = letter_groups.groups(engine, EVERY)
    assert (largest.collector, largest.letters, largest.devices) == ("snmp", 3, 3)
    assert (largest.first_ms, largest.last_ms, other.collector) == (0, 5_002, "ping")


def test_dropping_disables_the_targets_in_one_change(engine: Engine, ids: list[int]) -> None:
    """Dropping dead letters wakes the scheduler once and leaves other targets as they are."""
    dead_letter_rows.write(engine, [letter(i) for i in ids[:3]])
    woken: list[int] = []
    assert dead_letter_rows.drop(engine, ids[:2], Author(notify=woken.append)) == 2
    assert set(stored(engine)) == {ids[2]}
    assert [target.enabled for target in targets.listing(engine)] == [False, False, True, True]
    assert len(woken) == 1


def test_dropping_spares_a_target_that_recovered_meanwhile(engine: Engine, ids: list[int]) -> None:
    """Between the question and the answer of an operator a letter may be cleared."""
    dead_letter_rows.write(engine, [letter(i) for i in ids[:2]])
    dead_letter_rows.write(engine, [letter(ids[0], reason=None, last_ms=9_000)])
    assert dead_letter_rows.drop(engine, ids[:2]) == 1
    assert [target.enabled for target in targets.listing(engine)][:2] == [True, False]


def test_concurrent_writers_do_not_lock_each_other_out(engine: Engine, ids: list[int]) -> None:
    """Two workers write the same dead letters in opposite orders while an operator removes a
    device.
    """
    failures: list[BaseException] = []

    def write(order: list[int]) -> None:
        try:
            for number in range(30):
                dead_letter_rows.write(engine, [letter(i, last_ms=5_000 + number) for i in order])
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=write, args=(order,)) for order in (ids, ids[::-1])]
    for thread in threads:
        thread.start()
    devices.remove(engine, ["d4"])
    for thread in threads:
        thread.join()
    dead_letter_rows.forget_absent(engine)
    assert failures == []
    assert set(stored(engine)) == set(ids[:3])
    assert [key for key, _ in dead_letter_rows.page(engine, 0, 10)] == ids[:3]
