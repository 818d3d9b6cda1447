"""Writes the inventory as a file, device by device."""

from __future__ import annotations

from typing import TYPE_CHECKING, TextIO

from poller import errors
from poller.db.inventory import exports
from poller.domain.access.actor import Actor
from poller.service.inventory_forms import file_forms
from poller.service.inventory_forms.file_forms import Form

if TYPE_CHECKING:
    from poller.bootstrap import Services


def write(services: Services, actor: Actor, file: TextIO, form: Form, raw: bool = False) -> int:
    """Write the devices that the actor may see, with their targets. Returns how many.

    Raises InvalidInput for `raw` with another form than CSV.
    """
    check_raw(form, raw)
    return file_forms.write(file, form, exports.every_device(services.engine, actor.site), raw)


def check_raw(form: Form, raw: bool) -> None:
    """Raise InvalidInput for `raw` with another form than CSV."""
    if raw and form != "csv":
        raise errors.InvalidInput("raw is for CSV", hint=f"leave it out with {form}")
