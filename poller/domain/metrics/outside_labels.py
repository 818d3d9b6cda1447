"""The labels of a series in a store outside: those of the series, and those of its target.

A label of the target wins over a label of the series with the same name, which is renamed
`exported_<name>` as Prometheus does. Names are made valid, and empty labels are left out.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from poller.domain.metrics.reading import Labels

#: The prefix of a label that had to give way, as in Prometheus.
EXPORTED = "exported_"
#: The label that holds the metric's name in Prometheus. No other label may have its name.
METRIC_NAME = "__name__"
#: The text between several tags of one label.
TAG_SEPARATOR = ","

_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_METRIC = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*")
_NOT_IN_LABEL = re.compile(r"[^a-zA-Z0-9_]")
_NOT_IN_METRIC = re.compile(r"[^a-zA-Z0-9_:]")


class Owner(Protocol):
    """The target of a series. A `PollTarget` is one."""

    @property
    def name(self) -> str: ...
    @property
    def device(self) -> str: ...
    @property
    def address(self) -> str: ...
    @property
    def site(self) -> str: ...
    @property
    def collector(self) -> str: ...
    @property
    def tags(self) -> Sequence[str]: ...


@dataclass(frozen=True, slots=True)
class LabelNames:
    """The outside names of a target's facts. An empty name leaves the fact out.

    A tag `role:core` becomes `tag_role="core"`. Tags without a key share one label:
    `tag="core,edge"`.
    """

    device: str = "device"
    site: str = "site"
    target: str = "target"
    collector: str = "collector"
    address: str = ""
    tag: str = "tag"
    tag_prefix: str = "tag_"

    def faults(self, fixed: Labels = ()) -> list[str]:
        """Return every fault of the names, also of the fixed labels of a sink."""
        named = {
            "device": self.device,
            "site": self.site,
            "target": self.target,
            "collector": self.collector,
            "address": self.address,
            "tag": self.tag,
        }
        uses = [(fact, name) for fact, name in named.items() if name]
        uses += [(f"the fixed label {name}", name) for name, _ in fixed]

        faults = []
        first_use: dict[str, str] = {}
        for use, name in uses:
            if not is_label_name(name):
                faults.append(f'"{name}" is no name of a label ({use})')
            elif name in first_use:
                faults.append(f'{first_use[name]} and {use} have the same name "{name}"')
            elif self.tag_prefix and name.startswith(self.tag_prefix):
                faults.append(f'{use}: names that begin with "{self.tag_prefix}" are those of tags')
            first_use.setdefault(name, use)
        if self.tag_prefix and not is_label_name(self.tag_prefix):
            faults.append(f'"{self.tag_prefix}" is no start of a label\'s name (tag_prefix)')
        return faults


DEFAULT_NAMES = LabelNames()


class Joined(NamedTuple):
    """The labels of a series outside, sorted by name, and the series' own labels in the way."""

    labels: Labels
    renamed: tuple[str, ...]  # names of labels that are `exported_<name>` now


def is_label_name(text: str) -> bool:
    """Whether Prometheus takes the text as the name of a label that is not the metric's name."""
    return text != METRIC_NAME and _LABEL.fullmatch(text) is not None


def valid_label_name(text: str) -> str:
    """Return the text as the name of a label: `_` for what no label name contains."""
    if _LABEL.fullmatch(text):
        return text
    return _begun_well(_NOT_IN_LABEL.sub("_", text))


def valid_metric_name(text: str) -> str:
    """Return the text as the name of a metric: `_` for what no metric name contains."""
    if _METRIC.fullmatch(text):
        return text
    return _begun_well(_NOT_IN_METRIC.sub("_", text))


def _begun_well(text: str) -> str:
    return text if text and not text[0].isdigit() else f"_{text}"


def target_labels(target: Owner, names: LabelNames = DEFAULT_NAMES, fixed: Labels = ()) -> Labels:
    """Return the labels that all series of a target have, sorted by name.

    Names that `faults` finds nothing wrong with are all different.
    """
    labels = {
        names.device: target.device,
        names.site: target.site,
        names.target: target.name,
        names.collector: target.collector,
        names.address: target.address,
    }
    for name, text in _tag_labels(target.tags, names):
        labels.setdefault(name, text)
    labels.update(fixed)

    labels.pop("", None)
    return tuple(sorted((name, text) for name, text in labels.items() if text))


def joined(series_labels: Iterable[tuple[str, str]], added: Labels) -> Joined:
    """Return the labels of a series together with those of its target."""
    labels = dict(added)
    renamed = []
    for original, text in series_labels:
        if not text:
            continue
        name = valid_label_name(original)
        if name in labels or name == METRIC_NAME:
            renamed.append(name)
        while name in labels or name == METRIC_NAME:
            name = EXPORTED + name
        labels[name] = text
    return Joined(tuple(sorted(labels.items())), tuple(renamed))


def _tag_labels(tags: Sequence[str], names: LabelNames) -> Labels:
    """Return the labels of tags: one for every key, and one for all tags without a key."""
    by_name: dict[str, list[str]] = {}
    for tag in sorted(tags):
        key, colon, text = tag.partition(":")
        if colon and key and text:
            name = valid_label_name(names.tag_prefix + key) if names.tag_prefix else ""
        else:
            name, text = names.tag, tag
        if name:
            by_name.setdefault(name, []).append(text)
    return tuple((name, TAG_SEPARATOR.join(texts)) for name, texts in by_name.items())
