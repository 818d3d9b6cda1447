"""The options that change the tags of devices."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

import typer

from poller.domain.inventory import tag_change
from poller.domain.inventory.tag_change import TagChange


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

    def replacement(self) -> list[str] | None:
        """The tags that replace all old ones, or None."""
        return [] if self.no_tags else self.tag

    def change(self) -> TagChange | None:
        """The tags to add and to remove, or None. Raises InvalidInput beside a replacement."""
        return tag_change.checked(self.replacement(), self.add_tag or (), self.remove_tag or ())
