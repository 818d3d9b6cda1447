"""docs/access.md says what each role may do, as the program has it."""

from __future__ import annotations

import re
from pathlib import Path

from poller.domain.access import scopes
from poller.domain.access.login_limits import OF_ADDRESS, OF_USER
from poller.domain.access.scopes import Role, Scope
from poller.settings import Settings

PAGE = (Path(__file__).parents[2] / "docs" / "access.md").read_text()


def test_the_table_of_roles_is_true() -> None:
    """One row for each scope, one column for each role."""
    expected = []
    for scope in Scope:
        cells = ["yes" if scope in scopes.of_role(role) else "no" for role in Role]
        expected.append(f"| `{scope.value}` | {' | '.join(cells)} |")
    found = re.findall(r"^(\| `\w+` (?:\| (?:yes|no) ){3}\|)", PAGE, re.MULTILINE)
    assert found == expected


def test_the_numbers_of_the_page_are_true() -> None:
    """Limits and defaults that the page names."""
    fields = Settings.model_fields
    assert (OF_USER.failures, OF_ADDRESS.failures, OF_USER.window_s, OF_ADDRESS.window_s) == (
        10,
        20,
        300,
        300,
    )
    assert fields["session_hours"].default == 7 * 24
    assert fields["session_idle_hours"].default == 12
    assert fields["audit_days"].default == 400


def test_every_setting_that_the_page_names_exists() -> None:
    """A renamed setting is renamed here, too."""
    named = set(re.findall(r"POLLER_([A-Z_]+)", PAGE))
    known = {name.upper() for name in Settings.model_fields}
    known |= {f"{name}_FILE" for name in known}
    assert named - known == set()
