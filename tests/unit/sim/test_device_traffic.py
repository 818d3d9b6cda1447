"""Uptime and traffic of a device as functions of time."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from poller.sim import device_traffic

salts = st.integers(0, 2**63 - 1)
instants = st.floats(device_traffic.EPOCH, device_traffic.EPOCH + 20 * 365 * device_traffic.DAY)
steps = st.floats(0.01, 10 * device_traffic.DAY)


@given(salts, instants, steps)
def test_waves_only_grow(salt: int, now: float, step: float) -> None:
    """Every wave grows with time."""
    device = device_traffic.life(salt)
    assert all(
        after > before
        for before, after in zip(device.waves(now), device.waves(now + step), strict=True)
    )


@given(salts, instants)
def test_a_wave_grows_at_a_plausible_rate(salt: int, now: float) -> None:
    """Activity stays between 0.2 and 2.5 times the mean."""
    device = device_traffic.life(salt)
    for before, after in zip(device.waves(now), device.waves(now + 10), strict=True):
        assert 0.2 * 10 < after - before < 2.5 * 10


@given(salts, instants)
def test_a_reboot_resets_uptime_and_counters(salt: int, now: float) -> None:
    """After a reboot uptime and counters are zero, and the number of boots is one higher."""
    device = device_traffic.life(salt, reboots=True)
    left = device.until_reboot(now)
    assert left is not None
    assert 0 < left <= 301
    just_before, just_after = now + left - 1, now + left + 0.001
    assert device.boots(just_after) == device.boots(just_before) + 1
    assert device.uptime(just_after) < 1
    assert all(wave < 5 for wave in device.waves(just_after))
    assert device.waves(just_before)[device_traffic.UPTIME] > 100


@given(salts)
def test_a_clock_before_the_epoch_is_harmless(salt: int) -> None:
    """With a clock of 1970 counters are zero, not negative."""
    assert device_traffic.life(salt).waves(0.0) == (0.0, 0.0, 0.0, 0.0, 0.0)
    assert device_traffic.life(salt).boots(0.0) == 1
