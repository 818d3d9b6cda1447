"""`poller worker --memory-limit`: the sizes that people write."""

from __future__ import annotations

import pytest

from poller import errors
from poller.cli.commands import worker


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1048576", 2**20),
        ("512M", 512 * 2**20),
        ("512mb", 512 * 2**20),
        ("1.5 GiB", 3 * 2**29),
        ("4k", 4096),
    ],
)
def test_sizes_are_read_in_powers_of_1024(text: str, expected: int) -> None:
    """The letter B is optional, and case does not matter."""
    assert worker.parse_bytes(text, "--memory-limit") == expected


@pytest.mark.parametrize("text", ["", "much", "-1M", "5X", "1e9", "5 M M"])
def test_anything_else_is_refused_with_the_right_form(text: str) -> None:
    """The error names the option."""
    with pytest.raises(errors.InvalidInput, match=r"--memory-limit: .* is not a size") as refused:
        worker.parse_bytes(text, "--memory-limit")
    assert "512M" in refused.value.hint
