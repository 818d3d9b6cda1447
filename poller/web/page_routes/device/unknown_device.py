"""The answer for a device that does not exist: what became of it, and where to look."""

from __future__ import annotations

from urllib.parse import urlencode

from fastapi import FastAPI, Request
from fastapi.responses import Response

from poller import errors
from poller.bootstrap import Services
from poller.domain.access.actor import Actor
from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter
from poller.presentation import formatting
from poller.service import site_limit
from poller.service.record import former_device
from poller.service.record.former_device import FormerDevice
from poller.web import error_responses
from poller.web.pages.device import device_head
from poller.web.pages.frame.html import ErrorView, PageRenderer

_PAGES = "/devices/{name}"


def add(app: FastAPI, page: PageRenderer) -> None:
    """Add the handler of what the pages of a device do not find."""

    @app.exception_handler(errors.NotFound)
    def not_found(request: Request, error: errors.NotFound) -> Response:
        route = getattr(request.scope.get("route"), "path", "")
        actor: Actor | None = getattr(request.state, "actor", None)
        if not route.startswith(_PAGES) or actor is None:
            return error_responses.for_request(error, request, page)
        name = request.path_params["name"]
        view = _view(request.app.state.services, actor, name, error)
        return error_responses.for_page(error, request, page, view)


def _view(services: Services, actor: Actor, name: str, error: errors.NotFound) -> ErrorView:
    title, message = error_responses.title(error), f"{error}."
    try:
        site_limit.visible_device(services, actor, name)
    except errors.NotFound:
        similar = target_filter.text(TargetFilter(names=(f"*{name}*",)))
        ways = [
            ("Devices with a similar name", f"devices?{urlencode({'where': similar})}"),
            ("All devices", "devices"),
        ]
        former = former_device.find(services, actor, name)
        if former and former.new_name:
            new = (f"Device {former.new_name}", device_head.path_of(former.new_name))
            ways.insert(0, new)
        return ErrorView(title, message, error.hint, _said(former), ways)
    back = (f"Device {name}", device_head.path_of(name))
    return ErrorView(title, message, error.hint, ways=[back])


def _said(former: FormerDevice | None) -> str:
    """`It was removed at 2026-11-19T20:50:12Z by kim.`"""
    if former is None:
        return ""
    what = f"It got the name {former.new_name}" if former.new_name else "It was removed"
    who = f" by {former.who}" if former.who else ""
    return f"{what} at {formatting.instant(former.at_ms)}{who}."
