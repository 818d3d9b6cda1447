"""One outage, one page: parents, sites, returns, pauses and maintenance."""

from __future__ import annotations

from dataclasses import replace

import pytest

from poller.domain.alerts.alert import AlertState
from poller.domain.alerts.flow.known_device import chain, common_parents
from poller.domain.alerts.flow.outage_scene import Reached
from tests.unit.domain.alerts.alert_worlds import (
    DARK,
    FAILING,
    LOAD,
    MISSING,
    UNREACHABLE,
    World,
    device,
    of_device,
    of_site,
    of_target,
    target_subject,
)

SWITCH = 1
CHILDREN = range(2, 12)


@pytest.fixture
def behind_a_switch() -> World:
    """Ten devices behind one switch, all at one site."""
    devices = {SWITCH: device(SWITCH)}
    devices |= {each: device(each, parent=SWITCH) for each in CHILDREN}
    return World(devices)


def goes_down(world: World, *numbers: int) -> None:
    world.down |= dict.fromkeys(numbers, world.at)


def answers(world: World, number: int) -> None:
    world.reached[number] = Reached(polled_ms=world.at, answered_ms=world.at)


def test_a_childs_alert_waits_for_a_poll_of_its_parent(behind_a_switch: World) -> None:
    """The parent is polled at once; until it answered, nobody is told of the child."""
    world = behind_a_switch
    goes_down(world, 2)
    kept = world.look()
    assert world.alert(of_device(2)).state is AlertState.PENDING
    assert kept.ask == {SWITCH}
    world.at += 1000
    answers(world, SWITCH)
    world.look()
    assert world.told == [of_device(2)]


def test_one_dead_switch_is_one_page(behind_a_switch: World) -> None:
    """The children that were found first wait, and fold under the switch when it is found."""
    world = behind_a_switch
    goes_down(world, *CHILDREN)
    world.look()
    world.reached[SWITCH] = Reached(polled_ms=world.at, is_silent=True)
    world.pass_time(20)
    goes_down(world, SWITCH)
    world.pass_time(30)
    assert world.told == [of_device(SWITCH)]
    switch = world.alert(of_device(SWITCH))
    for each in CHILDREN:
        assert world.alert(of_device(each)).suppressed_by == f"alert:{switch.id}"
        assert world.alert(of_device(each)).state is AlertState.FIRING


def test_a_child_that_was_told_before_folds_under_its_parent(behind_a_switch: World) -> None:
    """It is covered from then on, and not told a second time when the parent is back."""
    world = behind_a_switch
    answers(world, SWITCH)
    world.at += 1
    goes_down(world, 2)
    world.at += 1
    answers(world, SWITCH)
    world.look()
    goes_down(world, SWITCH)
    world.pass_time(5)
    assert world.told == [of_device(2), of_device(SWITCH)]
    assert world.alert(of_device(2)).suppressed_by.startswith("alert:")


def test_a_parent_that_cannot_be_polled_delays_its_child_and_no_more(
    behind_a_switch: World,
) -> None:
    """Without an answer about the parent the child is told after a minute."""
    world = behind_a_switch
    goes_down(world, 2)
    world.pass_time(59)
    assert not world.told
    world.pass_time(2)
    assert world.told == [of_device(2)]


def test_ends_are_told_also_of_what_was_covered(behind_a_switch: World) -> None:
    """Being covered stops no alert from ending: nothing is left open."""
    world = behind_a_switch
    goes_down(world, SWITCH, *CHILDREN)
    world.pass_time(30)
    world.down.clear()
    world.look(gone=[of_device(SWITCH), *map(of_device, CHILDREN)])
    assert not world.open
    assert len(world.ended) == 11


def test_a_device_that_stays_dead_behind_a_recovered_parent_is_told(
    behind_a_switch: World,
) -> None:
    """After the parent is back its children are polled, and only the one that is still down then
    is told: the network has half a minute to settle.
    """
    world = behind_a_switch
    goes_down(world, SWITCH, *CHILDREN)
    world.pass_time(30)
    back_at = world.at
    del world.down[SWITCH]
    kept = world.look(gone=[of_device(SWITCH)])
    assert set(CHILDREN) <= kept.ask
    for each in CHILDREN:  # the first polls still fail
        world.reached[each] = Reached(polled_ms=world.at + 500)
    world.pass_time(10)
    assert world.told == [of_device(SWITCH)]

    well = [each for each in CHILDREN if each != 5]
    for each in well:
        del world.down[each]
    world.look(gone=[of_device(each) for each in well])
    world.at = back_at + 31_000
    assert 5 in world.look().ask
    world.reached[5] = Reached(polled_ms=world.at)
    world.look()
    assert world.told == [of_device(SWITCH), of_device(5)]


def test_a_child_of_which_no_poll_tells_is_told_in_the_end(behind_a_switch: World) -> None:
    """The wait for a poll after the return has an end too."""
    world = behind_a_switch
    goes_down(world, SWITCH, 2)
    world.pass_time(10)
    del world.down[SWITCH]
    world.look(gone=[of_device(SWITCH)])
    world.pass_time(179)
    assert world.told == [of_device(SWITCH)]
    world.pass_time(2)
    assert world.told == [of_device(SWITCH), of_device(2)]


def test_an_outage_folds_along_the_chain() -> None:
    """A device behind a switch behind a router: the router is the page of all."""
    world = World({1: device(1), 2: device(2, parent=1), 3: device(3, parent=2)})
    goes_down(world, 3)
    world.look()
    goes_down(world, 2)
    world.look()
    goes_down(world, 1)
    world.pass_time(5)
    assert world.told == [of_device(1)]
    root = f"alert:{world.alert(of_device(1)).id}"
    assert world.alert(of_device(2)).suppressed_by == root
    assert world.alert(of_device(3)).suppressed_by == root


def test_a_circle_of_parents_covers_nothing() -> None:
    """Two devices that are each other's parents are both told."""
    world = World({1: device(1, parent=2), 2: device(2, parent=1)})
    assert chain(1, world.devices) == [2]
    goes_down(world, 1, 2)
    world.pass_time(130)
    assert sorted(world.told) == [of_device(1), of_device(2)]


def test_a_dark_site_is_one_page(behind_a_switch: World) -> None:
    """Devices that were found down before their site was found dark are covered by it."""
    world = behind_a_switch
    world.suspects = {"ams"}
    goes_down(world, 2, 3, SWITCH)
    world.pass_time(10)
    assert not world.told
    world.dark["ams"] = world.at
    world.suspects = set()
    world.pass_time(60)
    assert world.told == [of_site("ams")]
    assert world.alert(of_device(SWITCH)).suppressed_by == "site:ams"


def test_a_suspect_site_delays_and_does_not_silence(behind_a_switch: World) -> None:
    """A site that does not turn out to be dark: its devices are told after half a minute."""
    world = World({1: device(1)}, suspects={"ams"})
    goes_down(world, 1)
    world.pass_time(29)
    assert not world.told
    world.pass_time(2)
    assert world.told == [of_device(1)]


def test_a_dark_site_behind_a_dead_device_is_that_devices_page() -> None:
    """A site is reached through a router elsewhere: when the router is down too, the site folds."""
    devices = {1: device(1, site="core")}
    devices |= {each: device(each, site="ber", parent=1) for each in CHILDREN}
    world = World(devices, site_parents={"ber": (1,)})
    world.dark["ber"] = world.at
    kept = world.look()
    assert kept.ask == {1}
    world.reached[1] = Reached(polled_ms=world.at, is_silent=True)
    world.pass_time(70)
    goes_down(world, 1)
    world.pass_time(10)
    assert world.told == [of_device(1)]
    del world.down[1]
    world.look(gone=[of_device(1)])
    del world.dark["ber"]
    world.pass_time(5)
    world.look(gone=[of_site("ber")])
    assert not world.open
    assert world.told == [of_device(1)]


def test_a_site_and_its_own_switch_are_one_page_whichever_is_first(
    behind_a_switch: World,
) -> None:
    """A switch that was told before its site went dark covers the site, and stays uncovered."""
    world = behind_a_switch
    world.site_parents = {"ams": (SWITCH,)}
    goes_down(world, SWITCH)
    world.pass_time(40)
    world.dark["ams"] = world.at
    world.pass_time(60)
    assert world.told == [of_device(SWITCH)]
    switch = world.alert(of_device(SWITCH))
    assert world.alert(of_site("ams")).suppressed_by == f"alert:{switch.id}"


def test_a_device_in_a_site_that_is_back_is_looked_at_before_it_is_told() -> None:
    """A device that fails a moment after its site is back has half a minute to come back too."""
    world = World({each: device(each) for each in range(1, 5)})
    world.dark["ams"] = world.at
    world.pass_time(30)
    del world.dark["ams"]
    world.look(gone=[of_site("ams")])
    back_at = world.at
    goes_down(world, 3)
    world.reached[3] = Reached(polled_ms=world.at)
    world.pass_time(25)
    assert world.told == [of_site("ams")]
    world.at = back_at + 31_000
    world.reached[3] = Reached(polled_ms=world.at)
    world.look()
    assert world.told == [of_site("ams"), of_device(3)]


def test_everything_of_a_device_that_is_down_is_covered_by_it() -> None:
    """Thresholds that held when the device went down stay covered until it was seen again."""
    world = World({1: device(1)})
    load = world.sign(LOAD, target_subject(1))
    world.look(load)
    goes_down(world, 1)
    world.look(load)
    down = world.alert(of_device(1))
    assert world.alert(of_target(1, LOAD)).suppressed_by == f"alert:{down.id}"
    world.at += 60_000
    del world.down[1]
    world.look(load, gone=[of_device(1)])
    assert world.alert(of_target(1, LOAD)).suppressed_by == f"alert:{down.id}"
    world.at += 31_000
    world.reached[1] = Reached(polled_ms=world.at, answered_ms=world.at)
    world.look(load)
    assert world.alert(of_target(1, LOAD)).suppressed_by == ""


def test_missing_data_of_what_is_explained_make_no_alert() -> None:
    """Thousands of targets of a dark site make no thousands of alerts about missing data."""
    world = World({1: device(1)})
    world.dark["ams"] = world.at
    world.look()
    world.look(world.sign(MISSING, target_subject(1)))
    assert list(world.open) == [of_site("ams")]
    del world.dark["ams"]
    world.look(world.sign(MISSING, target_subject(1)), gone=[of_site("ams")])
    assert of_target(1, MISSING) in world.open


def test_missing_data_of_a_failing_target_fold_under_its_failure() -> None:
    """One target, one page: the failure names the reason."""
    world = World({1: device(1)})
    failing = world.sign(FAILING, target_subject(1))
    world.look(failing)
    world.look(failing, world.sign(MISSING, target_subject(1)))
    assert world.told == [of_target(1, FAILING)]


def test_a_paused_device_is_said_as_such_until_it_was_seen() -> None:
    """A device that is disabled covers its alerts; enabled again, it must fail again to be told."""
    world = World({1: device(1)})
    goes_down(world, 1)
    world.look()
    world.devices[1] = replace(world.devices[1], enabled=False)
    world.down.clear()
    world.look()
    assert world.alert(of_device(1)).suppressed_by == "paused"
    world.devices[1] = replace(world.devices[1], enabled=True)
    world.look()
    assert world.alert(of_device(1)).suppressed_by == "paused"
    goes_down(world, 1)
    world.look()
    assert world.alert(of_device(1)).suppressed_by == ""


def test_a_paused_parent_covers_nothing(behind_a_switch: World) -> None:
    """Nobody knows whether it is still down: its children would be silent for ever."""
    world = behind_a_switch
    goes_down(world, SWITCH, *CHILDREN)
    world.pass_time(30)
    assert world.told == [of_device(SWITCH)]
    world.devices[SWITCH] = replace(world.devices[SWITCH], enabled=False)
    del world.down[SWITCH]
    world.look()
    assert world.alert(of_device(SWITCH)).suppressed_by == "paused"
    assert set(world.told) == {of_device(SWITCH), *map(of_device, CHILDREN)}


def test_maintenance_covers_and_its_end_uncovers() -> None:
    """What lasts longer than its maintenance is told at its end; what ended meanwhile is over."""
    world = World({1: device(1), 2: device(2, site="ber")})
    world.maintenances = {of_device(1): 7, of_device(2): 7}
    goes_down(world, 1, 2)
    world.look()
    assert world.alert(of_device(1)).suppressed_by == "maintenance:7"
    assert not world.told
    del world.down[2]
    world.look(gone=[of_device(2)])
    world.maintenances = {}
    world.look()
    assert world.told == [of_device(1)]


def test_a_parent_in_maintenance_keeps_its_children_covered(behind_a_switch: World) -> None:
    """Work on a switch pages nobody for what is behind it."""
    world = behind_a_switch
    world.maintenances = {of_device(SWITCH): 7}
    goes_down(world, SWITCH, *CHILDREN)
    world.pass_time(60)
    assert not world.told


def test_a_rule_that_tells_nobody_of_a_parent_covers_nothing(behind_a_switch: World) -> None:
    """Without an alert of the parent its children are told themselves: nothing is lost."""
    world = behind_a_switch
    world.rules = {UNREACHABLE.name: UNREACHABLE, DARK.name: DARK}
    world.down[2] = world.at
    world.reached[SWITCH] = Reached(polled_ms=world.at, is_silent=True)
    world.pass_time(121)
    assert world.told == [of_device(2)]


def test_the_common_parent_of_a_site_is_the_nearest_one() -> None:
    """A site behind a switch behind a router names the switch first; single devices name none."""
    parents = dict.fromkeys(CHILDREN, 1) | {1: 100}
    assert common_parents([1, *CHILDREN], parents, 0.6) == [1, 100]
    assert common_parents([1, *CHILDREN], {2: 1, 3: 1}, 0.6) == []
    assert common_parents([5], {5: 1}, 0.6) == []


@pytest.mark.parametrize("order", ["from the top", "from the bottom"])
@pytest.mark.parametrize("length", [10, 40, 100])
def test_a_long_chain_of_devices_has_one_cause(length: int, order: str) -> None:
    """Every device behind a dead one is covered by it, whichever is found first."""
    numbers = range(1, length + 1)
    world = World({each: device(each, parent=each - 1 or None) for each in numbers})
    goes_down(world, *(numbers if order == "from the top" else reversed(numbers)))
    world.pass_time(5)
    assert world.told == [of_device(1)]
    cause = f"alert:{world.alert(of_device(1)).id}"
    covers = {world.alert(of_device(each)).suppressed_by for each in numbers[1:]}
    assert covers == {cause}


def test_a_circle_of_parents_covers_nobody(behind_a_switch: World) -> None:
    """Each device of a circle is told for itself: otherwise nobody would be told of any."""
    world = behind_a_switch
    numbers = list(CHILDREN)
    for each in numbers:
        parent = numbers[(numbers.index(each) + 1) % len(numbers)]
        world.devices[each] = device(each, parent=parent)
        answers(world, each)
    world.at += 1
    goes_down(world, *numbers)
    world.pass_time(200)
    assert len(world.told) == len(numbers)


def test_a_return_in_a_wrong_future_holds_nobody_back(behind_a_switch: World) -> None:
    """A switch that was back a year ahead, by a clock that was set right since, does not keep the
    alerts of its children waiting for a year.
    """
    world = behind_a_switch
    now = world.at
    world.at += 365 * 86_400_000
    goes_down(world, SWITCH)
    world.look()
    world.down.clear()
    world.look(gone=[of_device(SWITCH)])
    assert not world.open
    world.at = now
    world.told.clear()
    goes_down(world, 2)
    world.pass_time(240)
    assert world.told == [of_device(2)]
