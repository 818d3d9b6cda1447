"""Two collectors, each one poll from top to bottom: a kept connection, a few requests, readings."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Hashable, Iterable, Mapping
from typing import Any, ClassVar

from poller.collectors import api
from poller.collectors.credentials import Token
from poller_proxmox import backup_server, trust, ve
from poller_proxmox.client import BadAnswer, Client, TokenRefused
from poller_proxmox.options import BackupOptions, VeOptions

#: We stop this long before the platform's deadline, so that what was read can still be handed over.
_HAND_OVER_S = 0.1


class _Proxmox:
    """What both have in common: a token, a connection that is kept, and parts that fail one by one."""

    name: ClassVar[str]
    api_version: ClassVar[int] = 1
    credentials: ClassVar[tuple[type[api.Credential], ...]] = (Token,)
    scheme: ClassVar[str]

    async def collect(self, poll: api.Poll) -> AsyncIterator[api.Yielded]:
        visit = _Visit(poll)
        error = await self._visit(visit)
        for item in visit.items:
            yield item
        yield api.Traffic(visit.requests)
        if error is not None:
            raise error

    async def _visit(self, visit: _Visit) -> api.DeviceError | None:
        """What ended it before its time, if anything; what was read until then is kept."""
        try:
            async with asyncio.timeout_at(visit.poll.deadline - _HAND_OVER_S):
                await visit.poll.session(self, lambda client: self.ask(client, visit))
        except TimeoutError:
            return api.DeviceTimeout(f"{visit.poll.address} did not answer all of it in time")
        except api.DeviceError as error:
            return error
        return None

    async def ask(self, client: Client, visit: _Visit) -> None:
        raise NotImplementedError

    def session_key(self, poll: api.Poll) -> Hashable:
        options = poll.options
        return options.port, options.ca_file, options.fingerprint, options.insecure

    async def open_session(self, poll: api.Poll) -> Client:
        options = poll.options
        if not isinstance(poll.credential, Token):
            raise api.DeviceAuthFailed(f"{self.name} needs a credential of kind token")
        context = trust.context(options.ca_file, options.fingerprint, options.insecure)
        return Client(poll.address, options.port, self.scheme, poll.credential, context)

    async def close_session(self, session: Client, *, politely: bool) -> None:
        await session.close()


class ProxmoxVe(_Proxmox):
    """Nodes, guests, storages and backups of a Proxmox VE cluster; any of its nodes answers for all."""

    name: ClassVar[str] = "proxmox"
    scheme: ClassVar[str] = "PVEAPIToken"
    Options: ClassVar[type[api.Options]] = VeOptions

    async def ask(self, client: Client, visit: _Visit) -> None:
        options: VeOptions = visit.poll.options
        for path in dict.fromkeys(ve.PATHS[part] for part in options.parts):
            parts = [part for part in options.parts if ve.PATHS[part] == path]
            data = await visit.get(client, path, ", ".join(parts))
            for part in parts if data is not None else ():
                visit.take(part, ve.readings(part, data, options.task_types))

    def help_texts(self, options: Any) -> Mapping[str, str]:
        return ve.HELP


class ProxmoxBackup(_Proxmox):
    """Datastores, backups and jobs of a Proxmox Backup Server."""

    name: ClassVar[str] = "proxmox-backup"
    scheme: ClassVar[str] = "PBSAPIToken"
    Options: ClassVar[type[api.Options]] = BackupOptions

    async def ask(self, client: Client, visit: _Visit) -> None:
        options: BackupOptions = visit.poll.options
        if (
            "node" in options.parts
            and (data := await visit.get(client, backup_server.NODE_STATUS, "node")) is not None
        ):
            visit.take("node", backup_server.node(data))
        if "datastores" in options.parts or "backups" in options.parts:
            await self._datastores(client, visit, options)
        if (
            "tasks" in options.parts
            and (data := await visit.get(client, backup_server.TASKS, "tasks")) is not None
        ):
            visit.take("tasks", backup_server.tasks(data, options.task_types))

    async def _datastores(self, client: Client, visit: _Visit, options: BackupOptions) -> None:
        data = await visit.get(client, backup_server.USAGE, "datastores")
        if data is None:
            return
        if "datastores" in options.parts:
            visit.take("datastores", backup_server.datastores(data))
        for store in backup_server.stores(data) if "backups" in options.parts else ():
            found = await visit.get(client, backup_server.groups_path(store), f"backups of {store}")
            if found is not None:
                visit.take(f"backups of {store}", backup_server.groups(store, found))

    def help_texts(self, options: Any) -> Mapping[str, str]:
        return backup_server.HELP


class _Visit:
    """What one poll has read, and which parts of it failed."""

    def __init__(self, poll: api.Poll) -> None:
        self.poll = poll
        self.items: list[api.Yielded] = []
        self.requests = 0

    async def get(self, client: Client, path: str, part: str) -> Any:
        """None when the server has no good answer to that: it costs only this part. Anything worse ends the poll."""
        self.requests += 1
        try:
            return await client.get(path)
        except TokenRefused:
            raise
        except (api.DeviceAuthFailed, api.DeviceUnsupported, BadAnswer) as error:
            self.items.append(api.PartFailed(part, error))
            return None

    def take(self, part: str, found: Iterable[api.Reading]) -> None:
        try:
            self.items += list(found)
        except api.DeviceError as error:
            self.items.append(api.PartFailed(part, error))
