"""The state of `poller top`, and how each key changes it. Nothing here reads a store or a key."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from dataclasses import dataclass, replace

from poller.domain.record.overview import Overview
from poller.presentation.health import Health
from poller.service.fleet.device_listing import ListedDevice
from poller.service.fleet.fleet_picture import FleetPicture


class Wish(enum.Enum):
    """A request of a key to the loop."""

    NOTHING = enum.auto()
    QUIT = enum.auto()
    READ = enum.auto()  # the filter changed
    POLL = enum.auto()
    OPEN = enum.auto()


@dataclass(frozen=True, slots=True)
class TopData:
    """The data that was read last."""

    overview: Overview
    health: Health
    fleet: FleetPicture
    devices: Sequence[ListedDevice]
    problem: str = ""  # of the filter, or of a store
    more: bool = False  # more devices match than were read


@dataclass(frozen=True, slots=True)
class TopState:
    """The view of the terminal. `typed` is the filter while somebody types it; None otherwise."""

    data: TopData | None = None
    where: str = ""
    only_failing: bool = True
    selected: str = ""  # the name of a device: the mark follows it when rows move
    typed: str | None = None
    paused: bool = False
    may_poll: bool = False
    note: str = ""
    detail: Sequence[str] = ()  # sentences about the opened device

    @property
    def names(self) -> list[str]:
        return [each.device.name for each in self.data.devices] if self.data else []

    def with_data(self, data: TopData) -> TopState:
        """The state with new data; the selection stays on its device."""
        names = [each.device.name for each in data.devices]
        selected = self.selected if self.selected in names else (names[0] if names else "")
        return replace(self, data=data, selected=selected)


def pressed(state: TopState, key: str) -> tuple[TopState, Wish]:
    """Return the state after a key, and what is to be done."""
    if state.typed is not None:
        return _typing(state, key)
    if key in ("q", "\x03"):
        return state, Wish.QUIT
    if key == "\x1b":
        return replace(state, detail=(), note=""), Wish.NOTHING
    if key == "/":
        return replace(state, typed=state.where), Wish.NOTHING
    if key in ("j", "DOWN", "k", "UP"):
        return _moved(state, 1 if key in ("j", "DOWN") else -1), Wish.NOTHING
    if key == "f":
        return replace(state, only_failing=not state.only_failing), Wish.READ
    if key in (".", " "):
        return replace(state, paused=not state.paused), Wish.NOTHING
    if key == "p" and state.selected:
        return state, Wish.POLL
    if key in ("\r", "\n") and state.selected:
        return state, Wish.OPEN
    return state, Wish.NOTHING


def _typing(state: TopState, key: str) -> tuple[TopState, Wish]:
    typed = state.typed or ""
    if key in ("\r", "\n"):
        return replace(state, where=typed.strip(), typed=None), Wish.READ
    if key in ("\x1b", "\x03"):
        return replace(state, typed=None), Wish.NOTHING
    if key in ("\x7f", "\b"):
        return replace(state, typed=typed[:-1]), Wish.NOTHING
    if len(key) == 1 and key.isprintable():
        return replace(state, typed=typed + key), Wish.NOTHING
    return state, Wish.NOTHING


def _moved(state: TopState, step: int) -> TopState:
    names = state.names
    if not names:
        return state
    at = names.index(state.selected) if state.selected in names else 0
    place = min(len(names) - 1, max(0, at + step))
    return replace(state, selected=names[place], detail=(), note="")
