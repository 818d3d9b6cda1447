"""Passwords: what is accepted, how it is checked, and that unknown users cost as much."""

from __future__ import annotations

import pytest
from argon2 import PasswordHasher

from poller import errors
from poller.security import passwords


def test_a_password_is_recognised_by_its_hash() -> None:
    """The hash is Argon2id, differs each time, and does not contain the password."""
    first = passwords.hashed("correct horse battery")
    assert first.startswith("$argon2id$")
    assert first != passwords.hashed("correct horse battery")
    assert passwords.matches(first, "correct horse battery")
    assert not passwords.matches(first, "correct horse battery ")
    assert not passwords.matches("no hash", "correct horse battery")


def test_an_unknown_user_costs_the_work_of_a_known_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hash is verified without a user too, and never matches."""
    verified = []

    class Hasher:
        def verify(self, stored: str, password: str) -> bool:
            verified.append(stored)
            return True

    monkeypatch.setattr(passwords, "_HASHER", Hasher())
    assert not passwords.matches(None, "any password at all")
    assert len(verified) == 1
    assert verified[0].startswith("$argon2id$v=19$m=19456,t=2,p=1$")


def test_a_hash_of_older_parameters_is_outdated() -> None:
    """The next log-in replaces it."""
    older = PasswordHasher(memory_cost=64, time_cost=1, parallelism=1)
    assert passwords.is_outdated(older.hash("x"))
    assert not passwords.is_outdated(passwords.hashed("x"))


@pytest.mark.parametrize("password", ["", "short", "x" * 1025, "AdministratorKim"])
def test_a_password_that_is_guessed_quickly_is_refused(password: str) -> None:
    """The error does not repeat the password."""
    with pytest.raises(errors.InvalidInput) as refused:
        passwords.checked(password, "administratorkim")
    assert not password or password not in str(refused.value)


def test_a_password_that_is_too_long_costs_no_more() -> None:
    """A megabyte is not hashed, and matches nothing."""
    stored = passwords.hashed("y" * 20)
    assert not passwords.matches(stored, "y" * 1_000_000)
