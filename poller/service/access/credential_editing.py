"""Changes some fields of a credential; the others stay as they are, and nobody sees them."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from poller import errors
from poller.db.inventory import credential_rows, inventory_feed
from poller.db.inventory.inventory_feed import Author
from poller.domain.inventory import row_tag
from poller.service.inventory import credential_actions
from poller.service.inventory.credential_actions import Rotated

if TYPE_CHECKING:
    from poller.bootstrap import Services


def edit(
    services: Services,
    author: Author,
    name: str,
    fields: Mapping[str, Any],
    expected: str | None = None,
) -> Rotated:
    """Replace these fields of a credential; workers use them with their next poll.

    The stored fields are decrypted, completed, and encrypted again: no value leaves this function.
    Raises InvalidInput, NotFound, SecretKeyError, EditConflict if it is not the expected version.
    """
    if not fields:
        raise errors.InvalidInput("no field was given", hint="name at least one field to change")
    present = credential_rows.show(services.engine, name)
    row_tag.refuse_changed("credential", name, present.tag, expected)
    complete = {**_stored(services, present.id), **fields}
    read = credential_actions.from_fields(complete)
    return credential_actions.rotate(services, author, name, present.kind, read, present.tag)


def _stored(services: Services, key: int) -> dict[str, Any]:
    """The decrypted fields of a credential, without its kind."""
    sealed = inventory_feed.credential(services.engine, key)
    if sealed is None:
        raise errors.NotFound("the credential was removed meanwhile")
    fields: dict[str, Any] = json.loads(
        services.keyring.open(sealed.envelope, sealed.name, sealed.kind)
    )
    fields.pop("kind", None)
    return fields
