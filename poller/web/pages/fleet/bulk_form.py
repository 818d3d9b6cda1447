"""The values that an act on many devices needs: its form, and the command that does the same."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import replace

from poller import errors
from poller.domain.inventory.target_filter import TargetFilter
from poller.service.fleet.fleet_plan import Action
from poller.web.pages.device.target_form import FormField
from poller.web.pages.fleet import devices_query
from poller.web.pages.inventory import pause_form

_INTERVALS = ("30s", "1m", "5m", "15m", "1h")
#: The question of each act that needs values: the number of devices comes into the braces.
TITLES: Mapping[Action, str] = {
    Action.PAUSE: "Pause {}",
    Action.INTERVAL: "Poll {} at another interval",
    Action.TAGS: "Change the tags of {}",
    Action.CREDENTIAL: "Change the credential of {}",
    Action.DOMAIN: "Move {} to another domain",
}
_EXPLANATIONS: Mapping[Action, str] = {
    Action.PAUSE: "Paused, a device is not polled: nothing is measured until the end, except on "
    "demand. In a maintenance it is polled as always, and nobody is told.",
    Action.INTERVAL: "All targets of these devices get this interval. An adaptive target keeps its "
    "bounds, and the interval is where it begins.",
    Action.TAGS: "Tags are words for filters. All other tags of a device stay.",
    Action.CREDENTIAL: "The credential of a device is for all its targets that have none of their "
    "own.",
    Action.DOMAIN: "Only workers that have all of these tags poll the device then. The tags of its "
    "site and of its targets count as well.",
}
#: The words and the flag of the command of each act.
_COMMANDS: Mapping[Action, tuple[str, str]] = {
    Action.POLL: ("poll", ""),
    Action.RESET: ("breaker reset", ""),
    Action.RESUME: ("breaker reset", " --paused"),
    Action.REQUEUE: ("deadletter requeue", ""),
    Action.ENABLE: ("device edit", " --enable"),
    Action.DISABLE: ("device edit", " --disable"),
    Action.PAUSE: ("breaker open", ""),
    Action.INTERVAL: ("target edit", ""),
    Action.TAGS: ("device edit", ""),
    Action.CREDENTIAL: ("device edit", ""),
    Action.DOMAIN: ("device edit", ""),
}


def fields(
    action: Action,
    texts: Mapping[str, str],
    credentials: Sequence[str],
    error: errors.InvalidInput | None = None,
) -> list[FormField]:
    """Return the fields of an act with these texts, and the error beside its field."""
    shown = [_field(name, credentials) for name in action.fields]
    return [replace(each, text=texts.get(each.name) or each.text) for each in marked(shown, error)]


def marked(found: Sequence[FormField], error: errors.InvalidInput | None) -> list[FormField]:
    """Return the fields with the error beside the one that it names."""
    if error is None:
        return list(found)
    text = f"{error.message[:1].upper()}{error.message[1:]}."
    return [replace(each, error=text if each.name == error.field else "") for each in found]


def explanation(action: Action) -> str:
    """Return what the values of an act mean."""
    return _EXPLANATIONS[action]


def command(
    action: Action, wanted: TargetFilter, texts: Mapping[str, str], *, dry_run: bool = False
) -> str:
    """Return the command that does the same."""
    words, flag = _COMMANDS[action]
    if action is Action.PAUSE:
        flag = f" --for {_quoted(texts, 'length')} --reason {_quoted(texts, 'reason')}"
    elif action is Action.INTERVAL:
        flag = f" --interval {_quoted(texts, 'interval')}"
    elif action is Action.CREDENTIAL:
        flag = f" --credential {_quoted(texts, 'credential')}"
    elif action is Action.TAGS:
        flag = _repeated("--add-tag", texts.get("add", ""))
        flag += _repeated("--remove-tag", texts.get("remove", ""))
    elif action is Action.DOMAIN:
        flag = _repeated("--require", texts.get("requires", "")) or " --no-requires"
    can_be_dry = action is not Action.POLL
    return devices_query.command(words, wanted, flag + " --dry-run" * (dry_run and can_be_dry))


def _field(name: str, credentials: Sequence[str]) -> FormField:
    if name == "length":
        help_text = "such as 2h; at most 30d"
        return FormField(
            name, "For how long", "30m", help_text, is_required=True, suggestions=pause_form.LENGTHS
        )
    if name == "reason":
        return FormField(name, "Why", "", "for those who look at it later", is_required=True)
    if name == "interval":
        return FormField(
            name, "Interval", "", "from poll to poll", is_required=True, suggestions=_INTERVALS
        )
    if name == "credential":
        return FormField(name, "Credential", "", "", choices=["", *credentials], empty="none")
    if name == "requires":
        return FormField(
            name, "Tags that workers must have", "", "such as zone=dmz; empty: any worker"
        )
    label = "Tags to add" if name == "add" else "Tags to remove"
    return FormField(name, label, "", "words with blanks between them")


def _quoted(texts: Mapping[str, str], name: str) -> str:
    return shlex.quote(texts.get(name, ""))


def _repeated(option: str, text: str) -> str:
    return "".join(f" {option} {shlex.quote(word)}" for word in text.split())
