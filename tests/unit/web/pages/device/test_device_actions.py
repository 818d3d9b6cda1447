"""Which actions a page offers: those that make sense now, and that its reader may do."""

from __future__ import annotations

from dataclasses import replace

import pytest
import web_device_states
import web_rates

from poller.domain.access import scopes
from poller.domain.access.actor import Actor, ActorKind
from poller.domain.access.scopes import Role
from poller.domain.failures.circuit_breaker import Breaker
from poller.domain.failures.dead_letter import Reason
from poller.presentation.device_state import DeviceState
from poller.service.operations.poll_actions import PollResult
from poller.state.board.record_formats import Opening
from poller.web.pages.device import action_buttons, action_notes
from poller.web.pages.device.action_buttons import Act

TARGET = replace(web_rates.TARGET, id=0)


def actor(role: Role) -> Actor:
    return Actor("kim", ActorKind.USER, "192.0.2.9", scopes.of_role(role))


def acts(state: DeviceState, role: Role = Role.ADMIN, enabled: bool = True) -> list[Act]:
    target = replace(TARGET, enabled=enabled)
    return [button.act for button in action_buttons.of_target(target, state, actor(role))]


def parked() -> DeviceState:
    state = web_device_states.never_answered()
    status = state.on_board[0].status._replace(reason=Reason.AUTH_FAILED)
    return replace(state, on_board={0: replace(state.on_board[0], status=status)})


def opened(trips: int = 0, by_hand: bool = False) -> DeviceState:
    """A target whose breaker failures have opened, or a person."""
    state = web_device_states.WELL
    target = state.on_board[0]
    status = target.status._replace(breaker=Breaker(trips=trips))
    opening = Opening(state.now_ms + 60_000, state.now_ms, "ann") if by_hand else None
    return replace(state, on_board={0: replace(target, status=status, opening=opening)})


@pytest.mark.parametrize(
    ("state", "role", "enabled", "may"),
    [
        (web_device_states.WELL, Role.OPERATOR, True, True),
        (opened(trips=2), Role.OPERATOR, True, True),
        (opened(by_hand=True), Role.OPERATOR, True, False),
        (web_device_states.WELL, Role.OPERATOR, False, False),
        (web_device_states.WELL, Role.VIEWER, True, False),
    ],
)
def test_what_is_polled_can_be_paused(
    state: DeviceState, role: Role, enabled: bool, may: bool
) -> None:
    """Neither what is paused already, nor what is not polled at all."""
    target = replace(TARGET, enabled=enabled)
    assert action_buttons.may_pause(target, state, actor(role)) is may


def test_a_reader_is_offered_nothing() -> None:
    """What needs a right that one lacks is not shown."""
    assert acts(web_device_states.WELL, Role.VIEWER) == []
    assert (
        action_buttons.of_device("sw1", web_device_states.WELL, [TARGET], actor(Role.VIEWER)) == []
    )


@pytest.mark.parametrize(
    ("state", "enabled", "found"),
    [
        (web_device_states.WELL, True, [Act.POLL, Act.DISABLE]),
        (web_device_states.WELL, False, [Act.ENABLE]),
        (parked(), True, [Act.POLL, Act.REQUEUE, Act.DROP, Act.DISABLE]),
        (opened(trips=2), True, [Act.POLL, Act.RESET, Act.DISABLE]),
        (opened(by_hand=True), True, [Act.POLL, Act.RESUME, Act.DISABLE]),
        (replace(web_device_states.WELL, enabled=False), True, []),
    ],
    ids=["well", "disabled", "dead letter", "breaker open", "paused", "device disabled"],
)
def test_a_target_offers_what_its_state_allows(
    state: DeviceState, enabled: bool, found: list[Act]
) -> None:
    """A disabled target cannot be polled, and only a dead letter is requeued."""
    assert acts(state, enabled=enabled) == found


def test_each_action_has_its_command() -> None:
    """Names with signs of a shell are quoted."""
    assert action_buttons.command(Act.POLL, "sw 1", "snmp") == "poller poll 'sw 1/snmp'"
    assert action_buttons.command(Act.RESET, "sw1", "") == "poller breaker reset sw1"
    assert action_buttons.command(Act.DISABLE, "sw1", "snmp") == (
        "poller target edit sw1/snmp --disable"
    )


def test_the_result_of_a_poll_has_its_error_or_its_values() -> None:
    """A missing result is said to be missing."""
    found = action_notes.poll_note(
        [
            PollResult(1, "sw1", "snmp", "snmp", "ok", 154, "", ""),
            PollResult(2, "sw1", "web", "http", "failing", 0, "timeout", "no answer"),
            PollResult(3, "sw1", "ping", "ping", "waiting", 0, "", "no result yet"),
        ]
    )
    assert [(line.state, line.text) for line in found.lines] == [
        ("● ok", "154 values"),
        ("■ failing", "timeout: no answer"),
        ("○ waiting", "no result yet"),
    ]
    assert found.text == "Polling: 1 result to come."
