"""Request sizes shrink after failures and grow back slowly."""

from __future__ import annotations

import random

from poller.collectors.snmp.read.request_size import LearnedSize, RequestSizes


def test_the_first_walk_requests_the_maximum() -> None:
    assert RequestSizes(50).rows_to_request("1.3", 0) == 50


def test_the_next_walk_requests_the_known_rows_and_one_more() -> None:
    """The additional row shows the end of the subtree, so that no further request is needed."""
    sizes = RequestSizes(50, subtree_rows={"1.3": 69})
    assert [sizes.rows_to_request("1.3", 0), sizes.rows_to_request("1.3", 50)] == [50, 20]
    assert sizes.rows_to_request("1.3", 75) == 50  # more rows than last time


def test_both_sizes_grow_to_the_operators_limit_without_failures() -> None:
    """Every agent answers requests of the first sizes."""
    sizes = RequestSizes(100)
    first = (sizes.rows.now, sizes.oids.now)
    for _ in range(20):
        sizes.end_poll()
    assert first == (50, 20)
    assert (sizes.rows.now, sizes.oids.now) == (100, 100)


def test_the_operators_limit_is_never_exceeded() -> None:
    sizes = RequestSizes(3)
    for _ in range(20):
        assert max(sizes.rows.now, sizes.oids.now, sizes.rows_to_request("1.3", 0)) <= 3
        sizes.end_poll()


def test_a_failure_halves_the_size() -> None:
    """The size that failed stays out of reach for many polls."""
    size = LearnedSize(50, 50)
    size.record_too_big(50)
    assert size.now == 25
    size.end_poll()
    for _ in range(30):
        size.end_poll()
    assert size.now == 49


def test_after_many_clean_polls_the_limit_is_tried_again() -> None:
    size = LearnedSize(50, 50)
    size.record_too_big(50)
    for _ in range(200):
        size.end_poll()
    assert size.now == 50


def test_a_limit_that_fails_again_is_tried_less_often() -> None:
    """Each attempt costs a time-out on a device that drops large responses."""
    size, tries = LearnedSize(50, 50), 0
    for _ in range(2000):
        if size.now == 50:
            tries += 1
            size.record_too_big(50)
        size.end_poll()
    assert 3 <= tries <= 6


def test_the_size_is_never_zero() -> None:
    size = LearnedSize(50, 50)
    for _ in range(10):
        size.record_too_big(size.now)
    assert size.now == 1


def test_the_rows_per_response_are_what_the_agent_can_send() -> None:
    sizes = RequestSizes(50)
    assert sizes.rows_per_response == 50
    sizes.response_capacity = 31
    assert sizes.rows_per_response == 31


def test_a_lost_packet_does_not_count_as_a_response_that_is_too_big() -> None:
    """One packet in fifty is lost, large or small: a proven size stays in use."""
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


def test_a_size_that_fails_four_times_is_reduced() -> None:
    """Four timeouts in a row count, and so do four polls with a timeout at the same OID."""
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


def test_a_size_that_never_arrived_is_reduced_at_once() -> None:
    size = LearnedSize(50, 50)
    size.record_timeout(50, "1.3")
    assert size.now == 25
