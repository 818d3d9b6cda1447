"""The condition of a rule as people write it: a mapping whose `is` names the kind of condition."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from poller.domain.alerts.rule import (
    CertificateExpiry,
    Condition,
    DeviceUnreachable,
    InterfaceDown,
    Measure,
    NoData,
    PlatformProblem,
    PlatformTrouble,
    SiteDark,
    TargetFailing,
    Threshold,
)
from poller.domain.alerts.rules.form_fields import FormFields
from poller.domain.failures import error_codes

INSIDE = "when"
LONGEST_METRIC = 200
_EXAMPLE = "{is: threshold, metric: ifHCInOctets, measure: percent_of_speed, above: 80}"
#: A number that a reading can have and that JSON can carry.
_LARGEST = 1e300


def parse(given: Any) -> Condition:
    """Return the condition of a mapping. Raises InvalidInput, which names the field."""
    fields = FormFields(given, _every_field(), INSIDE)
    if "is" not in fields:
        near = "is: threshold, " if "metric" in fields else f"one of {', '.join(KINDS)}; "
        raise fields.refuse("is", "it is missing", f"{near}for example {_EXAMPLE}")
    kind = fields.member("is", fields.raw("is"), KINDS)
    own, make = _FORMS[kind]
    return make(FormFields(given, ("is", *own), INSIDE))


def kind_of(condition: Condition) -> str:
    """Return the word of `is` for a condition."""
    return _KIND_OF[type(condition)]


def to_form(condition: Condition) -> dict[str, Any]:
    """Return the mapping of a condition, without fields that have their default."""
    form: dict[str, Any] = {"is": kind_of(condition)}
    match condition:
        case TargetFailing(codes) if codes:
            form["codes"] = list(codes)
        case NoData(intervals):
            form["intervals"] = _plain(intervals)
        case InterfaceDown(days, labels):
            form |= {"days": _plain(days), **_labels_form(labels)}
        case Threshold():
            form |= _threshold_form(condition)
        case CertificateExpiry(days):
            form["days"] = _plain(days)
        case PlatformTrouble(problem):
            form["problem"] = problem.value
        case _:
            pass
    return form


def _threshold_form(condition: Threshold) -> dict[str, Any]:
    numbers = {name: getattr(condition, name) for name in ("above", "below", "clear")}
    is_plain = condition.measure is Measure.VALUE
    return {
        "metric": condition.metric,
        **({} if is_plain else {"measure": condition.measure.value}),
        **{name: _plain(value) for name, value in numbers.items() if value is not None},
        **_labels_form(condition.labels),
    }


def _labels_form(labels: tuple[tuple[str, str], ...]) -> dict[str, Any]:
    return {"labels": dict(labels)} if labels else {}


def _plain(number: float) -> int | float:
    """Return 80 for 80.0, as people write it."""
    return int(number) if number.is_integer() and abs(number) < 1e15 else number


def _target_failing(fields: FormFields) -> Condition:
    return TargetFailing(fields.names("codes", tuple(error_codes.TABLE)))


def _no_data(fields: FormFields) -> Condition:
    intervals = fields.number("intervals", NoData().intervals, 2, 1000)
    assert intervals is not None
    return NoData(intervals)


def _interface_down(fields: FormFields) -> Condition:
    days = fields.number("days", InterfaceDown().days, 0.01, 90)
    assert days is not None
    return InterfaceDown(days, fields.labels("labels"))


def _certificate_expiry(fields: FormFields) -> Condition:
    days = fields.number("days", CertificateExpiry().days, 0, 3650)
    assert days is not None
    return CertificateExpiry(days)


def _threshold(fields: FormFields) -> Condition:
    metric = fields.text("metric", LONGEST_METRIC)
    if not metric or " " in metric:
        fault = "it is missing" if not metric else "a name of a metric has no blanks"
        raise fields.refuse("metric", fault, "name a metric of a series, such as ifHCInOctets")
    measure = fields.choice("measure", Measure, Measure.VALUE)
    above = fields.number("above", None, -_LARGEST, _LARGEST)
    below = fields.number("below", None, -_LARGEST, _LARGEST)
    clear = fields.number("clear", None, -_LARGEST, _LARGEST)
    if (above is None) == (below is None):
        fault = "it is missing" if above is None else "a rule has above or below, not both"
        raise fields.refuse("above", fault, "write above: 80, or below: 10, and two rules for both")
    if clear is not None:
        _refuse_bad_side(fields, above, below, clear)
    return Threshold(metric, measure, above, below, clear, fields.labels("labels"))


def _refuse_bad_side(
    fields: FormFields, above: float | None, below: float | None, clear: float
) -> None:
    """Refuse an end of the alert that lies beyond its beginning: the alert would never be."""
    if above is not None and clear > above:
        hint = f"the alert ends at or below clear: write a number up to {above:g}"
        raise fields.refuse("clear", f"{clear:g} is more than above, {above:g}", hint)
    if below is not None and clear < below:
        hint = f"the alert ends at or above clear: write a number from {below:g} on"
        raise fields.refuse("clear", f"{clear:g} is less than below, {below:g}", hint)


def _platform_trouble(fields: FormFields) -> Condition:
    return PlatformTrouble(fields.choice("problem", PlatformProblem))


_FORMS: Mapping[str, tuple[tuple[str, ...], Callable[[FormFields], Condition]]] = {
    "device_unreachable": ((), lambda _fields: DeviceUnreachable()),
    "site_dark": ((), lambda _fields: SiteDark()),
    "target_failing": (("codes",), _target_failing),
    "no_data": (("intervals",), _no_data),
    "interface_down": (("days", "labels"), _interface_down),
    "threshold": (("metric", "measure", "above", "below", "clear", "labels"), _threshold),
    "certificate_expiry": (("days",), _certificate_expiry),
    "platform_trouble": (("problem",), _platform_trouble),
}
#: The words of `is`.
KINDS = tuple(_FORMS)
_KIND_OF: Mapping[type[Condition], str] = {
    DeviceUnreachable: "device_unreachable",
    SiteDark: "site_dark",
    TargetFailing: "target_failing",
    NoData: "no_data",
    InterfaceDown: "interface_down",
    Threshold: "threshold",
    CertificateExpiry: "certificate_expiry",
    PlatformTrouble: "platform_trouble",
}


def _every_field() -> tuple[str, ...]:
    own = [name for names, _ in _FORMS.values() for name in names]
    return ("is", *dict.fromkeys(own))
