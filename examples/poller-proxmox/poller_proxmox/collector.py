"""The two collectors. Each sends a few requests over an open connection and yields readings.

A part that fails (`nodes`, `tasks`, ...) does not stop the other parts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Iterable, Mapping
from typing import Any, ClassVar

from poller.collectors import api
from poller.collectors.credentials import Token
from poller_proxmox import backup_server, trust, ve
from poller_proxmox.client import BadResponse, Client, TokenRefused
from poller_proxmox.options import BackupOptions, VeOptions, VePart

#: Reading ends this long before the deadline of the poll, so that the readings can be yielded.
_YIELD_TIME_S = 0.1


class _Proxmox:
    """The base of both collectors: a token, an open connection, and one error for the whole poll.

    A subclass sets the class variables and implements `_read_parts`.
    """

    name: ClassVar[str]
    api_version: ClassVar[int] = 1
    credentials: ClassVar[tuple[type[api.Credential], ...]] = (Token,)
    auth_scheme: ClassVar[str]

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        results = _PollResults()
        error = await self._read(poll, results)

        for item in results.items:
            yield item
        yield api.Traffic(results.requests)

        if error is not None:
            raise error

    async def _read(self, poll: api.Poll, results: _PollResults) -> api.DeviceError | None:
        """Fill `results`, and return the error that ended the poll early, if any."""

        async def read_parts(client: Client) -> None:
            await self._read_parts(client, poll.options, results)

        try:
            async with asyncio.timeout_at(poll.deadline - _YIELD_TIME_S):
                await poll.session(self, read_parts)
        except TimeoutError:
            return api.DeviceTimeout(f"{poll.address} did not answer all requests in time")
        except api.DeviceError as error:
            return error
        return None

    async def _read_parts(self, client: Client, options: Any, results: _PollResults) -> None:
        raise NotImplementedError

    def session_key(self, poll: api.Poll) -> Hashable:
        options = poll.options
        return options.port, options.ca_file, options.fingerprint, options.insecure

    async def open_session(self, poll: api.Poll) -> Client:
        options = poll.options
        if not isinstance(poll.credential, Token):
            raise api.DeviceAuthFailed(f"{self.name} needs a credential of kind token")

        context = trust.tls_context(options.ca_file, options.fingerprint, options.insecure)
        return Client(poll.address, options.port, self.auth_scheme, poll.credential, context)

    async def close_session(self, session: Client, *, politely: bool) -> None:
        await session.close()


class ProxmoxVe(_Proxmox):
    """Reads the nodes, guests, storages and backups of a Proxmox VE cluster from any one node."""

    name: ClassVar[str] = "proxmox"
    auth_scheme: ClassVar[str] = "PVEAPIToken"
    Options: ClassVar[type[api.Options]] = VeOptions

    async def _read_parts(self, client: Client, options: VeOptions, results: _PollResults) -> None:
        parts_by_path: dict[str, list[VePart]] = {}
        for part in options.parts:
            parts_by_path.setdefault(ve.PATHS[part], []).append(part)

        for path, parts in parts_by_path.items():
            data = await results.fetch(client, path, ", ".join(parts))
            if data is None:
                continue
            for part in parts:
                results.add(part, ve.readings(part, data, options.task_types))

    def help_texts(self, options: Any) -> Mapping[str, str]:
        return ve.HELP


class ProxmoxBackup(_Proxmox):
    """Reads the datastores, backups and jobs of a Proxmox Backup Server."""

    name: ClassVar[str] = "proxmox-backup"
    auth_scheme: ClassVar[str] = "PBSAPIToken"
    Options: ClassVar[type[api.Options]] = BackupOptions

    async def _read_parts(
        self, client: Client, options: BackupOptions, results: _PollResults
    ) -> None:
        if "node" in options.parts:
            data = await results.fetch(client, backup_server.NODE_STATUS, "node")
            if data is not None:
                results.add("node", backup_server.node(data))

        if "datastores" in options.parts or "backups" in options.parts:
            await self._read_datastores(client, options, results)

        if "tasks" in options.parts:
            data = await results.fetch(client, backup_server.TASKS, "tasks")
            if data is not None:
                results.add("tasks", backup_server.tasks(data, options.task_types))

    async def _read_datastores(
        self, client: Client, options: BackupOptions, results: _PollResults
    ) -> None:
        data = await results.fetch(client, backup_server.USAGE, "datastores")
        if data is None:
            return

        if "datastores" in options.parts:
            results.add("datastores", backup_server.datastores(data))

        if "backups" in options.parts:
            for store in backup_server.readable_stores(data):
                part = f"backups of {store}"
                groups = await results.fetch(client, backup_server.groups_path(store), part)
                if groups is not None:
                    results.add(part, backup_server.groups(store, groups))

    def help_texts(self, options: Any) -> Mapping[str, str]:
        return backup_server.HELP


class _PollResults:
    """The readings and failed parts of one poll, and the number of its requests."""

    def __init__(self) -> None:
        self.items: list[api.Yielded] = []
        self.requests = 0

    async def fetch(self, client: Client, path: str, part: str) -> Any:
        """Return the data of a path, or record the failure of the part and return None.

        Raises a DeviceError if further requests of the poll would fail too.
        """
        self.requests += 1
        try:
            return await client.get(path)
        except TokenRefused:
            raise
        except (api.DeviceAuthFailed, api.DeviceUnsupported, BadResponse) as error:
            self.items.append(api.PartFailed(part, error))
            return None

    def add(self, part: str, readings: Iterable[api.Reading]) -> None:
        """Add all readings of a part, or none and the failure of the part."""
        try:
            self.items += list(readings)
        except api.DeviceError as error:
            self.items.append(api.PartFailed(part, error))
