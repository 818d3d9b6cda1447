"""Passwords of local users: Argon2id hashes, and a check that costs the same for unknown users."""

from __future__ import annotations

import threading

from argon2 import PasswordHasher, Type
from argon2 import exceptions as theirs

from poller import errors

SHORTEST = 12
LONGEST = 1024
#: The field that a password has in bodies of the API and in forms.
FIELD = "password"
#: OWASP's parameters for Argon2id: 19 MiB, two passes, one lane.
_HASHER = PasswordHasher(time_cost=2, memory_cost=19_456, parallelism=1, type=Type.ID)
#: Hashes at the same time: a flood of log-ins takes neither all memory nor all cores.
_TURNS = threading.BoundedSemaphore(2)
#: The hash of a random text that was forgotten, with the same parameters.
_NOBODY = (
    "$argon2id$v=19$m=19456,t=2,p=1$oZLUO7VTj0WjEqw9TMpuvg$tJrxmn"
    "TK0g4L5QMoowAMPXWf3WMy4PULkk7mu2QCJsk"
)


def checked(password: str, user: str = "") -> str:
    """Return a password that may be stored. Raises InvalidInput, without the password."""
    if len(password) < SHORTEST:
        raise errors.InvalidInput(
            f"the password has {len(password)} characters, at least {SHORTEST} are needed",
            hint="use a sentence, or the output of: openssl rand -base64 18",
            field=FIELD,
        )
    if len(password) > LONGEST:
        raise errors.InvalidInput(f"the password has more than {LONGEST} characters", field=FIELD)
    if not password.isprintable():
        raise errors.InvalidInput("the password has a character that cannot be typed", field=FIELD)
    if user and password.lower() == user.lower():
        raise errors.InvalidInput("the password is the name of the user", field=FIELD)
    return password


def refuse_different(password: str, again: str) -> None:
    """Raise InvalidInput if a password was typed in two ways."""
    if password != again:
        raise errors.InvalidInput("the two passwords differ", field="again")


def hashed(password: str) -> str:
    """Return the hash to store."""
    with _TURNS:
        return _HASHER.hash(password)


def matches(stored: str | None, password: str) -> bool:
    """Whether the password is the one of the hash. Without a hash the answer takes as long."""
    if len(password) > LONGEST or not password.isprintable():
        password = ""
    with _TURNS:
        try:
            is_right = _HASHER.verify(stored or _NOBODY, password)
        except (theirs.VerificationError, theirs.InvalidHashError):
            return False
    return is_right and stored is not None


def is_outdated(stored: str) -> bool:
    """Whether a hash was made with other parameters than today's."""
    return _HASHER.check_needs_rehash(stored)
