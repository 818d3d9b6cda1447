"""The filter that selects devices and targets: one language for the CLI, the API and the pages.

`site:fra tag:core state:failing name:sw-* address:10.1.0.0/16` selects what matches every key.
Several values of one key (`site:fra,ber`, or the key twice) match any of them; several tags must
all be on the device, and several options on the target.
"""

from __future__ import annotations

import enum
import ipaddress
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from poller import errors
from poller.domain.failures import error_codes
from poller.domain.failures.dead_letter import Reason
from poller.domain.inventory.did_you_mean import nearest

EXAMPLE = "site:fra tag:core name:'sw-*'"


class TargetState(enum.StrEnum):
    """A state that a filter can select. A target can have several, such as failing and open."""

    OK = "ok"
    DEGRADED = "degraded"  # the last poll was partial
    FAILING = "failing"
    UNKNOWN = "unknown"  # not polled yet
    OPEN = "open"  # the breaker is open, because of failures or by hand
    PARKED = "parked"  # a dead letter
    DISABLED = "disabled"  # the target, or its device


@dataclass(frozen=True, slots=True)
class TargetFilter:
    """The checked values of each key. An empty key selects everything."""

    sites: tuple[str, ...] = ()  # "" is a device without a site
    tags: tuple[str, ...] = ()
    collectors: tuple[str, ...] = ()
    states: tuple[TargetState, ...] = ()
    codes: tuple[str, ...] = ()  # the error code of the last poll
    names: tuple[str, ...] = ()  # device names; * and ? are wildcards
    addresses: tuple[str, ...] = ()  # networks, addresses, or host names with wildcards
    options: tuple[str, ...] = ()  # `name=value` of a target's own options; all of them
    credentials: tuple[str, ...] = ()  # those of targets, their own or that of their device

    @property
    def is_empty(self) -> bool:
        return self == ANY

    @property
    def selects_targets(self) -> bool:
        """Whether a key is about targets: a device then matches if one of its targets does."""
        of_targets = (self.collectors, self.states, self.codes, self.options, self.credentials)
        return any(of_targets)

    @property
    def needs_status(self) -> bool:
        """Whether the status of each target, which is in Redis, decides."""
        return bool(self.states or self.codes)


ANY = TargetFilter()


class AddressMatch:
    """Decides whether an address is in one of some networks, or fits one of some host patterns."""

    def __init__(self, patterns: Sequence[str]) -> None:
        networks = [_network(pattern) for pattern in patterns]
        self._networks = [network for network in networks if network is not None]
        hosts = [
            wildcard_expression(pattern)
            for pattern, network in zip(patterns, networks, strict=True)
            if network is None
        ]
        self._hosts = [re.compile(host, re.IGNORECASE) for host in hosts]

    def accepts(self, address: str) -> bool:
        if any(host.fullmatch(address) for host in self._hosts):
            return True
        if not self._networks:
            return False
        try:
            parsed = ipaddress.ip_address(address)
        except ValueError:
            return False
        return any(parsed in network for network in self._networks)


def wildcard_expression(pattern: str) -> str:
    """Return the regular expression of a pattern in which * and ? are wildcards.

    A part between two * is taken where it stands first, for good (an atomic group): whatever the
    pattern, a match takes time in step with the text.
    """
    first, *others = (
        re.escape(part).replace(r"\?", ".") for part in re.sub(r"\*+", "*", pattern).split("*")
    )
    if not others:
        return first
    *middle, last = others
    return "".join((first, *(f"(?>.*?{part})" for part in middle), ".*", last))


def parse(text: str) -> TargetFilter:
    """Return the filter of a text such as `site:fra state:failing`. Raises InvalidInput."""
    try:
        words = shlex.split(text)
    except ValueError as error:
        message = f"the filter {text!r} cannot be read: {str(error).lower()}"
        raise errors.InvalidInput(message, hint=f"for example {EXAMPLE}") from None

    values: dict[str, list[str]] = {}
    for word in words:
        key, colon, given = word.partition(":")
        if not colon:
            hint = f"write name:{word} for the device's name; keys are {', '.join(KEYS)}"
            raise errors.InvalidInput(f'the filter "{word}" has no key', hint=hint)
        parts = given.split(",")
        if len(parts) > 1 and "" in parts:
            hint = f"write {key}:A,B without a blank after the comma"
            raise errors.InvalidInput(f"{key}: a value beside a comma is empty", hint=hint)
        values.setdefault(key, []).extend(parts)
    return checked(values)


def parse_nonempty(text: str, field: str) -> TargetFilter:
    """Return the filter of a text that selects what is changed. Raises InvalidInput.

    A script whose variables are empty writes an empty filter. It must not select everything. The
    message names the field that has the text.
    """
    wanted = parse(text)
    if wanted.is_empty:
        hint = f"leave {field} out, or write for example {EXAMPLE}; all: name:'*'"
        raise errors.InvalidInput(f"{field}: the filter is empty", hint=hint)
    return wanted


def text(wanted: TargetFilter) -> str:
    """Return the filter as people write it: `site:fra state:failing`; "" for any."""
    words = []
    for key, name in FIELDS.items():
        values = getattr(wanted, name)
        if values:
            words.append(f"{key}:{shlex.quote(','.join(map(str, values)))}")
    return " ".join(words)


def checked(values: Mapping[str, Iterable[str]]) -> TargetFilter:
    """Return the filter of the values of each key. Raises InvalidInput, which names the key."""
    fields: dict[str, Any] = {}
    for key, given in values.items():
        if key not in KEYS:
            near = nearest(key, KEYS)
            correction = f"did you mean {near}? " if near else ""
            hint = f"{correction}keys are {', '.join(KEYS)}"
            raise errors.InvalidInput(f'a filter has no key "{key}"', hint=hint)
        fields[FIELDS[key]] = tuple(_checked_value(key, value) for value in dict.fromkeys(given))
    return TargetFilter(**fields)


def merge(one: TargetFilter, other: TargetFilter) -> TargetFilter:
    """Return a filter with the values of both. Raises InvalidInput if both have the same key."""
    fields: dict[str, Any] = {}
    for key, name in FIELDS.items():
        values, more = getattr(one, name), getattr(other, name)
        if values and more and key not in ("tag", "option"):
            message = f"{key} is selected twice: by itself and in the filter"
            raise errors.InvalidInput(message, hint=f"name all values in one of them: {key}:A,B")
        fields[name] = values + more
    return TargetFilter(**fields)


def _checked_value(key: str, value: str) -> str:
    """Return the value in the form that is compared. Raises InvalidInput, which names the key."""
    if not value and key != "site":
        raise errors.InvalidInput(f"{key}: the value is empty", hint=f"for example {EXAMPLE}")
    if key == "state":
        return _state(value)
    if key == "code":
        _refuse_unknown_code(value)
    if key == "option" and not value.partition("=")[1]:
        raise errors.InvalidInput(
            f'option: "{value}" is not of the form name=value', hint="for example option:tls=false"
        )
    if key == "address":
        _refuse_port(value)
        _network(value)
    return value


def _refuse_unknown_code(value: str) -> None:
    """Raise InvalidInput unless this is an error code; a dead letter's reason gets a hint."""
    if value in error_codes.TABLE:
        return
    if value in tuple(Reason):
        hint = f"it is the reason of a dead letter: poller deadletter list --reason {value}"
        raise errors.InvalidInput(f'there is no error code "{value}"', hint=hint)
    raise _unknown("error code", value, error_codes.TABLE)


def _refuse_port(value: str) -> None:
    """Raise InvalidInput for an address with a port, which would match nothing."""
    host, colon, port = value.rpartition(":")
    if colon and port.isdigit() and (":" not in host or host.startswith("[")):
        raise errors.InvalidInput(
            f'address: "{value}" has a port, and addresses of devices have none',
            hint=f"address:{host.strip('[]')}",
        )


def _state(value: str) -> TargetState:
    states = [state.value for state in TargetState]
    if value not in states:
        raise _unknown("state", value, states)
    return TargetState(value)


def _unknown(noun: str, value: str, names: Iterable[str]) -> errors.InvalidInput:
    listed = list(names)
    near = nearest(value, listed)
    correction = f"did you mean {near}? " if near else ""
    hint = f"{correction}one of {', '.join(listed)}"
    return errors.InvalidInput(f'there is no {noun} "{value}"', hint=hint)


def _network(pattern: str) -> ipaddress.IPv4Network | ipaddress.IPv6Network | None:
    """Return a network, one address as a network, or None for a host name.

    Raises InvalidInput for a network that is none.
    """
    try:
        return ipaddress.ip_network(pattern, strict=False)
    except ValueError as error:
        if "/" not in pattern:
            return None
        message = f'address: "{pattern}" is not a network'
        raise errors.InvalidInput(message, cause=str(error), hint="10.1.0.0/16") from None


#: The field of each key, in the order in which help and errors list the keys.
FIELDS = {
    "site": "sites",
    "tag": "tags",
    "collector": "collectors",
    "state": "states",
    "code": "codes",
    "name": "names",
    "address": "addresses",
    "option": "options",
    "credential": "credentials",
}
KEYS = tuple(FIELDS)
