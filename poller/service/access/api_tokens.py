"""API tokens: add, list, remove. Every change leaves an audit row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from poller import errors
from poller.db.access import token_rows
from poller.db.access.token_rows import NewToken, StoredToken
from poller.domain.access.actor import Actor
from poller.domain.access.scopes import Scope
from poller.domain.inventory import naming
from poller.security import token_values
from poller.service.access.user_accounts import require_admin

if TYPE_CHECKING:
    from poller.bootstrap import Services

#: The longest life of a token that ends.
LONGEST_MS = 10 * 366 * 86_400_000


@dataclass(frozen=True, slots=True)
class TokenDraft:
    """A token to make. It ends after `lives_ms`; None: never."""

    name: str
    scopes: Sequence[Scope]
    site: str | None = None
    lives_ms: int | None = None


@dataclass(frozen=True, slots=True)
class MadeToken:
    """A new token with its value, which is shown once and stored nowhere."""

    token: StoredToken
    value: str = field(repr=False)


def add(services: Services, actor: Actor, draft: TokenDraft) -> MadeToken:
    """Make a token. Raises InvalidInput, AlreadyExists, NotFound (its site), NotAllowed."""
    require_admin(actor)
    naming.checked_name(draft.name, "token name")
    if draft.site is not None:
        naming.checked_name(draft.site, "site name")
    _refuse_wide(draft)
    value = token_values.new()
    digest = token_values.digest(value)
    scopes = tuple(draft.scopes)
    new = NewToken(draft.name, digest, scopes, draft.site, draft.lives_ms)
    return MadeToken(token_rows.add(services.engine, new, actor), value)


def remove(services: Services, actor: Actor, name: str) -> None:
    """Remove a token; servers refuse it within seconds. Raises NotFound, NotAllowed."""
    require_admin(actor)
    naming.checked_name(name, "token name")
    token_rows.remove(services.engine, name, actor)


def listing(services: Services, actor: Actor) -> list[StoredToken]:
    """Return all tokens, without their values. Raises NotAllowed, StoreError."""
    require_admin(actor)
    return token_rows.listing(services.engine)


def get(services: Services, actor: Actor, name: str) -> StoredToken:
    """Return one token. Raises NotFound, NotAllowed, StoreError."""
    require_admin(actor)
    naming.checked_name(name, "token name")
    return token_rows.get(services.engine, name)


def _refuse_wide(draft: TokenDraft) -> None:
    """Raise InvalidInput for a life or scopes that a token cannot have."""
    if draft.lives_ms is not None and not 0 < draft.lives_ms <= LONGEST_MS:
        raise errors.InvalidInput("a token lives from 1 ms to ten years", hint="for example 90d")
    if draft.site is not None and Scope.ADMIN in draft.scopes:
        raise errors.InvalidInput(
            "a token with the scope admin cannot be limited to a site",
            hint="use the scopes operate and inventory",
        )
