"""The `nats` sink: a message for every poll in JetStream, de-duplicated by its Nats-Msg-Id."""

from __future__ import annotations

import asyncio
import os
import random
from collections.abc import Coroutine, Sequence
from contextlib import suppress
from typing import Any, ClassVar, TypeVar

import nats.errors
import nats.js.errors
from nats.js.api import StreamConfig

from poller import errors
from poller.domain.failures import outcome
from poller.sinks.api import API_VERSION, Sample, Stores
from poller.sinks.bus import poll_messages
from poller.sinks.bus.loop_thread import LoopThread
from poller.sinks.bus.nats.nats_link import NatsLink, Outgoing, Refusal
from poller.sinks.bus.nats.nats_options import NatsOptions
from poller.sinks.bus.poll_messages import MessageMaker

#: Error codes of JetStream for a message that no repetition makes smaller.
_TOO_LARGE = frozenset({10054})

T = TypeVar("T")


class NatsSink:
    name: ClassVar[str] = "nats"
    api_version: ClassVar[int] = API_VERSION
    Options: ClassVar[type[NatsOptions]] = NatsOptions
    write_polls: ClassVar[int] = 256

    def __init__(self, stores: Stores, options: NatsOptions) -> None:
        self._name = stores.name
        self._options = options
        self._dropped = stores.dropped
        self._maker = MessageMaker()
        self._loop = LoopThread(f"nats-{stores.name}")
        self._link: NatsLink | None = None
        self._left_out: list[tuple[int, str]] = []  # counted when the polls of a call are stored
        options.login(stores.name)

    def write(self, samples: Sequence[Sample]) -> None:
        """Publish the polls and wait for all acks. JetStream stores a repetition once."""
        if samples:
            self._left_out.clear()
            refusals = self._run(self._publish(samples))
            self._sort_out(refusals)
            for readings, reason in self._left_out:
                self._dropped(readings, reason)

    def check(self) -> str:
        """Say which server answers, and which stream has the subject."""
        return self._run(self._describe())

    def close(self) -> None:
        if self._loop.is_running:
            with suppress(errors.StoreError, TimeoutError):
                self._loop.run(self._drop_link(), self._options.timeout_s)
        self._loop.close()

    def _run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        timeout_s = self._options.timeout_s
        try:
            return self._loop.run(coroutine, timeout_s)
        except errors.PollerError:
            raise
        except TimeoutError:
            raise self._away(f"not all acks came within {timeout_s:g} s") from None
        except ConnectionError as error:
            raise self._away(os.strerror(error.errno) if error.errno else str(error)) from None
        except (OSError, nats.errors.Error) as error:
            raise self._away(str(error) or type(error).__name__) from None

    async def _publish(self, samples: Sequence[Sample]) -> list[Refusal]:
        try:
            async with asyncio.timeout(self._options.timeout_s):
                link = await self._connected()
                return await link.publish(self._outgoing(samples, link.max_payload))
        except BaseException:
            await self._drop_link()
            raise

    def _outgoing(self, samples: Sequence[Sample], max_bytes: int) -> list[Outgoing]:
        outgoing = []
        for sample in samples:
            subject = poll_messages.place(self._options.subject, sample.target)
            made = self._maker.messages(sample, max_bytes)
            if made.left_out:
                reason = f"{sample.target.name}: a reading is larger than max_payload of NATS"
                self._left_out.append((made.left_out, reason))
            # Not by target and time alone: several sinks and installations may share a stream.
            unique = f"{self._name}/{subject}"
            outgoing += [
                Outgoing(subject, f"{unique}/{each.id}", each.payload) for each in made.messages
            ]
        return outgoing

    async def _connected(self) -> NatsLink:
        if self._link is not None and self._link.client.is_connected:
            return self._link
        await self._drop_link()
        login = self._options.login(self._name)
        failure: Exception = OSError("no server")
        servers = list(self._options.servers)
        random.shuffle(servers)  # spreads the workers over the servers
        for server in servers:
            try:
                self._link = await NatsLink.connect(server, {"name": "poller", **login})
                break
            except (OSError, nats.errors.Error) as error:
                failure = error
        else:
            raise failure
        if self._options.create_stream:
            await self._create_stream(self._link)
        return self._link

    async def _create_stream(self, link: NatsLink) -> None:
        options = self._options
        jetstream = link.client.jetstream(timeout=options.timeout_s)
        try:
            await jetstream.stream_info(options.stream)
        except nats.js.errors.NotFoundError:
            await jetstream.add_stream(
                StreamConfig(
                    name=options.stream,
                    subjects=[poll_messages.wildcard(options.subject)],
                    max_age=options.max_age_s,
                    duplicate_window=min(options.duplicate_window_s, options.max_age_s),
                    num_replicas=options.replicas,
                )
            )

    async def _describe(self) -> str:
        async with asyncio.timeout(self._options.timeout_s):
            link = await self._connected()
            subject = poll_messages.wildcard(self._options.subject)
            version = link.client.connected_server_version
            server = f"nats-server {version.major}.{version.minor}.{version.patch}"
            jetstream = link.client.jetstream(timeout=self._options.timeout_s)
            try:
                stream = await jetstream.find_stream_name_by_subject(subject)
                info = await jetstream.stream_info(stream)
            except nats.js.errors.NotFoundError:
                return f"{server}: no stream has the subject {subject}"
        window_s = info.config.duplicate_window or 0
        messages = info.state.messages
        return f"{server}: stream {stream}, {messages} messages, duplicate window {window_s:g} s"

    async def _drop_link(self) -> None:
        link, self._link = self._link, None
        if link is not None:
            await link.close()

    def _sort_out(self, refusals: Sequence[Refusal]) -> None:
        """Count messages that are too large; raise the first other refusal."""
        for refusal in refusals:
            if refusal.code in _TOO_LARGE:
                self._left_out.append((1, f"{refusal.message.subject}: {refusal.text}"))
                continue
            raise errors.StoreUnavailable(
                f"{self._name}: JetStream does not store {refusal.message.subject}",
                cause=outcome.clean(refusal.text),
                hint=_NO_STREAM if refusal.code <= 0 else _FULL,
            )

    def _away(self, cause: str) -> errors.StoreUnavailable:
        servers = ", ".join(self._options.servers)
        return errors.StoreUnavailable(
            f"{self._name}: NATS does not answer at {servers}",
            cause=outcome.clean(cause),
            hint="check servers, login and TLS of the sink, and whether nats-server runs with -js",
        )


_NO_STREAM = "create a stream for the subject, or set create_stream = true of the sink"
_FULL = "see the limits of the stream: nats stream info"
