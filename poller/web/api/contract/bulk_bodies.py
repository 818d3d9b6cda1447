"""Bodies of bulk actions: a filter selects, a dry run counts, and a number confirms."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field

from poller.domain.inventory import target_filter
from poller.domain.inventory.target_filter import TargetFilter

#: Characters of a filter.
LONGEST_WHERE = 2_000
#: Names of matches that a response shows.
SAMPLES = 10

Where = Annotated[
    str,
    Field(
        min_length=1,
        max_length=LONGEST_WHERE,
        pattern=r"^[^\x00]*$",
        description=f"The filter that selects: {target_filter.EXAMPLE}; keys: "
        f"{', '.join(target_filter.KEYS)}.",
    ),
]
DryRun = Annotated[bool, Field(description="Only count what matches; nothing is changed.")]
Confirm = Annotated[
    int | None,
    Field(
        ge=0,
        le=1_000_000_000,
        description="How many match, as a dry run says; 409 if it is another number.",
    ),
]


class BulkRequest(BaseModel):
    """A change of all that match a filter."""

    model_config = ConfigDict(extra="forbid")

    where: Where
    dry_run: DryRun = False
    confirm: Confirm = None

    def wanted(self) -> TargetFilter:
        """The filter. Raises InvalidInput, also for an empty one."""
        return target_filter.parse_nonempty(self.where, "where")


class Matches(BaseModel):
    """The matches of a bulk action. Each action adds its own counts."""

    dry_run: bool = Field(description="True: nothing was changed.")
    matches: int = Field(description="How many match the filter.")
    samples: list[str] = Field(description="The first names of those that match.")
    note: str = Field("", description="What went wrong beside the action; empty if nothing did.")


def matched(names: Sequence[str], dry_run: bool) -> dict[str, Any]:
    """Return the fields of `Matches` for those that match."""
    return {"dry_run": dry_run, "matches": len(names), "samples": list(names[:SAMPLES])}
