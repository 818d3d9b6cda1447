"""The options that change the tags of devices."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated

import typer

from poller import errors
from poller.domain.inventory import naming


@dataclass(frozen=True, slots=True)
class TagOptions:
    """New tags instead of all old ones, or tags to add and to remove."""

    tag: Annotated[
        list[str] | None, typer.Option("--tag", help="New tags, instead of all old ones.")
    ] = None
    no_tags: Annotated[bool, typer.Option("--no-tags", help="Remove all tags.")] = False
    add_tag: Annotated[
        list[str] | None, typer.Option("--add-tag", help="Add a tag. Repeat for more.")
    ] = None
    remove_tag: Annotated[
        list[str] | None, typer.Option("--remove-tag", help="Remove a tag. Repeat for more.")
    ] = None

    @property
    def changes(self) -> bool:
        """Whether tags are added or removed, so that the old ones count."""
        return bool(self.add_tag or self.remove_tag)

    def replacement(self) -> list[str] | None:
        """The tags that replace all old ones, or None. Raises InvalidInput if both are asked."""
        given = [] if self.no_tags else self.tag
        if given is not None and self.changes:
            raise errors.InvalidInput(
                "--add-tag and --remove-tag change the old tags, --tag and --no-tags replace them",
                hint="choose one of both",
            )
        naming.checked_tags(self.add_tag or ())
        return given

    def applied_to(self, tags: Collection[str]) -> list[str]:
        """The tags of a device after the change."""
        kept = set(tags) - set(self.remove_tag or ())
        return sorted(kept | set(self.add_tag or ()))
