"""One marked sample to a sink, and what its store answered: `poller sinks test` and the API.

The sample takes the way of all others: the sink of the settings is made, and its `write` called.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from poller import errors, plugins
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.failures import outcome
from poller.domain.inventory import did_you_mean
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.reading import Reading, ReadingSet
from poller.presentation.cluster.sinks_json import SinkTest
from poller.presentation.record import instants
from poller.service import action_audit
from poller.service.cluster import sink_listing
from poller.sinks import api, registry
from poller.sinks.api import Sample
from poller.sinks.made_sink import MadeSink

if TYPE_CHECKING:
    from poller.bootstrap import Services

METRIC = "poller_sink_test"
DEVICE = "poller-sink-test"
#: A store that does not answer within this time is down.
PATIENCE_S = 30.0


@dataclass(slots=True)
class _Answer:
    """The result of the thread that asks the store."""

    text: str = ""
    error: BaseException | None = None


def send(services: Services, actor: Actor, name: str) -> tuple[SinkTest, str]:
    """Send one marked sample. Return the answer, and a note if the audit log has no row of it.

    Raises NotFound for an unknown sink, InvalidSetting for one whose options are wrong.
    """
    made = _make(services, name)
    at_ms = time.time_ns() // 1_000_000
    started_mono = time.monotonic()
    answer = _ask(made, marked_sample(name, at_ms))
    seconds = time.monotonic() - started_mono
    error = services.redactor.text(_text(answer.error)) if answer.error else ""
    hint = services.redactor.text(getattr(answer.error, "hint", ""))
    entry = AuditEntry("sink.test", name, after={"ok": not error, "error": error})
    note = action_audit.record(services, actor, entry)
    result = SinkTest(
        name=name,
        kind=made.kind,
        ok=not error,
        answer=services.redactor.text(answer.text),
        error=error,
        hint=hint,
        seconds=round(seconds, 3),
        metric=METRIC,
        labels={"sink": name},
        at=instants.of_ms(at_ms),
    )
    return result, note


def marked_sample(name: str, at_ms: int) -> Sample:
    """Return the sample of a test: no device has it, and its label names the sink."""
    target = PollTarget(0, 0, "sink-test", 0, DEVICE, "", "", "poller", 60_000, 10_000)
    return Sample(target, at_ms, ReadingSet.of([Reading(METRIC, 1.0, {"sink": name})]))


def _make(services: Services, name: str) -> MadeSink:
    settings = services.settings
    installed = registry.survey().plugins
    known = [*sink_listing.configured_kinds(settings), *installed]
    did_you_mean.refuse_unknown("sink", name, known, "poller sinks")
    stores = api.Stores(services.engine, services.redis, settings)
    [made] = registry.load([name], stores, tables=settings.sink)
    return made


def _ask(made: MadeSink, sample: Sample) -> _Answer:
    """Write and check in a thread of its own: a hanging store must not hold the caller."""
    answer = _Answer()
    thread = threading.Thread(
        target=_write_and_check, args=(made, sample, answer), name="sink-test", daemon=True
    )
    thread.start()
    thread.join(PATIENCE_S)
    if thread.is_alive():
        hint = "look whether the store is overloaded, or something on the way drops packets"
        return _Answer(
            error=errors.StoreUnavailable(f"no answer within {PATIENCE_S:g} s", hint=hint)
        )
    return answer


def _write_and_check(made: MadeSink, sample: Sample, answer: _Answer) -> None:
    try:
        made.sink.write([sample])
        if made.left_out.samples:
            raise errors.StoreError(f"the sink left the sample out: {made.left_out.reason}")
        check: Any = getattr(made.sink, "check", None)
        said = outcome.clean(str(check())) if check else ""
        answer.text = said or "the store took the sample"
    except BaseException as error:  # noqa: BLE001  door: a plugin's sink, in a thread's end
        answer.error = error
    finally:
        registry.close_all([made])


def _text(error: BaseException) -> str:
    if isinstance(error, errors.PollerError):
        return outcome.clean(str(error))
    return outcome.clean(plugins.error_text(error))
