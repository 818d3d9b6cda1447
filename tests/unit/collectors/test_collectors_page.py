"""docs/collectors.md and docs/routeros.md list every option, and no option that does not exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from poller.collectors import api
from poller.collectors.http.options import HttpOptions
from poller.collectors.ping.options import PingOptions
from poller.collectors.routeros.families import FAMILIES
from poller.collectors.routeros.options import RouterOsOptions
from poller.collectors.snmp.modules import module_catalog, module_model
from poller.collectors.snmp.options import SnmpOptions

DOCS = Path(__file__).parents[3] / "docs"
METRIC_TYPES = {*module_model.NUMERIC, *module_model.LASTING, *module_model.DATES}
METRIC_TYPES |= {"EnumAsStateSet", "Bits"}
PAGE, ROUTEROS = (DOCS / "collectors.md").read_text(), (DOCS / "routeros.md").read_text()


@pytest.mark.parametrize(
    ("page", "section", "model"),
    [
        (PAGE, "snmp", SnmpOptions),
        (PAGE, "ping", PingOptions),
        (PAGE, "http", HttpOptions),
        (ROUTEROS, "Options", RouterOsOptions),
    ],
)
def test_options(page: str, section: str, model: type[api.Options]) -> None:
    text = page.partition(f"\n## {section}\n")[2].partition("\n## ")[0].partition("\n### ")[0]
    assert re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE) == list(model.model_fields)


@pytest.mark.parametrize("name", [*module_catalog.built_in(), *sorted(METRIC_TYPES)])
def test_names(name: str) -> None:
    """Modules and metric types."""
    assert f"`{name}`" in PAGE


@pytest.mark.parametrize("name", list(FAMILIES))
def test_families(name: str) -> None:
    assert f"`{name}`" in ROUTEROS
