"""`poller readings` on a narrow screen."""

from __future__ import annotations

import pytest

from poller.cli.commands import readings
from poller.cli.output import table

METRIC = "routeros_family_provisioning_total"


@pytest.mark.parametrize(
    ("screen", "left_out"),
    [(200, []), (100, []), (80, ["KIND"]), (74, ["KIND", "AGE"])],
    ids=lambda each: str(each),
)
def test_names_of_metrics_stay_whole_and_labels_give_way(screen: int, left_out: list[str]) -> None:
    """Columns with the same text in every row are left out next."""
    labels = {"interface": "ether1-uplink-to-the-core", "family": "ipv6"}
    item = {
        "target": "routeros",
        "metric": METRIC,
        "labels": labels,
        "value": 12345678.0,
        "kind": "counter",
    }
    columns = readings._COLUMNS
    row = [each.on_screen({**item, "age_seconds": 12}) for each in columns]
    layout = table.fitted([row], columns, screen)
    assert [columns[place].title for place in layout.left_out] == left_out
    assert layout.widths[1] == len(METRIC)
    assert sum(layout.widths.values()) + 2 * (len(layout.widths) - 1) <= screen
