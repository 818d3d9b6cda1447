"""Actions on notices: the test of a route, and another attempt of dead deliveries."""

from __future__ import annotations

import secrets
import threading
import time
from collections.abc import Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING

from poller import errors, plugins
from poller.alerts.receivers import registry
from poller.db import database_clock
from poller.db.alerts import delivery_listing, delivery_rows
from poller.domain.access.actor import Actor
from poller.domain.access.audit_entry import AuditEntry
from poller.domain.alerts.telling import notice_text
from poller.domain.alerts.telling.delivery import delivery_key
from poller.domain.alerts.telling.notice import Notice, NoticeKind
from poller.domain.failures import outcome
from poller.presentation.alerts.notifications_json import Retried, RouteTest, TestedReceiver
from poller.service import action_audit
from poller.service.alerts import shown_notifications

if TYPE_CHECKING:
    from poller.alerts.receivers.registry import MadeReceiver
    from poller.bootstrap import Services

#: A receiver that does not answer within this time is left alone.
PATIENCE_S = 60.0
_ANSWER = 500


@dataclass(slots=True)
class _Answer:
    """The findings of the thread that sends."""

    text: str = ""
    error: BaseException | None = None


def send_test(services: Services, actor: Actor, name: str) -> RouteTest:
    """Send a test to every receiver of a route from this machine, and store the deliveries.

    Raises NotFound, StoreError while the database is away: the ledger must have the test.
    """
    route = shown_notifications.route(services.settings, name)
    now_ms = database_clock.now_ms(services.engine)
    notice = Notice(key=secrets.token_hex(20), kind=NoticeKind.TEST, route=name, created_ms=now_ms)
    tested = [_test(services, each, notice) for each in route.all_receivers]
    failed = [each.receiver for each in tested if not each.ok]
    entry = AuditEntry("notification.test", name, after={"ok": not failed, "failed": failed})
    return RouteTest(
        route=name,
        ok=not failed,
        subject=notice_text.subject(notice),
        body=notice_text.body(notice),
        receivers=tested,
        note=action_audit.record(services, actor, entry),
    )


def retry(
    services: Services, actor: Actor, ids: Collection[int] = (), receiver: str = ""
) -> Retried:
    """Let dead deliveries be tried again: those of some ids, or all of a receiver.

    Raises InvalidInput, NotFound if an id is no dead delivery, StoreError. Nothing changes then.
    """
    if bool(ids) == bool(receiver):
        raise errors.InvalidInput(
            "name ids of deliveries, or a receiver, and not both",
            hint="poller notify deliveries --state dead lists them",
            field="receiver" if receiver else "ids",
        )
    now_ms = database_clock.now_ms(services.engine)
    found = delivery_listing.retry(services.engine, actor, ids, receiver, now_ms)
    return Retried(ids=found)


def _test(services: Services, name: str, notice: Notice) -> TestedReceiver:
    started_mono = time.monotonic()
    kind = registry.kind_of(name, services.settings.receiver)
    answer = _sent(services, name, notice)
    seconds = time.monotonic() - started_mono
    error = services.redactor.text(_error_text(answer.error)) if answer.error else ""
    hint = services.redactor.text(getattr(answer.error, "hint", ""))
    text = "" if error else services.redactor.text(outcome.clean(answer.text, _ANSWER))
    delivery_rows.record_test(services.engine, name, notice, text or error, not error)
    return TestedReceiver(
        receiver=name,
        kind=kind,
        ok=not error,
        answer=text,
        error=error,
        hint=hint,
        seconds=round(seconds, 3),
    )


def _sent(services: Services, name: str, notice: Notice) -> _Answer:
    """Send in a thread of its own: a hanging receiver must not hold the caller."""
    settings = services.settings
    answer = _Answer()
    try:
        made = registry.make(name, settings.receiver, settings.web_url)
    except errors.InvalidSetting as error:
        return _Answer(error=error)
    thread = threading.Thread(
        target=_send, args=(made, notice, answer), name=f"test-{name}", daemon=True
    )
    thread.start()
    thread.join(PATIENCE_S)
    if thread.is_alive():
        late = errors.StoreUnavailable(f"{name}: no answer within {PATIENCE_S:g} s")
        return _Answer(error=late)
    return answer


def _send(made: MadeReceiver, notice: Notice, answer: _Answer) -> None:
    try:
        answer.text = str(made.receiver.send(notice, delivery_key(notice.key, made.name)))
    except BaseException as error:  # noqa: BLE001  door: a plugin's receiver, in a thread's end
        answer.error = error
    finally:
        registry.close(made)


def _error_text(error: BaseException) -> str:
    if isinstance(error, errors.PollerError):
        return outcome.clean(str(error), _ANSWER)
    return outcome.clean(plugins.error_text(error), _ANSWER)
