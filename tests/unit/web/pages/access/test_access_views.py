"""Users, tokens and the audit log as texts: names in commands, errors beside fields, no secret."""

from __future__ import annotations

from datetime import UTC, datetime

from poller import errors
from poller.db.access.audit_rows import AuditRow
from poller.db.access.token_rows import StoredToken
from poller.db.access.user_rows import StoredUser
from poller.domain.access.scopes import Role, Scope
from poller.presentation.history import spreadsheet_cells
from poller.service.access.api_tokens import MadeToken
from poller.web.pages.access import audit_page, scope_texts, tokens_page, users_page
from poller.web.pages.access.audit_query import AuditFilter
from poller.web.pages.access.input_fields import Refusal
from poller.web.pages.access.users_page import ListedUsers

AT = datetime(2026, 11, 16, tzinfo=UTC)
NOW_MS = 1_795_000_000_000
VALUE = "poller_" + "x" * 43


def user(name: str = "kim", enabled: bool = True) -> StoredUser:
    return StoredUser(1, name, Role.ADMIN, enabled, None, AT, AT)


def token(expires_ms: int | None = None) -> StoredToken:
    scopes = (Scope.READ, Scope.OPERATE)
    return StoredToken(1, "a'b", scopes, "fra", "kim", expires_ms, None, AT, AT)


def row(**fields: object) -> AuditRow:
    given = {"before": {}, "after": {}, "count": 1, "subject": "sw1", "action": "device.edit"}
    base = {"id": 7, "at_ms": NOW_MS, "actor": "kim", "kind": "cli", "address": "host-1"}
    return AuditRow(**{**base, **given, **fields})  # type: ignore[arg-type]


def test_a_name_in_a_command_is_one_word_of_a_shell() -> None:
    """Names may have quotes and dollars."""
    view = users_page.build_one(user("a$b'c"), [], "", NOW_MS)
    assert view.password_command == """poller user edit 'a$b'"'"'c' --password"""
    assert view.remove_command == """poller user rm 'a$b'"'"'c'"""
    made = tokens_page.build_view([], [], NOW_MS, made=MadeToken(token(), VALUE), life="90d").made
    assert made is not None
    assert made.command == (
        """poller token add 'a'"'"'b' --scope read --scope operate --site fra --expires 90d"""
    )


def test_a_disabled_user_is_offered_to_be_enabled() -> None:
    """The switch is the opposite of the present state."""
    assert users_page.build_one(user(enabled=False), [], "", NOW_MS).switch == "enable"
    view = users_page.build_one(user(), [], "kim", NOW_MS)
    assert (view.switch, view.line.is_own) == ("disable", True)


def test_an_error_stands_beside_its_field() -> None:
    """Errors without a field are known by their beginning; a password is not kept."""
    listed = ListedUsers([], False, "", [])
    taken = errors.AlreadyExists('there is a user named "kim" already')
    refusal = Refusal("add", taken, users_page.texts("viewer", "kim"))
    form = users_page.build_list(listed, "", NOW_MS, refusal=refusal).form
    assert [(each.name, each.error != "") for each in form.fields] == [
        ("name", True),
        ("role", False),
        ("password", False),
        ("again", False),
    ]
    assert (form.fields[0].text, form.fields[2].text) == ("kim", "")


def test_the_first_user_is_an_admin() -> None:
    """Other roles are not offered while nobody is asked for a login."""
    listed = ListedUsers([], False, "", [], first_user_notes=["a login is asked"])
    view = users_page.build_list(listed, "", NOW_MS)
    assert list(view.form.fields[1].choices) == ["admin"]
    assert view.command == "poller user add NAME --role admin"


def test_a_token_that_has_ended_says_so() -> None:
    """One without an end never does."""
    lines = tokens_page.build_view([token(NOW_MS), token()], [], NOW_MS).lines
    assert [(line.state, bool(line.end)) for line in lines] == [("ended", True), ("valid", False)]


def test_the_value_of_a_token_is_in_no_representation() -> None:
    """A traceback or a log line with a view has no secret."""
    view = tokens_page.build_view([], [], NOW_MS, made=MadeToken(token(), VALUE))
    assert VALUE not in repr(view)


def test_every_scope_has_its_words() -> None:
    """A scope that is added needs a meaning; a role has exactly its scopes."""
    assert set(scope_texts.MEANINGS) == set(Scope)
    assert scope_texts.role_of(frozenset(Scope)) == "admin"
    assert scope_texts.role_of({Scope.OPERATE}) == ""


def test_a_row_is_a_line_with_few_changes_and_bounded_values() -> None:
    """The file has the whole value."""
    names = ["device-with-a-long-name"] * 200
    after = {"site": "fra", "tags": [], "names": names}
    line = audit_page.line(row(after=after, count=200), AuditFilter())
    assert line.summary == "site: fra, …"
    assert line.changes[2].after.endswith("… (4,998 characters)")
    assert len(line.changes[2].after) < audit_page.LONGEST_VALUE + 30
    assert audit_page.cells(row(after=after))[-1].count("device-with") == 200


def test_a_link_of_a_row_keeps_the_rest_of_the_filter() -> None:
    """A narrower filter begins on its first page."""
    query = AuditFilter(since="1d", before="Wzdd")
    line = audit_page.line(row(), query)
    assert line.subject_path == "audit?subject=sw1&since=1d"
    assert query.command == "poller audit --since 1d"


def test_no_cell_of_the_file_is_a_formula() -> None:
    """A subject may be the text of a device."""
    line = spreadsheet_cells.line(audit_page.cells(row(subject='=HYPERLINK("x")')))
    assert "'=HYPERLINK" in line
