"""Options of sinks that take only some series: by name of the metric, and by value of a label.

A pattern is a regular expression (RE2) of the whole text, as in Prometheus.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from poller.domain import expressions
from poller.domain.metrics.reading import Labels

#: Names of metrics whose verdict is remembered. Devices choose names, so that they are bounded.
_REMEMBERED = 8192


def _pattern(text: str) -> str:
    _compiled(text)
    return text


Pattern = Annotated[str, AfterValidator(_pattern)]


class SeriesFilterOptions(BaseModel):
    """Options that choose the series of a sink. Without any of them the sink gets all series."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    include_metrics: tuple[Pattern, ...] = Field(
        (), description='Patterns of metrics that are sent, all if empty: ["if.*", "sysUpTime"].'
    )
    exclude_metrics: tuple[Pattern, ...] = Field(
        (), description='Patterns of metrics that are not sent: ["ifOutQLen"].'
    )
    include_labels: dict[str, Pattern] = Field(
        default_factory=dict,
        description='Only series whose labels match: {site = "ams|fra"}. A missing label is empty.',
    )
    exclude_labels: dict[str, Pattern] = Field(
        default_factory=dict, description='No series with such a label: {ifDescr = "lo|Null.*"}.'
    )
    drop_labels: tuple[Pattern, ...] = Field(
        (), description="Patterns of names of labels that are not sent."
    )


class SeriesFilter:
    """The decisions of the options. One thread uses it; many may ask about labels."""

    def __init__(self, options: SeriesFilterOptions) -> None:
        self._include = _any_of(options.include_metrics)
        self._exclude = _any_of(options.exclude_metrics)
        self._drop = _any_of(options.drop_labels)
        self._include_labels = _by_label(options.include_labels)
        self._exclude_labels = _by_label(options.exclude_labels)
        self._metrics: dict[str, bool] = {}

    def takes_metric(self, name: str) -> bool:
        """Whether series of this metric are sent."""
        takes = self._metrics.get(name)
        if takes is None:
            included = self._include is None or _matches(self._include, name)
            takes = included and not _matches(self._exclude, name)
            if len(self._metrics) >= _REMEMBERED:
                self._metrics.clear()
            self._metrics[name] = takes
        return takes

    def takes_labels(self, labels: Labels) -> bool:
        """Whether series with these labels (of the series and of its target) are sent."""
        if not self._include_labels and not self._exclude_labels:
            return True
        texts = dict(labels)
        for name, pattern in self._include_labels:
            if not _matches(pattern, texts.get(name, "")):
                return False
        for name, pattern in self._exclude_labels:
            if name in texts and _matches(pattern, texts[name]):
                return False
        return True

    def verdicts(self, labels: Labels) -> tuple[bool | None, ...]:
        """Return what each pattern of a label says of these labels; None without such a label."""
        texts = dict(labels)
        return tuple(
            _matches(pattern, texts[name]) if name in texts else None
            for name, pattern in (*self._include_labels, *self._exclude_labels)
        )

    def kept_labels(self, labels: Labels) -> Labels:
        """Return the labels without those whose names are not sent."""
        if self._drop is None:
            return labels
        return tuple(pair for pair in labels if not _matches(self._drop, pair[0]))


def _compiled(text: str) -> Any:
    try:
        return expressions.compiled(text)
    except ValueError as error:
        raise ValueError(f'"{text}" is no regular expression: {error}') from None


def _any_of(patterns: Iterable[str]) -> Any:
    """Return one expression for all patterns, or None without any."""
    grouped = "|".join(f"(?:{pattern})" for pattern in patterns)
    return _compiled(grouped) if grouped else None


def _by_label(patterns: dict[str, str]) -> list[tuple[str, Any]]:
    return [(name, _compiled(pattern)) for name, pattern in patterns.items()]


def _matches(expression: Any, text: str) -> bool:
    return expression is not None and expression.fullmatch(text) is not None
