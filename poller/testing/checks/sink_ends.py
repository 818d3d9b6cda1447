"""The checks of a sink that takes ends: ends are written, may come twice, and are told by labels.

An end names series that have no value any more. Two workers may both tell it, and it may be told of
series that the store never had.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

import pytest

from poller import errors
from poller.sinks.api import Sample
from poller.testing.checks import sink_faults

Stored = Callable[[], Collection[Any]]


class EndChecks:
    """The checks for one sink with `takes_ends`; `samples` returns polls, the newest first."""

    def __init__(self, stored: Stored | None, samples: Callable[[], list[Sample]], once: bool):
        self._stored = stored
        self._samples = samples
        self._once = once

    def tests(self) -> dict[str, Callable[[Any, Any], None]]:
        """Return the test methods by name."""
        return {"test_ends": self._ends(), "test_target_labels": self._target_labels()}

    def _ends(self) -> Callable[[Any, Any], None]:
        def test(_self: Any, made: Any) -> None:
            """An end reaches the store, alone or with polls; told twice, it changes nothing."""
            newest, older, _ = self._samples()
            _write(made, [older])
            before = self._contents()
            end = end_after(older)
            _write(made, [end])
            after = self._contents()
            if before is not None and after == before:
                pytest.fail(
                    "series ended, and nothing changed in the store: write samples with is_end, "
                    "or leave takes_ends out",
                    pytrace=False,
                )
            _write(made, [end])
            if self._once and after is not None and len(self._contents()) != len(after):
                pytest.fail("an end that came twice is stored twice", pytrace=False)
            # The series begin again and end again, with an end of series that were never sent.
            never = replace(end_after(newest), target=replace(newest.target, id=2, device="olt-2"))
            _write(made, [newest, end_after(newest), never])

        return test

    def _target_labels(self) -> Callable[[Any, Any], None]:
        def test(_self: Any, made: Any) -> None:
            """`target_labels` is one hashable value for a target until its labels change."""
            state = getattr(made, "target_labels", None)
            if state is None:
                pytest.skip("the sink has no target_labels: every change of a target ends series")
            target = self._samples()[0].target
            edited = replace(target, version=target.version + 1, interval_ms=5_000)
            try:
                is_same = hash(state(target)) == hash(state(edited))
            except Exception as error:  # noqa: BLE001  the door to a plugin's sink
                said = f"target_labels raised {type(error).__name__}: {error}"
                pytest.fail(f"{said}. Return a hashable value for any target", pytrace=False)
            if not is_same or state(target) != state(edited):
                pytest.fail(
                    "target_labels differs after an edit of the interval, which no store has: "
                    "every edit would end all series of the target",
                    pytrace=False,
                )

        return test

    def _contents(self) -> Any:
        """Return a copy of what is stored; None if the suite cannot read the store."""
        if self._stored is None:
            return None
        found = self._stored()
        return dict(found) if isinstance(found, Mapping) else list(found)


def end_after(sample: Sample) -> Sample:
    """Return the end of the series of a poll, a second later."""
    return Sample.end_of(sample.target, sample.at_ms + 1000, sample.readings.series)


def _write(made: Any, samples: list[Sample]) -> None:
    error: errors.StoreError | None = sink_faults.attempt(made, samples)
    if error is not None:
        pytest.fail(f"the sink could not write an end: {error}", pytrace=False)
