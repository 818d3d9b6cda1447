"""A file of rules: read, checked as a whole, and made the rules of its owner.

`poller rules apply` and the leader (rule_file_watch.py) both come here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from sqlalchemy.engine import Engine

from poller import errors
from poller.collectors.snmp.modules import yaml_text
from poller.db.alerts.rules import owned_rules
from poller.db.alerts.rules.owned_rules import Replaced
from poller.db.alerts.rules.rule_statements import FILE
from poller.domain.access.actor import Actor
from poller.domain.alerts import rule_form
from poller.domain.alerts.rule import Rule

MOST_BYTES = 1_000_000
_MOST_VALUES = 50_000
#: Characters of the column of owners.
_LONGEST_OWNER = 300


@dataclass(frozen=True, slots=True)
class RuleFile:
    """The text of a file, and the rules in it."""

    path: str  # absolute, so that one file has one owner from wherever it is applied
    text: str
    rules: Sequence[Rule]

    @property
    def owner(self) -> str:
        return f"{FILE}{self.path}"


def read(path: str | Path) -> RuleFile:
    """Return a checked file. Raises InvalidInput with the path, the line and the field."""
    where = Path(path).absolute()
    text = _text(where)
    try:
        document = yaml_text.read(text, str(where), _MOST_VALUES)
    except yaml_text.BadYaml as error:
        raise errors.InvalidInput(
            f"{where}, line {error.line}: {error.reason}", hint="mend the line; nothing was changed"
        ) from None
    owner = f"{FILE}{where}"
    if len(owner) > _LONGEST_OWNER:
        fault = f"the path has {len(str(where))} characters"
        raise errors.InvalidInput(f"{where}: {fault}", hint="move the file to a shorter path")
    try:
        rules = rule_form.parse_all(document, owner)
    except errors.InvalidInput as error:
        line = line_of(text, error.field)
        place = f"{where}, line {line}" if line else str(where)
        message = f"{place}: {error.message}"
        raise errors.InvalidInput(message, error.cause, error.hint, field=error.field) from None
    return RuleFile(str(where), text, rules)


def apply(engine: Engine, file: RuleFile, actor: Actor) -> Replaced:
    """Make the rules of a file all the rules of its owner. Raises InvalidInput, StoreError."""
    try:
        return owned_rules.replace_owned(engine, file.owner, file.rules, actor)
    except errors.InvalidInput as error:
        message = f"{file.path}: {error.message}"
        raise errors.InvalidInput(message, error.cause, error.hint, field=error.field) from None


def line_of(text: str, field: str) -> int:
    """Return the line of a field such as `rules.2.when.above`, or of what holds it; 0: unknown."""
    node: Any = yaml.compose(text, Loader=yaml.SafeLoader)
    line = 0
    parts = field.split(".") if field else []
    if isinstance(node, yaml.SequenceNode):
        parts = parts[1:]  # the file is the list itself
    for part in parts:
        found = _child(node, part)
        if found is None:
            break
        line, node = found
    return line


def _child(node: Any, part: str) -> tuple[int, Any] | None:
    """Return the line and the node of a key of a mapping, or of a place in a list."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if key.value == part:
                return key.start_mark.line + 1, value
    if isinstance(node, yaml.SequenceNode) and part.isdigit() and int(part) < len(node.value):
        item = node.value[int(part)]
        return item.start_mark.line + 1, item
    return None


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            fault = f"it has more than {MOST_BYTES:,} bytes"
            raise errors.InvalidInput(f"{path}: {fault}", hint="split the file")
        return data.decode()
    except OSError as error:
        reason = error.strerror or str(error)
        message = f"{path} cannot be read"
        raise errors.InvalidInput(message, reason, "name a file of rules") from None
    except UnicodeDecodeError:
        raise errors.InvalidInput(f"{path} is not UTF-8 text", hint="save it as UTF-8") from None
