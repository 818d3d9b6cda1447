"""All pages of one device, and the forms of its actions."""

from __future__ import annotations

from fastapi import FastAPI

from poller.web.api.snapshot import Snapshots
from poller.web.page_routes.device import (
    device_forms,
    device_plots,
    device_tabs,
    unknown_device,
)
from poller.web.pages.frame.html import PageRenderer


def add(app: FastAPI, page: PageRenderer, snapshots: Snapshots) -> None:
    """Add the routes, and the answer for a device that does not exist."""
    device_tabs.add(app, page, snapshots)
    device_plots.add(app, page)
    device_forms.add(app, page)
    unknown_device.add(app, page)
