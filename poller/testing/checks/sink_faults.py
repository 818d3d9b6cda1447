"""The checks of a sink whose store fails: slow, down, busy, refusing, cut requests, lost answers.

A StoreUnavailable means that the same samples come again, and any other StoreError that the store
will never take them. Each fault has to be the right one of the two, and after a repetition every
sample is stored, once if the store can tell a repetition.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Sequence
from typing import Any, Protocol

import pytest

from poller import errors
from poller.sinks.api import Sample
from poller.sinks.made_sink import LeftOut

#: A sink that does not return within this time blocks its worker's queue.
LONGEST_CALL_S = 20.0

Stored = Callable[[], Collection[Any]]
Samples = Callable[[int], list[Sample]]


class StoreFaults(Protocol):
    """A store that fails on demand. FakeHttpStore and StoreRelay are such ones.

    `refuse` (the store refuses the samples for good) and `busy` (it asks to wait) are optional.
    """

    def down(self) -> None: ...

    def slow(self) -> None: ...

    def cut_request(self) -> None: ...

    def lose_answer(self) -> None: ...

    def recover(self) -> None: ...


class FaultChecks:
    """The checks for one sink; `left_out` counts the samples that it leaves out."""

    def __init__(
        self,
        faults: Callable[[], StoreFaults],
        stored: Stored | None,
        left_out: LeftOut,
        samples: Samples,
        once: bool,
    ) -> None:
        self._faults = faults
        self._stored = stored
        self._left_out = left_out
        self._samples = samples
        self._once = once

    def tests(self) -> dict[str, Callable[[Any, Any], None]]:
        """Return the test methods by name."""
        return {
            "test_down": self._outage("down", "the store was down"),
            "test_slow": self._outage("slow", "the store did not answer"),
            "test_half_written": self._interruption("cut_request"),
            "test_lost_answer": self._interruption("lose_answer"),
            "test_busy": self._busy(),
            "test_refusing": self._refusing(),
        }

    def _outage(self, fault: str, text: str) -> Callable[[Any, Any], None]:
        def test(_self: Any, made: Any) -> None:
            """Samples for a store that does not answer are a StoreUnavailable, and come again."""
            once = self._write_first(made)
            faults = self._faults()
            getattr(faults, fault)()
            error = attempt(made, self._samples(3))
            faults.recover()
            if error is None:
                pytest.fail(f"write returned although {text}: samples are lost", pytrace=False)
            _expect_unavailable(error, text)
            self._repeat(made, once)

        return test

    def _interruption(self, fault: str) -> Callable[[Any, Any], None]:
        def test(_self: Any, made: Any) -> None:
            """A connection that ends during a request is a StoreUnavailable, or the sink itself
            sends the request again; samples are stored in the end.
            """
            once = self._write_first(made)
            faults = self._faults()
            getattr(faults, fault)()
            error = attempt(made, self._samples(3))
            faults.recover()
            if error is not None:
                _expect_unavailable(error, "the connection ended during a request")
            self._repeat(made, once)

        return test

    def _busy(self) -> Callable[[Any, Any], None]:
        def test(_self: Any, made: Any) -> None:
            """A store that asks to wait is a StoreUnavailable with `retry_after_s`."""
            faults: Any = self._faults()
            if not hasattr(faults, "busy"):
                pytest.skip("the store of the test cannot ask to wait")
            self._write_first(made)
            faults.busy()
            error = attempt(made, self._samples(3))
            faults.recover()
            _expect_unavailable(error, "the store asked to wait")
            if getattr(error, "retry_after_s", None) is None:
                pytest.fail(
                    "the error has no retry_after_s, which the store asked for", pytrace=False
                )

        return test

    def _refusing(self) -> Callable[[Any, Any], None]:
        def test(_self: Any, made: Any) -> None:
            """Samples that the store refuses are left out and counted, or a StoreError that is no
            StoreUnavailable: they must not wait for ever, and later samples are stored.
            """
            faults: Any = self._faults()
            if not hasattr(faults, "refuse"):
                pytest.skip("the store of the test cannot refuse samples")
            once = self._write_first(made)
            left_out_before = self._left_out.samples
            faults.refuse()
            error = attempt(made, self._samples(3))
            faults.recover()
            if isinstance(error, errors.StoreUnavailable):
                pytest.fail(
                    "the store refused the samples for good, and write raised StoreUnavailable: "
                    "they would come again for ever. Raise StoreError, or leave them out and call "
                    "Stores.dropped",
                    pytrace=False,
                )
            if error is None and self._left_out.samples == left_out_before:
                pytest.fail(
                    "the store refused the samples, and nobody knows: call Stores.dropped, or "
                    "raise StoreError",
                    pytrace=False,
                )
            self._check_stored(made, self._samples(6), once)

        return test

    def _write_first(self, made: Any) -> int:
        """Write samples to the well store, and return how many entries it has of them."""
        error = attempt(made, self._samples(0))
        if error is not None:
            pytest.fail(f"the sink could not write: {error}", pytrace=False)
        return len(self._stored()) if self._stored else 0

    def _repeat(self, made: Any, once: int) -> None:
        """Write the samples of the fault again, as a worker does."""
        self._check_stored(made, self._samples(3), once)

    def _check_stored(self, made: Any, samples: Sequence[Sample], once: int) -> None:
        error = attempt(made, samples)
        if isinstance(error, errors.StoreUnavailable):
            error = attempt(made, samples)  # the first one may only have found the dead connection
        if error is not None:
            pytest.fail(f"write fails although the store is back: {error}", pytrace=False)
        if self._stored is None:
            return
        number = len(self._stored())
        if number < 2 * once or (self._once and number > 2 * once):
            pytest.fail(
                f"the store has {number} entries instead of {2 * once} after the fault: samples "
                "are lost, or stored twice",
                pytrace=False,
            )


def attempt(made: Any, samples: Sequence[Sample]) -> errors.StoreError | None:
    """Call `write`, and return its error. Fails for other exceptions, and for a long call."""
    started_mono = time.monotonic()
    error: errors.StoreError | None = None
    try:
        made.write(samples)
    except errors.StoreError as raised:
        error = raised
    except Exception as raised:  # noqa: BLE001  the door to a plugin's sink
        said = f"write raised {type(raised).__name__}: {raised}"
        pytest.fail(f"{said}. Raise a poller.errors.StoreError instead", pytrace=False)
    elapsed_s = time.monotonic() - started_mono
    if elapsed_s > LONGEST_CALL_S:
        pytest.fail(f"write took {elapsed_s:.0f} s: the sink needs a time limit", pytrace=False)
    return error


def _expect_unavailable(error: errors.StoreError | None, when: str) -> None:
    if not isinstance(error, errors.StoreUnavailable):
        said = f"raised {type(error).__name__}" if error else "returned"
        pytest.fail(
            f"write {said} when {when}: raise StoreUnavailable, so that the samples come again",
            pytrace=False,
        )
