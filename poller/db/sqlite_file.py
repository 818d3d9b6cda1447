"""The file of a SQLite database: created by an upgrade only, and checked before every use.

SQLite itself creates a missing file, and goes on writing into a deleted one.
"""

from __future__ import annotations

import os
from pathlib import Path
from urllib.parse import quote

from poller import errors

_MISSING_HINT = (
    "is this the right directory? POLLER_HOME and POLLER_DATABASE_URL name another; "
    "a new database: poller db upgrade"
)
_LOST_HINT = (
    "stop every process that uses it, put the right file back, and start again; "
    "results that are not stored wait in the spool directory"
)


class SqliteFile:
    """One database file as this process knows it, by device and inode."""

    def __init__(self, path: str) -> None:
        self.path = Path(os.path.abspath(path))
        self._known: tuple[int, int] | None = None

    @property
    def uri(self) -> str:
        """The address for the driver, with the mode that creates nothing."""
        return f"file:{quote(str(self.path))}?mode=rw"

    def create(self) -> None:
        """Make an empty file, which is an empty database, unless there is one. Raises ConfigError.

        The directory is made, too, for its owner only.
        """
        if self._known is not None:
            return
        try:
            self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        except OSError as error:
            raise errors.InvalidSetting(
                f"cannot create the database {self.path}",
                cause=f"{error.strerror}: {error.filename}",
                hint="set POLLER_HOME to a directory you may write to",
            ) from None
        os.close(file)

    def check(self) -> None:
        """Raise StoreUnavailable if there is no file, or another one than at the first check."""
        try:
            status = os.stat(self.path)
        except (FileNotFoundError, NotADirectoryError):
            raise self._absent() from None
        except OSError:
            return  # SQLite says why it cannot use the file

        found = (status.st_dev, status.st_ino)
        if self._known is None:
            self._known = found
        elif self._known != found:
            raise errors.StoreUnavailable(
                f"the database file {self.path} was replaced by another one under a running poller",
                hint=_LOST_HINT,
            )

    def _absent(self) -> errors.StoreUnavailable:
        if self._known is None:
            return errors.StoreUnavailable(
                f"there is no database file {self.path}", hint=_MISSING_HINT
            )
        return errors.StoreUnavailable(
            f"the database file {self.path} was deleted under a running poller", hint=_LOST_HINT
        )
