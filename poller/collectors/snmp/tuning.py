"""How many rows to ask for in one answer? Learned per device: shrink on trouble, grow back slowly."""

from __future__ import annotations

from dataclasses import dataclass, field

_FORGIVE_AFTER_POLLS = 100


@dataclass(slots=True)
class Tuning:
    """`limit` is the operator's; the rest is learned and forgotten with the target's memory."""

    limit: int
    repetitions: int = 0
    ceiling: int = 0
    troubled: bool = False
    _clean_polls: int = 0
    #: Rows of each subtree in its last walk: the next one asks for just as many.
    sizes: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.repetitions = self.repetitions or self.limit
        self.ceiling = self.ceiling or self.limit

    def want(self, root: str, have: int) -> int:
        """Rows to ask for next: what last time's count leaves and one that shows the end, or all we may."""
        missing = self.sizes.get(root, 0) - have
        return min(missing + 1, self.repetitions) if missing >= 0 and root in self.sizes else self.repetitions

    def too_many(self, asked: int) -> None:
        """An answer of that many rows did not arrive whole."""
        self.ceiling = max(1, min(self.ceiling, asked - 1))
        self.repetitions = max(1, asked // 2)
        self.troubled = True

    def end_poll(self) -> None:
        """After each poll: grow towards the ceiling, and after many clean ones dare the limit again."""
        if self.troubled:
            self.troubled = False
            self._clean_polls = 0
            return
        if self.repetitions < self.limit:
            self._clean_polls += 1
            if self._clean_polls >= _FORGIVE_AFTER_POLLS:
                self._clean_polls, self.ceiling = 0, self.limit
            self.repetitions = min(self.ceiling, self.repetitions + max(1, self.repetitions // 4))
