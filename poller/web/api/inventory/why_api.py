"""`/api/v1/targets/{id}/why`: why a target is polled as it is."""

from __future__ import annotations

from typing import Annotated

from fastapi import Path

from poller.presentation.targets import why_json
from poller.presentation.targets.why_types import WhyDocument
from poller.service import target_explanation
from poller.web.api.contract import api_hints, resources
from poller.web.api.contract.needs import Reading

router = resources.router("targets")

TargetId = Annotated[int, Path(ge=1, le=2**63 - 1, description="The id of the target.")]


@router.get("/{target_id}/why")
def explain_target(call: Reading, target_id: TargetId) -> WhyDocument:
    """Explain why a target is polled, late, failing or left alone.

    A store that is away is a cause of its own; the document then has what the other one knows.
    """
    found = target_explanation.explain_target(call.services, call.actor, target_id)
    shown = why_json.document(found)
    return shown.model_copy(update={"hint": api_hints.for_api(shown.hint, target_id)})
