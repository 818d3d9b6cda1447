"""Writes the inventory as a file, device by device."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, TextIO

from poller import errors
from poller.db.inventory import exports
from poller.domain.access.actor import Actor
from poller.domain.access.scopes import Scope
from poller.domain.inventory.draft import DeviceDraft, TargetDraft
from poller.service.inventory import option_secrets
from poller.service.inventory_forms import file_forms
from poller.service.inventory_forms.file_forms import Form

if TYPE_CHECKING:
    from poller.bootstrap import Services


def write(services: Services, actor: Actor, file: TextIO, form: Form, raw: bool = False) -> int:
    """Write the devices that the actor may see, with their targets. Returns how many.

    Who may import has the options as they are stored; others have them without
    secrets. Raises InvalidInput for `raw` with another form than CSV.
    """
    check_raw(form, raw)
    rows = exports.every_device(services.engine, actor.site)
    if not actor.may(Scope.INVENTORY):
        rows = _without_secrets(rows, actor)
    return file_forms.write(file, form, rows, raw)


def _without_secrets(
    rows: Iterator[tuple[DeviceDraft, list[TargetDraft]]], actor: Actor
) -> Iterator[tuple[DeviceDraft, list[TargetDraft]]]:
    for device, its_targets in rows:
        yield device, [_masked(target, actor) for target in its_targets]


def _masked(target: TargetDraft, actor: Actor) -> TargetDraft:
    return replace(target, options=option_secrets.shown_options(target.options or {}, actor))


def check_raw(form: Form, raw: bool) -> None:
    """Raise InvalidInput for `raw` with another form than CSV."""
    if raw and form != "csv":
        raise errors.InvalidInput("raw is for CSV", hint=f"leave it out with {form}")
