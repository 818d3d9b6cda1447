"""The form that pauses a device or one of its targets: for how long, and why."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from poller import errors
from poller.domain.inventory import duration
from poller.service.operations.breaker_actions import Pause
from poller.web.pages.device.target_form import FormField

#: How long a pause may be, as the form suggests it.
LENGTHS = ("30m", "2h", "8h", "1d", "7d")
NAMES = ("target", "length", "reason")


@dataclass(frozen=True, slots=True)
class PauseForm:
    """The fields of a pause, and what was wrong with the last try."""

    fields: Sequence[FormField]
    command: str  # that does the same
    error: str = ""
    hint: str = ""


def build(
    device: str,
    targets: Sequence[str],
    texts: Mapping[str, str],
    error: errors.ConfigError | None = None,
) -> PauseForm:
    """Return the form with these texts, and the error beside its field."""
    wrong = getattr(error, "field", "")
    fields = [
        replace(each, text=texts.get(each.name, each.text), error=_beside(each, wrong, error))
        for each in _fields(targets)
    ]
    name = shlex.quote(device)
    return PauseForm(
        fields=fields,
        command=f"poller breaker open {name} --for {LENGTHS[0]} --reason '...'",
        error=error.message if error else "",
        hint=error.hint if error else "",
    )


def pause_of(texts: Mapping[str, str]) -> Pause:
    """Return the pause of a sent form. Raises InvalidInput, which names the field."""
    try:
        length_s = duration.parse_ms(texts["length"]) / 1000
    except errors.InvalidInput as error:
        message, hint = f"length: {error.message}", error.hint
        raise errors.InvalidInput(message, hint=hint, field="length") from None
    pause = Pause(length_s, texts["reason"])
    pause.check(needs_reason=True)
    return pause


def _fields(targets: Sequence[str]) -> list[FormField]:
    found = []
    if len(targets) > 1:
        every = f"all {len(targets)} targets"
        found.append(FormField("target", "What", "", choices=["", *targets], empty=every))
    found.append(
        FormField("length", "For how long", LENGTHS[0], "such as 2h; at most 30d",
                  is_required=True, suggestions=LENGTHS)
    )  # fmt: skip
    found.append(FormField("reason", "Why", "", "for those who look at it later", is_required=True))
    return found


def _beside(field: FormField, wrong: str, error: errors.ConfigError | None) -> str:
    return f"{error.message}." if error is not None and field.name == wrong else ""
