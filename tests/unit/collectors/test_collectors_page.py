"""docs/collectors.md tells every option, and none that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from poller.collectors import api
from poller.collectors.http.options import HttpOptions
from poller.collectors.ping.options import PingOptions
from poller.collectors.routeros.families import FAMILIES
from poller.collectors.routeros.options import RouterOsOptions
from poller.collectors.snmp import catalog, language
from poller.collectors.snmp.options import SnmpOptions

PAGE = (Path(__file__).parents[3] / "docs" / "collectors.md").read_text()


@pytest.mark.parametrize(
    ("section", "model"),
    [("snmp", SnmpOptions), ("routeros", RouterOsOptions), ("ping", PingOptions), ("http", HttpOptions)],
)
def test_options(section: str, model: type[api.Options]) -> None:
    text = PAGE.partition(f"\n## {section}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(model.model_fields)


@pytest.mark.parametrize("name", [*catalog.built_in(), *FAMILIES, *sorted(language.METRIC_TYPES)])
def test_names(name: str) -> None:
    """Modules, families and metric types."""
    assert f"`{name}`" in PAGE
