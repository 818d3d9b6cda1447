"""`poller settings`: every setting, its value, and the origin of the value. Secrets are masked."""

from __future__ import annotations

import os
from dataclasses import asdict

from poller.cli.output import render
from poller.cli.output.columns import Fit, column
from poller.cli.output.render import Json
from poller.settings import load, setting_table

_COLUMNS = (
    column("NAME", "name", fit=Fit.WHOLE),
    column("VALUE", "value"),
    column("FROM", "origin"),
    column("MEANING", "description", fit=Fit.WRAP),
)


def command(as_json: Json = False) -> None:
    """Print every setting, its value and its origin."""
    items = [asdict(row) for row in setting_table.rows(load(), os.environ)]
    render.listing("poller.settings/1", items, _COLUMNS, as_json)
