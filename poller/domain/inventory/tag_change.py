"""A change of the tags of a device: tags to add and tags to remove."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from poller import errors
from poller.domain.inventory import naming


@dataclass(frozen=True, slots=True)
class TagChange:
    """Tags to add and to remove; others stay."""

    add: tuple[str, ...] = ()
    remove: tuple[str, ...] = ()

    def applied_to(self, tags: Collection[str]) -> list[str]:
        """Return the tags of a device after the change."""
        kept = set(tags) - set(self.remove)
        return sorted(kept | set(self.add))


def checked(
    replacement: Sequence[str] | None, add: Sequence[str], remove: Sequence[str]
) -> TagChange | None:
    """Return the change; None if no tag is added or removed. Raises InvalidInput.

    A replacement of all tags at the same time is refused.
    """
    if not add and not remove:
        return None
    if replacement is not None:
        raise errors.InvalidInput(
            "tags to add or to remove change the old tags, new tags replace them",
            hint="choose one of both",
        )
    return TagChange(naming.checked_tags(add), tuple(remove))
