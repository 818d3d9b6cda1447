"""Rules of Prometheus, applied to the labels of a target."""

from __future__ import annotations

from typing import Any

import pytest

from poller import errors
from poller.domain.migration.relabeling import Rule, relabel

LABELS = {"__address__": "sw-1.ams.example.net:161", "site": "ams", "role": "Core"}


@pytest.mark.parametrize(
    ("rule", "changed"),
    [
        (
            {"source_labels": ["__address__"], "target_label": "__param_target"},
            {"__param_target": "sw-1.ams.example.net:161"},
        ),
        (
            {
                "source_labels": ["__address__"],
                "regex": r"([^.]+)\.(?P<site>[^.]+)\..*",
                "replacement": "${1}@${site}$$",
                "target_label": "name",
            },
            {"name": "sw-1@ams$"},
        ),
        ({"source_labels": ["site"], "regex": "b.*", "target_label": "x"}, {}),
        (
            {"source_labels": ["site", "role"], "separator": "/", "target_label": "both"},
            {"both": "ams/Core"},
        ),
        ({"action": "lowercase", "source_labels": ["role"], "target_label": "r"}, {"r": "core"}),
        ({"action": "labelmap", "regex": "(ro).*", "replacement": "my_$1"}, {"my_ro": "Core"}),
        (
            {"action": "hashmod", "source_labels": ["site"], "modulus": "8", "target_label": "h"},
            {"h": "5"},
        ),
        ({"action": "keep", "source_labels": ["site"], "regex": "ams|ber"}, {}),
        ({"action": "drop", "source_labels": ["site"], "regex": "am"}, {}),
        ({"action": "dropequal", "source_labels": ["site"], "target_label": "role"}, {}),
    ],
)
def test_a_rule_adds_labels(rule: dict[str, Any], changed: dict[str, str]) -> None:
    """Each action does as in Prometheus; expressions match the whole text."""
    assert relabel(LABELS, [Rule.of(rule, "here")]) == {**LABELS, **changed}


@pytest.mark.parametrize(
    "rule",
    [
        {"action": "drop", "source_labels": ["site"], "regex": "ams"},
        {"action": "keep", "source_labels": ["site"], "regex": "ber"},
        {"action": "keepequal", "source_labels": ["site"], "target_label": "role"},
    ],
)
def test_a_rule_drops_a_target(rule: dict[str, Any]) -> None:
    """A target that a rule drops is gone."""
    assert relabel(LABELS, [Rule.of(rule, "here")]) is None


def test_labels_can_be_removed_by_name_or_by_an_empty_value() -> None:
    """`labeldrop` and `labelkeep` select names; a label without a text does not exist."""
    dropped = relabel(LABELS, [Rule.of({"action": "labeldrop", "regex": "s.*"}, "here")])
    assert dropped == {name: LABELS[name] for name in ("__address__", "role")}
    kept = relabel(LABELS, [Rule.of({"action": "labelkeep", "regex": "s.*"}, "here")])
    assert kept == {"site": "ams"}
    emptied = relabel(LABELS, [Rule(target_label="site", replacement="")])
    assert emptied == dropped


@pytest.mark.parametrize(
    "fields",
    [
        {"action": "explode"},
        {"action": ["keep"]},
        {"regex": "("},
        {"regex": ["a"]},
        {"modulus": "x"},
        {"modulus": "9" * 5000},
        {"source_labels": "site"},
        {"source_labels": [{"a": "b"}]},
        {"separator": [","]},
        {"replacement": {"a": "b"}},
    ],
)
def test_a_wrong_rule_is_named(fields: dict[str, Any]) -> None:
    """The error says which rule it is."""
    with pytest.raises(errors.InvalidInput, match="job a, relabel_configs 2"):
        Rule.of(fields, "job a, relabel_configs 2")
