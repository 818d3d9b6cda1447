"""Options of an SNMP target: what they take, and how they say no."""

from __future__ import annotations

from typing import Any

import pytest

from poller import errors
from poller.collectors import registry
from poller.collectors.snmp import SnmpCollector
from poller.collectors.snmp.options import SnmpOptions

REGISTRY = registry.Registry({"snmp": SnmpCollector()})


@pytest.mark.parametrize(
    ("raw", "field", "value"),
    [
        ({}, "modules", ("system", "if_mib")),
        ({"modules": "if_mib, system"}, "modules", ("if_mib", "system")),
        ({"modules": ["system", "system"]}, "modules", ("system",)),
        ({"version": 1}, "version", "1"),
        ({"version": "v2c"}, "version", "2c"),
        ({"version": 2}, "version", "2c"),
        ({"timeout": "500ms"}, "timeout", 0.5),
        ({"timeout": 2}, "timeout", 2.0),
        ({"port": "1161"}, "port", 1161),
    ],
)
def test_accepted(raw: dict[str, Any], field: str, value: object) -> None:
    """Lists, comma-separated words and the spellings people use."""
    options = REGISTRY.options("snmp", raw)
    assert isinstance(options, SnmpOptions)
    assert getattr(options, field) == value


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        ({"modules": "if_mbi"}, 'option "modules": unknown module "if_mbi"; did you mean if_mib?'),
        ({"modules": []}, 'option "modules": name at least one module'),
        ({"port": 0}, 'option "port": Input should be greater than or equal to 1'),
        ({"version": 3}, 'option "version": SNMPv3 follows from the credential'),
        ({"version": "4"}, 'option "version"'),
        ({"timeout": "soon"}, '"soon" is not a duration'),
        ({"timeout": 0}, 'option "timeout"'),
        ({"retries": -1}, 'option "retries"'),
        ({"max_repetitions": 0}, 'option "max_repetitions"'),
        ({"prot": 161}, 'unknown option "prot"; did you mean port?'),
    ],
)
def test_refused(raw: dict[str, Any], text: str) -> None:
    """The error names the option, what was wrong and what it takes."""
    with pytest.raises(errors.InvalidInput) as raised:
        REGISTRY.options("snmp", raw)
    assert text in str(raised.value)
