"""The suggestion behind "did you mean"."""

from __future__ import annotations

import pytest

from poller.domain.inventory.did_you_mean import nearest

FLEET = [f"sw-sto-{number:04}" for number in range(300)]


@pytest.mark.parametrize(
    ("name", "known", "meant"),
    [
        ("sw-sto-012", FLEET, "sw-sto-0012"),
        ("sw-sto-12", FLEET, "sw-sto-0012"),
        ("SW-STO-0012", FLEET, "sw-sto-0012"),
        ("sw-stp-0012", FLEET, "sw-sto-0012"),
        ("breaker_opend", ["breaker_closed", "breaker_opened", "site_opened"], "breaker_opened"),
        ("core-sw1", ["core-sw-1", "core-sw-2", "edge-sw1"], "core-sw-1"),
        ("printer", FLEET, None),
        ("printer", [], None),
    ],
)
def test_the_name_with_the_fewest_typing_errors_is_meant(
    name: str, known: list[str], meant: str | None
) -> None:
    """A number with zeros too few or too many is the same number."""
    assert nearest(name, known) == meant
