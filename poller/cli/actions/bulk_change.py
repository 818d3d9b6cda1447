"""The question before a change of many devices or targets, and its dry run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from poller.cli.arguments.confirm import DryRun, Number, Yes, confirm_counted
from poller.cli.output import render

#: Number of names that a plan or a question shows.
SAMPLES = 3


@dataclass(frozen=True, slots=True)
class BulkOptions:
    """The options of a command that can change many devices or targets."""

    yes: Yes = False
    number: Number = None
    dry_run: DryRun = False


def agreed(action: str, names: Sequence[str], options: BulkOptions, as_json: bool) -> bool:
    """Return whether to go on with the action (a phrase: "remove 3 devices").

    A dry run prints the action and the first names. Raises NotConfirmed.
    """
    samples = list(names[:SAMPLES])
    shown = ", ".join(samples) + (", ..." if len(names) > SAMPLES else "")
    if options.dry_run:
        item = {"dry_run": True, "count": len(names), "samples": samples}
        render.changed(f"would {action}: {shown}", "poller.plan/1", item, as_json)
        return False

    confirm_counted(f"{action} ({shown})", len(names), options.yes, options.number)
    return True
