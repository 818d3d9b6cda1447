"""How much to ask for: learned from trouble, forgotten with patience."""

from __future__ import annotations

import random

from poller.collectors.snmp.read.request_size import LearnedSize, RequestSizes


def test_the_first_walk_asks_for_all_it_may() -> None:
    assert RequestSizes(50).rows_to_request("1.3", 0) == 50


def test_the_next_walk_asks_for_what_is_there_and_one_more() -> None:
    """The one more shows that the subtree has ended, and nothing is sent for nothing."""
    sizes = RequestSizes(50, subtree_rows={"1.3": 69})
    assert [sizes.rows_to_request("1.3", 0), sizes.rows_to_request("1.3", 50)] == [50, 20]
    assert sizes.rows_to_request("1.3", 75) == 50  # more rows than last time


def test_both_sizes_grow_to_the_operators_limit_while_all_goes_well() -> None:
    """The first requests are such as every agent answers."""
    sizes = RequestSizes(100)
    first = (sizes.rows.now, sizes.oids.now)
    for _ in range(20):
        sizes.end_poll()
    assert first == (50, 20)
    assert (sizes.rows.now, sizes.oids.now) == (100, 100)


def test_the_operators_limit_is_never_passed() -> None:
    sizes = RequestSizes(3)
    for _ in range(20):
        assert max(sizes.rows.now, sizes.oids.now, sizes.rows_to_request("1.3", 0)) <= 3
        sizes.end_poll()


def test_trouble_halves_and_is_remembered() -> None:
    """The size that failed is not tried again soon."""
    size = LearnedSize(50, 50)
    size.record_too_big(50)
    assert size.now == 25
    size.end_poll()
    for _ in range(30):
        size.end_poll()
    assert size.now == 49


def test_after_many_clean_polls_the_limit_is_dared_again() -> None:
    size = LearnedSize(50, 50)
    size.record_too_big(50)
    for _ in range(200):
        size.end_poll()
    assert size.now == 50


def test_a_limit_that_fails_again_is_dared_less_often() -> None:
    """Each time costs a device that drops large answers a time-out."""
    size, tries = LearnedSize(50, 50), 0
    for _ in range(2000):
        if size.now == 50:
            tries += 1
            size.record_too_big(50)
        size.end_poll()
    assert 3 <= tries <= 6


def test_it_never_asks_for_nothing() -> None:
    size = LearnedSize(50, 50)
    for _ in range(10):
        size.record_too_big(size.now)
    assert size.now == 1


def test_rows_in_an_answer_are_what_the_agent_can_send() -> None:
    sizes = RequestSizes(50)
    assert sizes.rows_per_response == 50
    sizes.response_capacity = 31
    assert sizes.rows_per_response == 31


def test_a_lost_packet_is_not_taken_for_an_answer_that_is_too_big() -> None:
    """One in fifty is lost, large ones and small ones: what has arrived before goes on being asked for."""
    size, dice = LearnedSize(50, 50), random.Random(4)
    size.record_response(50)
    for _ in range(300):
        for number in range(30):
            asked = 50 if number % 3 else 3
            if dice.random() < 0.02:
                size.record_timeout(asked, str(number))
                size.record_response(asked // 2)
            else:
                size.record_response(asked)
        size.end_poll()
        assert size.now == 50


def test_a_size_that_no_longer_arrives_is_given_up() -> None:
    """The fourth silence in a row is no accident any more, nor the fourth poll with one at the same place."""
    size = LearnedSize(50, 50)
    size.record_response(50)
    for _ in range(4):
        assert size.now == 50
        size.record_timeout(50, "anywhere")
        size.record_response(25)
    assert size.now == 25
    size = LearnedSize(50, 50)
    for _ in range(4):
        size.record_response(50)
        assert size.now == 50
        size.record_timeout(50, "long texts")
        size.record_response(25)
        size.record_response(50)
        size.end_poll()
    assert size.now == 25


def test_a_size_that_never_arrived_is_given_up_at_once() -> None:
    size = LearnedSize(50, 50)
    size.record_timeout(50, "1.3")
    assert size.now == 25
