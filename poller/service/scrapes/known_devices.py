"""Devices of the inventory that scrapes ask for, kept in the memory of a web process.

A scrape of a kept device takes no SQL. A change of the inventory is seen within a second, or
within CONFIRMED_S of a pause between scrapes.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller.db.inventory import inventory_feed
from poller.db.scrapes import scraped_devices
from poller.db.scrapes.scraped_devices import ScrapedDevice
from poller.domain.batched import batched

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: Devices that nobody asked for during this time are forgotten.
UNUSED_S = 300.0
#: Devices and polls that no store confirmed within this time are read again before they are used.
CONFIRMED_S = 3.0
#: Texts that are kept; further ones are looked up each time.
MOST_TEXTS = 100_000
_PAGE = 500

Devices = tuple[ScrapedDevice, ...]


@dataclass(slots=True)
class _Entry:
    devices: Devices
    asked_mono: float
    read_mono: float
    is_confirmed: bool = False  # read after the version that the process knows


class KnownDevices:
    """The devices by name and by address. Safe for threads."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._lock = threading.Lock()
        self._entries: dict[str, _Entry] = {}
        self._version = -1
        self._confirmed_mono = float("-inf")  # the last look at the version

    def kept(self, text: str) -> Devices | None:
        """Return the devices of a name or address without SQL; None if they have to be read."""
        entry = self._entries.get(text)
        if entry is None:
            return None
        now_mono = entry.asked_mono = time.monotonic()
        confirmed_mono = max(entry.read_mono, self._confirmed_mono)
        return entry.devices if now_mono < confirmed_mono + CONFIRMED_S else None

    def find(self, text: str) -> Devices:
        """Return the devices of a name or address; none for a stranger. Raises StoreError."""
        kept = self.kept(text)
        if kept is not None:
            return kept
        now_mono = time.monotonic()
        found = self._load([text])[text]
        with self._lock:
            entry = self._entries.get(text)
            if entry is not None and entry.devices == found:
                entry.read_mono = now_mono
                return entry.devices  # the same object: scrapes are compared by it
            if entry is not None or len(self._entries) < MOST_TEXTS:
                self._entries[text] = _Entry(found, now_mono, now_mono)
        return found

    def refresh(self) -> None:
        """Forget what is not in use, and read the rest again after a change. Raises StoreError."""
        texts = self._in_use()
        if not texts:
            return
        now_mono = time.monotonic()
        version = inventory_feed.version(self._services.engine)
        if version == self._version:
            texts = [text for text in texts if not self._entries[text].is_confirmed]
        for page in batched(texts, _PAGE):
            for text, found in self._load(page).items():
                self._confirm(text, found)
        self._version = version
        self._confirmed_mono = now_mono

    def _in_use(self) -> list[str]:
        oldest_mono = time.monotonic() - UNUSED_S
        with self._lock:
            unused = [key for key, each in self._entries.items() if each.asked_mono < oldest_mono]
            for text in unused:
                del self._entries[text]
            return list(self._entries)

    def _confirm(self, text: str, found: Devices) -> None:
        entry = self._entries[text]  # only this thread removes entries
        if entry.devices != found:
            entry.devices = found
        entry.is_confirmed = True

    def _load(self, texts: Sequence[str]) -> dict[str, Devices]:
        found: dict[str, list[ScrapedDevice]] = {text: [] for text in texts}
        for device in scraped_devices.find(self._services.engine, texts):
            for text in {device.name, device.address}:
                if text in found:
                    found[text].append(device)
        return {text: tuple(of_text) for text, of_text in found.items()}
