"""Which version of a contract do a plugin and this release speak with each other?"""

from __future__ import annotations

import pytest

from poller import errors
from poller.domain.inventory import api_version
from poller.domain.inventory.api_version import NotServed, Served

ONE = {1: Served()}
TWO = {1: Served(ends="3.0"), 2: Served()}


@pytest.mark.parametrize(
    ("stated", "served", "chosen"),
    [
        (1, ONE, 1),
        ((1, 1), ONE, 1),
        ((1, 2), ONE, 1),
        ((1, 2), TWO, 2),
        (1, TWO, 1),
        ((2, 9), TWO, 2),
    ],
)
def test_the_newest_that_both_know_is_used(
    stated: object, served: dict[int, Served], chosen: int
) -> None:
    assert api_version.choose(stated, served, "collector") == chosen


@pytest.mark.parametrize(
    ("stated", "text", "hint"),
    [
        (3, "it needs collector API 3, this poller serves 1 and 2", "pip install --upgrade poller"),
        (
            (3, 5),
            "it needs collector API 3 to 5, this poller serves 1 and 2",
            "pip install --upgrade poller",
        ),
    ],
)
def test_no_common_version_has_a_hint(stated: object, text: str, hint: str) -> None:
    with pytest.raises(NotServed) as raised:
        api_version.choose(stated, TWO, "collector")
    assert (raised.value.message, raised.value.hint) == (text, hint)


def test_a_plugin_that_is_too_old_needs_a_newer_release() -> None:
    with pytest.raises(NotServed) as raised:
        api_version.choose(1, {2: Served()}, "sink")
    assert raised.value.hint == "a newer release of the plugin"


@pytest.mark.parametrize(
    "stated", [None, "1", 0, True, 1.0, (1,), (1, 2, 3), (2, 1), ("1", "2"), [1, 2]]
)
def test_anything_else_is_refused_by_name(stated: object) -> None:
    with pytest.raises(errors.ConfigError, match="its api_version is"):
        api_version.span(stated)


def test_a_version_that_ends_has_a_notice_with_the_release() -> None:
    assert api_version.notice(2, TWO, "collector") == ""
    assert api_version.notice(1, TWO, "collector") == (
        "it uses collector API 1, which poller 3.0 will not serve any more"
    )
