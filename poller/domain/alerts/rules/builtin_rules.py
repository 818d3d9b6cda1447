"""The rules that every new database has. `poller rules edit` and `disable` change them.

Rules that fit every network are enabled. The others wait for `poller rules enable`: on a switch
with desks behind it, an interface that goes down in the evening is no news.
"""

from __future__ import annotations

from functools import cache
from typing import Any

from poller.domain.alerts import rule_form
from poller.domain.alerts.rule import Rule

OWNER = "builtin"

_FORMS: tuple[dict[str, Any], ...] = (
    {"name": "device-unreachable", "when": {"is": "device_unreachable"}, "severity": "critical"},
    {"name": "site-dark", "when": {"is": "site_dark"}, "severity": "critical"},
    {"name": "target-failing", "when": {"is": "target_failing"}, "for": "2m"},
    {"name": "no-data", "when": {"is": "no_data", "intervals": 10}},
    {
        "name": "certificate-expiry",
        "when": {"is": "certificate_expiry", "days": 14},
    },
    {
        "name": "certificate-expiry-near",
        "when": {"is": "certificate_expiry", "days": 3},
        "severity": "critical",
    },
    {
        "name": "link-full-in",
        "when": {
            "is": "threshold",
            "metric": "ifHCInOctets",
            "measure": "percent_of_speed",
            "above": 90,
            "clear": 80,
        },
        "for": "15m",
        "keep": "5m",
        "text": "{device} {series} is full: {value} of its speed comes in {label:ifAlias}",
    },
    {
        "name": "link-full-out",
        "when": {
            "is": "threshold",
            "metric": "ifHCOutOctets",
            "measure": "percent_of_speed",
            "above": 90,
            "clear": 80,
        },
        "for": "15m",
        "keep": "5m",
        "text": "{device} {series} is full: {value} of its speed goes out {label:ifAlias}",
    },
    {
        "name": "interface-down",
        "when": {"is": "interface_down", "days": 7},
        "for": "1m",
        "enabled": False,
    },
    {
        "name": "platform-no-leader",
        "when": {"is": "platform_trouble", "problem": "no_leader"},
        "severity": "critical",
    },
    {
        "name": "platform-capacity-short",
        "when": {"is": "platform_trouble", "problem": "capacity_short"},
        "for": "5m",
        "keep": "5m",
    },
    {
        "name": "platform-sink-behind",
        "when": {"is": "platform_trouble", "problem": "sink_behind"},
        "for": "5m",
    },
    {
        "name": "platform-job-overdue",
        "when": {"is": "platform_trouble", "problem": "job_overdue"},
    },
    {
        "name": "platform-worker-lost",
        "when": {"is": "platform_trouble", "problem": "worker_lost"},
        "for": "1m",
    },
)


@cache
def rules() -> tuple[Rule, ...]:
    """Return the built-in rules, as they are before anybody changed one."""
    return tuple(rule_form.parse(form, OWNER) for form in _FORMS)


def by_name(name: str) -> Rule | None:
    """Return the built-in rule of that name, or None."""
    return next((rule for rule in rules() if rule.name == name), None)
