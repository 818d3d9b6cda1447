"""Recognizes the process's own limit of open files, so that no device is blamed for it."""

from __future__ import annotations

import errno
import re

from poller import errors

_ERRNOS = (errno.EMFILE, errno.ENFILE)
#: Libraries in Rust raise an OSError without an errno; the number is in its text.
_RUST_ERRNO = re.compile(r"\(os error (\d+)\)")


def no_file_left(error: BaseException, device: str) -> errors.CollectorBusy | None:
    """Return CollectorBusy, which opens no breaker, if the limit caused this error; else None."""
    if not isinstance(error, OSError) or _errno(error) not in _ERRNOS:
        return None
    return errors.CollectorBusy(
        f"no socket was left for {device}, so nothing was sent",
        cause="too many open files on this worker",
        hint=(
            "raise the limit (ulimit -n, LimitNOFILE= of systemd, ulimits: of Docker), "
            "or more workers"
        ),
    )


def _errno(error: OSError) -> int | None:
    if error.errno is not None:
        return error.errno
    match = _RUST_ERRNO.search(str(error))
    return int(match[1]) if match else None
