"""Which rules apply to a target, chosen once."""

from __future__ import annotations

from poller.domain.alerts.judging.rule_set import RuleChoice
from poller.domain.alerts.rule import DeviceUnreachable, InterfaceDown, Rule, Threshold
from poller.domain.inventory import target_filter
from poller.domain.inventory.poll_target import PollTarget
from poller.domain.metrics.series_identity import Identity

HOT = Rule("hot", Threshold("temperature", above=60.0), id=1)
CORE = Rule("core", InterfaceDown(), where=target_filter.parse("tag:core"), id=2)


def target(*tags: str, **options: str) -> PollTarget:
    place = (1, 1, "snmp", 1, "sw1", "192.0.2.1", "fra", "snmp", 60_000, 5_000)
    return PollTarget(*place, options, tags)


def ids(choice: RuleChoice, *tags: str) -> list[int]:
    return [rule.id for rule in choice.choose(target(*tags)).rules]


def test_a_filter_chooses_the_targets_of_a_rule() -> None:
    choice = RuleChoice([HOT, CORE])
    assert ids(choice) == [1]
    assert ids(choice, "core") == [1, 2]


def test_targets_alike_share_one_rule_set() -> None:
    """So that what was made of it for a shape serves all of them."""
    choice = RuleChoice([HOT, CORE])
    assert choice.choose(target("core")) is choice.choose(target("core"))
    assert choice.choose(target()) is not choice.choose(target("core"))


def test_the_identity_of_series_is_that_of_the_target() -> None:
    choice = RuleChoice([HOT])
    assert choice.choose(target()).by is Identity.IF_NAME
    assert choice.choose(target(identity="ifAlias")).by is Identity.IF_ALIAS


def test_rules_that_are_off_or_of_the_keeper_are_left_out() -> None:
    off = Rule("off", HOT.condition, enabled=False, id=3)
    unreachable = Rule("gone", DeviceUnreachable(), id=4)
    assert len(RuleChoice([HOT, off, unreachable])) == 1


def test_a_filter_that_needs_a_state_makes_a_rule_unusable() -> None:
    """Such a rule is refused when it is saved; an old row must not cost the other rules."""
    odd = Rule("odd", HOT.condition, where=target_filter.parse("state:failing"), id=5)
    choice = RuleChoice([odd, HOT])
    assert (choice.unusable, len(choice)) == (["odd"], 1)
