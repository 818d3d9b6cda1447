"""Is nobody there, or may this process open no more files? The latter is our own trouble, and no device's."""

from __future__ import annotations

import errno
import re

from poller import errors

_NUMBERS = (errno.EMFILE, errno.ENFILE)
#: How a library in Rust says it: its OSError has no number.
_IN_TEXT = re.compile(r"\(os error (\d+)\)")


def of_files(error: BaseException, device: str) -> errors.CollectorBusy | None:
    """What a poll says of it, if that is what was wrong: nothing was sent, and no breaker opens."""
    if not isinstance(error, OSError):
        return None
    told = _IN_TEXT.search(str(error)) if error.errno is None else None
    number = int(told[1]) if told else error.errno
    if number not in _NUMBERS:
        return None
    return errors.CollectorBusy(
        f"no socket was left for {device}, so nothing was sent",
        cause="too many open files on this worker",
        hint="raise the limit (ulimit -n, LimitNOFILE= of systemd, ulimits: of Docker), or more workers",
    )
