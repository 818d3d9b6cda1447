"""The scope of a run by hand: people mistype, and the job's package alone knows its scopes."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from functools import partial

from poller.bootstrap import Services
from poller.db import database_clock
from poller.domain.jobs import job_run
from poller.domain.jobs.job_run import Origin
from poller.domain.jobs.run_message import RunMessage
from poller.jobs import api
from poller.jobs.api import JobSpec, Scope
from poller.workers.jobs import scope_lists
from poller.workers.jobs.plugin_calls import PluginCalls

#: A person waits: a list that takes longer is not waited for.
CALL_S = 10.0
#: Scopes that a refusal names, and those among which the nearest are sought.
MOST_NAMED = 5
MOST_COMPARED = 2_000


class DemandScopes:
    """One per worker process, safe for threads."""

    def __init__(self, services: Services) -> None:
        self._services = services
        self._calls = PluginCalls(services.redactor.text, CALL_S)

    def fault(self, spec: JobSpec, message: RunMessage) -> str:
        """Why a run by hand is refused: the job does not list its scope. "" if it is not.

        Without a list, because the plugin fails or hangs, the person decides. Raises StoreError.
        """
        if message.origin is not Origin.DEMAND or spec.scopes is api.global_scope:
            return ""
        listed = self._listed(spec)
        wanted = Scope(message.scope_kind, message.scope_id)
        if listed is None or wanted in listed:
            return ""
        return _refusal(wanted, listed)

    def _listed(self, spec: JobSpec) -> Sequence[Scope] | None:
        now_ms = database_clock.now_ms(self._services.engine)
        name = spec.terms.name
        function = partial(scope_lists.listed, spec, self._services, now_ms)
        for results in self._calls.results("scopes", {name: function}):
            if name in results:
                scopes: Sequence[Scope] = results[name]
                return scopes
        return None


def _refusal(wanted: Scope, listed: Sequence[Scope]) -> str:
    """`it has no scope site:asm; it has site:ams, site:rtm and 3 more`."""
    text = job_run.scope_text(*wanted)
    names = [job_run.scope_text(*scope) for scope in listed]
    compared = names[:MOST_COMPARED]
    near = difflib.get_close_matches(text, compared, n=MOST_NAMED, cutoff=0.0)
    more = len(names) - len(near)
    others = f" and {more:,} more" if more else ""
    return f"it has no scope {text}; it has {', '.join(near) or 'none'}{others}"
