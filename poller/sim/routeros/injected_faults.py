"""Accidents that a test asks for: what goes wrong with the answer to one command, on one router."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from poller import errors


class Mishap(enum.StrEnum):
    STALL = "stall"  # says the beginning, then nothing; with `seconds`, the rest after all
    RESET = "reset"  # says the beginning, then resets the connection
    CLOSE = "close"  # says the beginning, then hangs up politely
    GARBAGE = "garbage"  # says the beginning, then something that is not the protocol
    FATAL = "fatal"  # says !fatal and `text`, and hangs up
    TRAP = "trap"  # refuses the command with `text`


@dataclass(frozen=True, slots=True)
class Accident:
    """What happens to the next `times` answers to `command` (0: to all; "": to whatever is asked but a login)."""

    mishap: Mishap
    command: str = ""
    after: int = 0  # octets of the answer that come through
    seconds: float | None = None
    text: str = "simulated failure"
    times: int = 1

    def __post_init__(self) -> None:
        for name, value in (
            ("after", self.after),
            ("times", self.times),
            ("seconds", self.seconds or 0),
        ):
            if value < 0:
                raise errors.InvalidInput(f"{name}: {value} is out of range", hint="give 0 or more")

    def concerns(self, command: str) -> bool:
        return command == self.command if self.command else command != "/login"

    @classmethod
    def from_dict(cls, fields: Mapping[str, Any]) -> Accident:
        """The inverse of `dataclasses.asdict`, after a journey through JSON."""
        return cls(**{**fields, "mishap": Mishap(fields["mishap"])})


class Accidents:
    """What is still to happen, by router."""

    def __init__(self) -> None:
        self._coming: dict[str, list[Accident]] = {}

    def expect(self, address: str, accident: Accident) -> None:
        self._coming.setdefault(address, []).append(accident)

    def forget(self, address: str) -> None:
        self._coming.pop(address, None)

    def take(self, address: str, command: str) -> Accident | None:
        """The first accident that concerns this command; it has then happened once more."""
        coming = self._coming.get(address, [])
        for place, accident in enumerate(coming):
            if accident.concerns(command):
                if accident.times == 1:
                    del coming[place]
                elif accident.times > 1:
                    coming[place] = replace(accident, times=accident.times - 1)
                return accident
        return None
