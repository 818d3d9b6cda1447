"""The parameters of `/snmp`, with the texts of snmp_exporter for those it refuses."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poller import errors

#: Name and value, as they stand in an address.
Pairs = Sequence[tuple[str, str]]
#: The login of a scrape that names none, of a device without a credential.
DEFAULT_AUTH = "public_v2"
#: Seconds that a scrape may take where Prometheus does not say it.
DEFAULT_TIMEOUT_S = 20.0
LONGEST_TIMEOUT_S = 120.0
#: The answer is sent this long before Prometheus gives up, or at a tenth of a shorter time.
OFFSET_S = 0.5
#: An answer may be this late before nobody waits for it.
_LATE_S = 0.2
#: A scrape that gives less time than stores take is still told what it waited for.
_LEAST_S = 0.5
_LONGEST_VALUE = 300
_MOST_MODULES = 64


@dataclass(frozen=True, slots=True)
class SnmpQuery:
    """One scrape. Without modules the device's sysObjectID chooses them."""

    target: str
    modules: tuple[str, ...] = ()
    auth: str = ""
    context: str = ""


def parse_snmp(pairs: Pairs) -> SnmpQuery:
    """Return the scrape of these parameters. Raises InvalidInput; unknown names are ignored."""
    target = values_of(pairs, "target")
    if len(target) != 1 or not target[0]:
        raise errors.InvalidInput("'target' parameter must be specified once")
    auth = _at_most_once(pairs, "auth")
    context = _at_most_once(pairs, "snmp_context")
    if _at_most_once(pairs, "snmp_engineid"):
        raise errors.InvalidInput(
            "'snmp_engineid' parameter is not supported",
            "the engine id is read from the agent",
            "leave it out",
        )
    return SnmpQuery(_bounded(target[0], "target"), _modules(pairs), auth, context)


def last_moment_s(within_s: float) -> float:
    """Return when a scrape is given up whose answer should have come within this time."""
    return max(_LEAST_S, within_s + min(_LATE_S, within_s / 20))


def values_of(pairs: Pairs, name: str) -> list[str]:
    """Return the values of a parameter, in their order."""
    return [value for key, value in pairs if key == name]


def timeout_s(header: str) -> float:
    """Return the time for an answer, by the header of Prometheus. Raises InvalidInput."""
    if not header:
        return DEFAULT_TIMEOUT_S
    try:
        given_s = float(header)
    except ValueError:
        given_s = -1.0
    if not given_s > 0:  # NaN, too
        raise errors.InvalidInput("X-Prometheus-Scrape-Timeout-Seconds is not a number of seconds")
    given_s = min(given_s, LONGEST_TIMEOUT_S)
    return given_s - min(OFFSET_S, given_s / 10)


def _modules(pairs: Pairs) -> tuple[str, ...]:
    given = values_of(pairs, "module")
    names = dict.fromkeys(name for text in given for name in text.split(",") if name)
    if given and not names:
        raise errors.InvalidInput("'module' parameter must contain at least one module name")
    if len(names) > _MOST_MODULES:
        raise errors.InvalidInput(f"'module' parameter names more than {_MOST_MODULES} modules")
    return tuple(_bounded(name, "module") for name in names)


def _at_most_once(pairs: Pairs, name: str) -> str:
    given = values_of(pairs, name)
    if len(given) > 1:
        raise errors.InvalidInput(f"'{name}' parameter must only be specified once")
    return _bounded(given[0], name) if given else ""


def _bounded(text: str, name: str) -> str:
    if len(text) > _LONGEST_VALUE:
        raise errors.InvalidInput(f"'{name}' parameter is too long")
    if not text.isprintable():
        raise errors.InvalidInput(f"'{name}' parameter has an unprintable character")
    return text
