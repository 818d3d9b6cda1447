"""Rows in compressed blocks are found, replaced and removed by id."""

from __future__ import annotations

from poller.domain.inventory.poll_target import PollTarget
from poller.workers.inventory.packed_rows import IDS_PER_BLOCK, PackedRows


def target(number: int, address: str = "10.0.0.1") -> PollTarget:
    return PollTarget(number, 1, "t", number, "d", address, "ams", "snmp", 60_000, 5_000)


def test_rows_are_found_in_whatever_block_they_are() -> None:
    """Unknown ids are missing, also those of a block that has other rows."""
    ids = range(1, 3 * IDS_PER_BLOCK, 2)
    rows: PackedRows[PollTarget] = PackedRows()
    rows.put({number: target(number) for number in ids})
    assert rows.get(range(10 * IDS_PER_BLOCK)) == {number: target(number) for number in ids}


def test_rows_are_replaced_and_removed_without_touching_their_neighbours() -> None:
    rows: PackedRows[PollTarget] = PackedRows()
    rows.put({number: target(number) for number in range(1, 5)})
    rows.put({2: target(2, "10.9.9.9")})
    rows.remove([3, 99])
    assert rows.get([1, 2, 3, 4]) == {1: target(1), 2: target(2, "10.9.9.9"), 4: target(4)}
