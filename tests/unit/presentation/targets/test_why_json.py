"""The document of an explanation in every situation."""

from __future__ import annotations

import json

import pytest

from poller.domain.why import explanation
from poller.presentation.targets import why_json
from tests.unit.domain.why.situations import HEALTHY, SITUATIONS, Situation, in_flight


@pytest.mark.parametrize("situation", SITUATIONS, ids=lambda each: each.name)
def test_every_situation_has_a_document(situation: Situation) -> None:
    """Also without a board or an inventory; sentence and cause are those of the table."""
    found = explanation.explain(situation.facts)
    body = json.loads(why_json.document(found).model_dump_json(by_alias=True))
    assert body["schema"] == "poller.why/1"
    assert (body["cause"], body["sentence"]) == (situation.cause.value, situation.sentence)
    assert (body["board"] is None) == (situation.facts.board is None)


def test_the_document_names_the_credential_and_the_holder() -> None:
    """The names are enough to look further; there is no secret among the facts."""
    body = why_json.document(explanation.explain(in_flight(2)))
    assert body.credential
    assert (body.credential.name, body.credential.of) == ("public", "device")
    assert body.board
    assert (body.board.holder, body.board.attempt) == ("w1@pop", 1)


def test_the_next_poll_is_counted_in_seconds() -> None:
    """A list shows when a target is polled next."""
    assert why_json.summary(explanation.explain(HEALTHY)).next_poll_in_seconds == 48
