"""Decides which targets have the states and error codes of a filter, from the board."""

from __future__ import annotations

from collections.abc import Mapping, Sequence, Set

from poller.db.inventory.filter_conditions import SelectedTarget
from poller.domain.inventory.target_filter import TargetFilter, TargetState
from poller.domain.record import target_condition
from poller.domain.record.target_condition import Condition
from poller.state.board.board_reader import BoardReader
from poller.state.board.breakers import Breakers
from poller.state.board.unwell_targets import UnwellTargets

#: States that the list of unwell targets, or that of openings by hand, names every target of.
_LISTED = frozenset(TargetState) - {TargetState.OK, TargetState.DISABLED}


class StateCheck:
    """The states of targets now. Every method raises StoreError."""

    def __init__(self, board: BoardReader, wanted: TargetFilter) -> None:
        self._wanted = wanted
        self._unwell = UnwellTargets(board)
        self._breakers = Breakers(board)
        self._now_ms = board.now_ms() if TargetState.OPEN in wanted.states else 0
        self._fitting: set[int] | None = None  # of all enabled targets

    @property
    def has_decided(self) -> bool:
        """Whether `candidate_ids` listed all targets that match."""
        return self._fitting is not None

    def share(self) -> float:
        """Return the share of the targets on the board that have one of the states; 0 with codes,
        which are not counted. Openings by hand are left out of account.
        """
        if self._wanted.codes:
            return 0.0
        counts = self._unwell.counts()
        total = sum(counts.values())
        matching = sum(
            number
            for condition, number in counts.items()
            if target_condition.has_state(self._wanted, condition)
        )
        return matching / total if total > 0 else 0.0

    def candidate_ids(self, most: int) -> Sequence[int] | None:
        """Return all enabled targets of the board that match; None if they are too many to be
        listed, or cannot be listed.

        The candidates are remembered, so that `matching` reads nothing again.
        """
        on_board = set(self._wanted.states) - {TargetState.DISABLED}
        if not (on_board <= _LISTED or self._wanted.codes):
            return None
        opened = self._opened_ids(most)
        unwell = self._unwell.ids(most) if self._may_match() else []
        if unwell is None or opened is None:
            return None

        statuses = self._unwell.statuses([*unwell, *opened.difference(unwell)])
        self._fitting = self._chosen(statuses, opened)
        return sorted(self._fitting)

    def matching(self, targets: Sequence[SelectedTarget]) -> list[SelectedTarget]:
        """Return the ones of these targets that match."""
        fitting = self._fitting
        if fitting is None:
            fitting = self._fitting_among([target.id for target in targets if target.enabled])
        accepts_disabled = TargetState.DISABLED in self._wanted.states and not self._wanted.codes
        return [
            target
            for target in targets
            if (target.id in fitting if target.enabled else accepts_disabled)
        ]

    def _fitting_among(self, ids: Sequence[int]) -> set[int]:
        """The ones of these enabled targets that match."""
        statuses = self._unwell.statuses(ids)
        opened: set[int] = set()
        if TargetState.OPEN in self._wanted.states:
            opened = self._breakers.openings_of(ids, self._now_ms)
        return self._chosen({target_id: statuses.get(target_id, "") for target_id in ids}, opened)

    def _chosen(self, statuses: Mapping[int, str], opened: Set[int]) -> set[int]:
        """The enabled targets that match, by their stored statuses. Each pair of a mark and a code
        is judged once: they are few, and targets are many.
        """
        judged: dict[tuple[str, str, bool], bool] = {}
        chosen = set()
        for target_id, text in statuses.items():
            mark, code = target_condition.mark_and_code(text)
            is_opened = target_id in opened
            key = (mark, code, is_opened)
            fits = judged.get(key)
            if fits is None:
                condition = target_condition.of_mark(mark, code)
                fits = judged[key] = self._fits(condition, is_opened=is_opened)
            if fits:
                chosen.add(target_id)
        return chosen

    def _may_match(self) -> bool:
        """Whether there is any target with one of the states, by the counts of the board."""
        if self._wanted.codes:
            return True
        return any(
            number and self._fits(condition, is_opened=False)
            for condition, number in self._unwell.counts().items()
        )

    def _opened_ids(self, most: int) -> set[int] | None:
        """The targets that an operator keeps open, if the filter asks for open ones."""
        if TargetState.OPEN not in self._wanted.states:
            return set()
        if self._breakers.count_openings() > most:
            return None
        return set(self._breakers.openings(self._now_ms))

    def _fits(self, condition: Condition, *, is_opened: bool) -> bool:
        return target_condition.fits(self._wanted, condition, is_enabled=True, is_opened=is_opened)
