"""Accidents that a test injects into the answers of one router."""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from poller import errors


class Mishap(enum.StrEnum):
    """The failure of an answer. The first four happen after `after` octets of the answer."""

    STALL = "stall"  # sends nothing more; with `seconds`, sends the rest after that delay
    RESET = "reset"  # resets the connection
    CLOSE = "close"  # closes the connection
    GARBAGE = "garbage"  # sends bytes that are not the protocol
    FATAL = "fatal"  # sends !fatal with `text` and closes the connection
    TRAP = "trap"  # refuses the command with `text`


@dataclass(frozen=True, slots=True)
class Accident:
    """A mishap for the next `times` answers to `command`.

    `times=0` means all answers, and an empty `command` any command except a login.
    """

    mishap: Mishap
    command: str = ""
    after: int = 0  # octets of the answer that are sent before the mishap
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
        """Rebuild an accident from `dataclasses.asdict`, also after a trip through JSON."""
        return cls(**{**fields, "mishap": Mishap(fields["mishap"])})


class Accidents:
    """The accidents that have not happened yet, by the address of the router."""

    def __init__(self) -> None:
        self._pending: dict[str, list[Accident]] = {}

    def expect(self, address: str, accident: Accident) -> None:
        self._pending.setdefault(address, []).append(accident)

    def forget(self, address: str) -> None:
        self._pending.pop(address, None)

    def take(self, address: str, command: str) -> Accident | None:
        """Return the first accident for this command, and count it as happened."""
        pending = self._pending.get(address, [])
        for position, accident in enumerate(pending):
            if accident.concerns(command):
                if accident.times == 1:
                    del pending[position]
                elif accident.times > 1:
                    pending[position] = replace(accident, times=accident.times - 1)
                return accident
        return None
