"""Hints for callers of the API: where a hint names a command, the call that does the same.

Errors and explanations come from functions that the command line shares, so their hints name
commands. One table says which call stands for which command. A command that works on a host, such
as `poller worker`, has no call and stays.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

#: Stands in a call for the id of a target that the hint names by its device and name.
TARGET_ID = "TARGET_ID"

_NAME = r"(?P<name>[^\s,;:/()`]+)"
_TARGET = r"(?P<name>[^\s,;:/()`]+)/(?P<target>[^\s,;:()`]+)"
_VALUE = r"(?P<value>[^\s,;()`]+)"
_REQUIRES = r"(?: --no-requires| --require [^\s,;()`]+)*(?! --)"
_V1 = "/api/v1"

#: A command and its call; the first that fits.
_CALLS: Sequence[tuple[str, str]] = (
    (rf"device list --site {_NAME}", rf"GET {_V1}/devices?where=site:\g<name>"),
    ("device list", f"GET {_V1}/devices"),
    ("device parents --suggested", f"GET {_V1}/parents/suggestions"),
    (
        rf"device parent {_NAME} --none",
        rf'PATCH {_V1}/devices/\g<name> {{"parent": ""}}',
    ),
    ("device parent", f"PATCH {_V1}/devices/NAME"),
    (rf"device show {_NAME}", rf"GET {_V1}/devices/\g<name>"),
    ("(device|target) edit --help", f"{_V1}/openapi.json describes them"),
    (
        rf"device edit {_NAME} --credential {_VALUE}",
        rf'PATCH {_V1}/devices/\g<name> {{"credential": "\g<value>"}}',
    ),
    (
        rf"device edit {_NAME}{_REQUIRES}",
        rf'PATCH {_V1}/devices/\g<name> {{"requires": {{...}}}}',
    ),
    (rf"device edit {_NAME} --enable", rf'PATCH {_V1}/devices/\g<name> {{"enabled": true}}'),
    ("device import --update", f"POST {_V1}/imports?update=true"),
    ("device import", f"POST {_V1}/imports"),
    (
        rf"target edit {_TARGET} --enable",
        rf'PATCH {_V1}/devices/\g<name>/targets/\g<target> {{"enabled": true}}',
    ),
    (
        rf"target edit {_TARGET}{_REQUIRES}",
        rf'PATCH {_V1}/devices/\g<name>/targets/\g<target> {{"requires": {{...}}}}',
    ),
    ("target edit", f"PATCH {_V1}/targets/{TARGET_ID}"),
    (
        rf"target add {_NAME} --collector {_VALUE}",
        rf'POST {_V1}/devices/\g<name>/targets {{"collector": "\g<value>"}}',
    ),
    ("target list --json", f"GET {_V1}/targets"),
    (rf"target list {_NAME}", rf"GET {_V1}/devices/\g<name>/targets"),
    ("target list", f"GET {_V1}/targets"),
    ("credential list", f"GET {_V1}/credentials"),
    (
        rf"credential add {_NAME} --kind {_VALUE}",
        rf'POST {_V1}/credentials {{"name": "\g<name>", "kind": "\g<value>", ...}}',
    ),
    (rf"credential edit {_NAME}", rf"PATCH {_V1}/credentials/\g<name>"),
    (rf"credential rotate {_NAME}", rf"POST {_V1}/credentials/\g<name>/rotate"),
    ("credential rotate", f"POST {_V1}/credentials/NAME/rotate"),
    ("site list", f"GET {_V1}/sites"),
    (
        rf"site edit {_NAME}{_REQUIRES}",
        rf'PATCH {_V1}/sites/\g<name> {{"requires": {{...}}}}',
    ),
    (rf"collectors release {_NAME}", rf"POST {_V1}/collectors/\g<name>/release"),
    (rf"collectors stats {_NAME}", rf"GET {_V1}/collectors/\g<name>/stats"),
    ("collectors stats", f"GET {_V1}/collectors/-/stats"),
    (rf"collectors list {_NAME}", rf"GET {_V1}/collectors/\g<name>"),
    ("collectors(?!, on the host)", f"GET {_V1}/collectors"),
    (rf"sinks list {_NAME}", rf"GET {_V1}/sinks/\g<name>"),
    (rf"sinks test {_NAME}", rf"POST {_V1}/sinks/\g<name>/test"),
    ("sinks", f"GET {_V1}/sinks"),
    (
        "notify deliveries --state dead",
        f"GET {_V1}/notifications/deliveries?state=dead",
    ),
    ("notify deliveries", f"GET {_V1}/notifications/deliveries"),
    (rf"notify test {_NAME}", rf"POST {_V1}/notifications/routes/\g<name>/test"),
    ("notify list", f"GET {_V1}/notifications"),
    (rf"notify test {_NAME}", rf"POST {_V1}/notifications/routes/\g<name>/test"),
    (
        rf"jobs run {_NAME} --plan {_VALUE}",
        rf'POST {_V1}/jobs/\g<name>/run {{"plan": "\g<value>"}}',
    ),
    (rf"jobs (run|pause) {_NAME}", rf"POST {_V1}/jobs/\g<name>/\1"),
    (rf"jobs show {_NAME}", rf"GET {_V1}/jobs/\g<name>"),
    ("jobs", f"GET {_V1}/jobs"),
    (rf"rules disable {_NAME}", rf'PATCH {_V1}/rules/\g<name> {{"enabled": false}}'),
    (rf"rules edit {_NAME}", rf"PATCH {_V1}/rules/\g<name>"),
    (rf"rules rm {_NAME}", rf"DELETE {_V1}/rules/\g<name>"),
    ("rules list", f"GET {_V1}/rules"),
    (rf"deadletter list --reason {_NAME}", rf"GET {_V1}/dead-letters?reason=\g<name>"),
    ("deadletter list", f"GET {_V1}/dead-letters"),
    (rf"breaker show {_TARGET}", f"GET {_V1}/breakers/{TARGET_ID}"),
    (rf"breaker show {_NAME}", rf"GET {_V1}/breakers?where=name:\g<name>"),
    (rf"breaker reset {_TARGET}", f"POST {_V1}/breakers/{TARGET_ID}/reset"),
    ("breaker list", f"GET {_V1}/breakers"),
    ("filter", f"GET {_V1}/filters"),
    (rf"why {_TARGET}", f"GET {_V1}/targets/{TARGET_ID}/why"),
    (rf"runs {_TARGET}", rf"GET {_V1}/runs?device=\g<name>&target=\g<target>"),
    (rf"events --kind {_NAME}", rf"GET {_V1}/events?kind=\g<name>"),
    (rf"alerts show {_NAME}", rf"GET {_V1}/alerts/\g<name>"),
    (rf"alerts ack {_NAME}", rf"POST {_V1}/alerts/\g<name>/acknowledge"),
    ("alerts", f"GET {_V1}/alerts"),
    ("rules", f"GET {_V1}/rules"),
    ("maintenance list --over", f"GET {_V1}/maintenances?over=true"),
    ("maintenance list", f"GET {_V1}/maintenances"),
    ("status", f"GET {_V1}/overview"),
    ("workers", f"GET {_V1}/workers"),
    ("board check", f"GET {_V1}/board/check"),
    ("board repair", f"POST {_V1}/board/repair"),
    (rf"explain {_NAME}", rf"GET {_V1}/errors/\g<name>"),
    ("explain", "docs/reference/errors.md lists all codes"),
    ("user list", f"GET {_V1}/users"),
    (rf"user edit {_NAME}", rf"PATCH {_V1}/users/\g<name>"),
    (
        rf"user add {_NAME} --role {_VALUE}",
        rf'POST {_V1}/users {{"name": "\g<name>", "role": "\g<value>", ...}}',
    ),
    ("token list", f"GET {_V1}/tokens"),
    (rf"token rm {_NAME}", rf"DELETE {_V1}/tokens/\g<name>"),
)
_COMPILED = [(re.compile(rf"\bpoller {command}\b"), call) for command, call in _CALLS]


def for_api(hint: str, target_id: int | None = None) -> str:
    """Return a hint with calls of the API in place of commands. The id is that of its target."""
    if "poller " not in hint:
        return hint
    for command, call in _COMPILED:
        hint = command.sub(call, hint)
    return hint if target_id is None else hint.replace(TARGET_ID, str(target_id))
