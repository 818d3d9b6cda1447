"""`poller settings`: every setting, its value here and now, and where that came from. Secrets are masked."""

from __future__ import annotations

import os

from poller.cli.output import render
from poller.cli.output.columns import Fit, column
from poller.cli.output.render import Json
from poller.settings import fields

_COLUMNS = (
    column("NAME", "name", fit=Fit.WHOLE),
    column("VALUE", "value"),
    column("FROM", "origin"),
    column("MEANING", "description", fit=Fit.WRAP),
)


def command(as_json: Json = False) -> None:
    """Print every setting, its value and its origin."""
    names = ("name", "value", "origin", "description")
    rows = fields.rows(fields.load(), os.environ)
    render.listing(
        "poller.settings/1",
        [dict(zip(names, row, strict=True)) for row in rows],
        _COLUMNS,
        as_json,
    )
