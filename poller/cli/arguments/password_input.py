"""A password from a hidden prompt, typed twice, or from stdin; never from an argument."""

from __future__ import annotations

import getpass
import sys

from poller import errors


def new_password(user: str) -> str:
    """The password of a user. Raises InvalidInput."""
    from poller.security import passwords

    if not sys.stdin.isatty():
        piped = sys.stdin.read().rstrip("\r\n")
        if not piped:
            raise errors.InvalidInput(
                "the password is missing", hint="type it at a terminal, or pipe it to stdin"
            )
        if "\n" in piped:
            raise errors.InvalidInput("the piped password has more than one line")
        return piped

    typed = getpass.getpass(f"password of {user}: ")
    passwords.refuse_different(typed, getpass.getpass("again: "))
    return typed
