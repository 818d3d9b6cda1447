"""Secrets in the options of targets, such as a token in a URL: masked when shown, refused when new.

Who may change the inventory sees queries of URLs without the parameters that look like a secret.
Others see no query at all: a token may have any name.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.db.inventory.targets import Target
from poller.domain.access import masked_fields
from poller.domain.access.actor import Actor
from poller.domain.access.scopes import Scope

if TYPE_CHECKING:
    from poller.collectors.api import Collector


def shown_options(options: Mapping[str, Any], actor: Actor | None) -> dict[str, Any]:
    """Return options as an actor sees them; None is a command, which sees what an editor sees."""
    is_reader = actor is not None and not actor.may(Scope.INVENTORY)
    found: dict[str, Any] = masked_fields.masked(options, whole_queries=is_reader)
    return found


def shown(target: Target, actor: Actor | None) -> Target:
    """Return a target as an actor sees it."""
    return replace(target, options=shown_options(target.options, actor))


def shown_list(targets: Iterable[Target], actor: Actor | None) -> list[Target]:
    """Return targets as an actor sees them."""
    return [shown(target, actor) for target in targets]


def refuse(collector: Collector, options: Mapping[str, Any]) -> None:
    """Raise InvalidInput for an option with a mask, or with a secret in a URL.

    A collector that takes no credential may have the secret in its URL: it has no other place.
    """
    for name, value in options.items():
        if masked_fields.MASK in str(value):
            raise errors.InvalidInput(
                f"options.{name}: {masked_fields.MASK} stands for a secret that was not shown",
                hint="leave the option as it is, or write the whole value; an export by somebody "
                "with the scope inventory has it",
            )
        if collector.credentials and _has_secret(value):
            kinds = " or ".join(model.kind for model in collector.credentials)
            raise errors.InvalidInput(
                f"options.{name}: the URL holds a password or a token, which readers would see",
                hint=f"leave it out and use a credential ({kinds}); "
                f"`poller collectors list {collector.name}` has the options for a login",
            )


def _has_secret(value: Any) -> bool:
    """Whether a text of an option, at any depth, has a password or a parameter of a secret name."""
    if isinstance(value, str):
        return masked_fields.redact_url(value) != value
    if isinstance(value, Mapping):
        return any(_has_secret(item) for item in value.values())
    if isinstance(value, list | tuple):
        return any(_has_secret(item) for item in value)
    return False
