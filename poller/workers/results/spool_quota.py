"""The disk space of a process for results that wait, and which spool gives way."""

from __future__ import annotations

from typing import Protocol

#: Beyond the limit whole files are dropped, so each file is a small part of the limit.
FILES_PER_LIMIT = 16
MIN_FILE_BYTES = 64 * 1024
MAX_FILE_BYTES = 64 * 1024 * 1024
#: The share of the disk space that the ledger and dead letters have before any sink.
OWN_SHARE = 0.5


class SizedSpool(Protocol):
    """A spool as the quota sees it."""

    is_sink: bool

    @property
    def size(self) -> int:
        """Bytes on disk."""
        ...


class SpoolQuota:
    """The disk space that all spools of a process share.

    When it is used up, the largest spool of a sink drops files: a dead sink has what the others
    leave. The spools of the ledger and of dead letters drop files only beyond OWN_SHARE.
    """

    def __init__(self, limit_bytes: int) -> None:
        self.limit_bytes = limit_bytes
        file_bytes = max(limit_bytes // FILES_PER_LIMIT, MIN_FILE_BYTES)
        self.file_bytes = min(file_bytes, MAX_FILE_BYTES)
        self.spools: list[SizedSpool] = []

    def is_exceeded_by(self, spool: SizedSpool) -> bool:
        """Whether the quota is used up and this spool is the one to drop files."""
        # Other spools change at the same time; at worst one of them drops a file a moment later.
        sizes = {each: each.size for each in self.spools}
        if sum(sizes.values()) <= self.limit_bytes:
            return False
        own = {each for each in sizes if not each.is_sink}
        is_own_too_large = sum(sizes[each] for each in own) > self.limit_bytes * OWN_SHARE
        candidates = own if is_own_too_large else sizes.keys() - own
        largest = max((sizes[each] for each in candidates), default=0)
        return spool in candidates and sizes[spool] == largest
