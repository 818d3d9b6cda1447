"""The address of the page of the audit log: its filter and its page, so that it can be shared."""

from __future__ import annotations

import shlex
from dataclasses import dataclass, fields, replace
from typing import Annotated
from urllib.parse import urlencode

from fastapi import Depends, Query

from poller.db.access.audit_rows import AuditQuery
from poller.web.api.contract import paging
from poller.web.api.record import record_filters

#: Rows of one page.
LIMIT = 50
_Word = Annotated[str, Query(max_length=500)]
_Time = Annotated[str, Query(max_length=40)]


@dataclass(frozen=True, slots=True)
class AuditFilter:
    """The parameters of the address, as they were typed."""

    actor: str = ""
    action: str = ""
    subject: str = ""
    since: str = ""
    until: str = ""
    before: str = ""  # the cursor

    @property
    def wanted(self) -> AuditQuery:
        """The query of the service, with one row more than a page. Raises InvalidInput."""
        key = paging.decode(self.before, int)
        return AuditQuery(
            self.actor,
            self.action,
            self.subject,
            record_filters.since_ms(self.since),
            LIMIT + 1,
            key[0] if key else None,
            record_filters.until_ms(self.until),
        )

    @property
    def is_narrowed(self) -> bool:
        return any(text for name, text in self._texts() if name != "before")

    @property
    def command(self) -> str:
        """The command that lists the same rows."""
        words = ["poller", "audit"]
        for name, text in self._texts():
            if text and name != "before":
                words += [f"--{name}", text]
        return shlex.join(words)

    def url(self, path: str = "audit", **changes: str) -> str:
        """The address with some parameters changed. Every change goes back to the first page."""
        query = replace(self, **{"before": "", **changes})
        kept = {name: text for name, text in query._texts() if text}
        return f"{path}?{urlencode(kept)}" if kept else path

    def _texts(self) -> list[tuple[str, str]]:
        return [(each.name, getattr(self, each.name)) for each in fields(self)]


def _requested(
    actor: _Word = "",
    action: _Word = "",
    subject: _Word = "",
    since: _Time = "",
    until: _Time = "",
    before: Annotated[str, Query(max_length=2_000)] = "",
) -> AuditFilter:
    typed = (each.strip() for each in (actor, action, subject, since, until, before))
    return AuditFilter(*typed)


#: A parameter of a route: FastAPI makes it from the address.
RequestedAudit = Annotated[AuditFilter, Depends(_requested)]
