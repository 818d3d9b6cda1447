"""Receivers come by entry points, ours and others', and wrong tables are named."""

from __future__ import annotations

import re
import sys
import types
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import pytest

from poller import errors
from poller.alerts.receivers import registry
from poller.alerts.receivers.api import Place
from poller.domain.alerts.telling.notice import Notice, NoticeKind

DOCS = Path(__file__).parents[3] / "docs"
HOOK = {"kind": "webhook", "url": "http://127.0.0.1:1/"}


@pytest.mark.parametrize(
    ("table", "text"),
    [
        ({"kind": "webhok"}, 'kind: there is no receiver of the kind "webhok"'),
        ({"kind": "webhook"}, "give url, or url_file"),
        ({**HOOK, "url_file": "/f"}, "give url, or url_file"),
        ({**HOOK, "urll": "x"}, "urll: there is no such option (did you mean url?)"),
        ({**HOOK, "url": "ftp://x"}, "http://"),
        ({**HOOK, "timeout_s": 0}, "timeout_s"),
        ({**HOOK, "give_up_after": "1s"}, "give_up_after: 1s is out of bounds"),
        ({**HOOK, "give_up_after": "soon"}, 'give_up_after: "soon" is not a duration'),
        ({"kind": "alertmanager", "url": "http://a", "peers": ["b"]}, "peers.0"),
        ({"kind": "email", "host": "h", "sender": "me", "to": ["a@b.c"]}, "sender: it is no addr"),
        ({"kind": "email", "host": "h", "sender": "a@b.c", "to": []}, "to:"),
        (
            {"kind": "email", "host": "h", "sender": "a@b.c", "to": ["a@b.c"], "username": "u"},
            "username and password_file belong together",
        ),
        (
            {
                "kind": "email",
                "host": "h",
                "sender": "a@b.c",
                "to": ["a@b.c"],
                "security": "plain",
                "username": "u",
                "password_file": "/f",
            },
            "plain would show it",
        ),
    ],
)
def test_a_wrong_table_is_refused(table: dict[str, Any], text: str) -> None:
    """The error names the table and the option, and says what to do."""
    with pytest.raises(errors.InvalidSetting) as raised:
        registry.check({"ops": table})
    assert raised.value.message.startswith("[receiver.ops] ")
    assert text in raised.value.message


def test_ours_are_installed() -> None:
    """The four built-in kinds come by the entry points that a plugin has, too."""
    found = registry.survey()
    assert set(found.plugins) >= {"alertmanager", "webhook", "email", "apprise"}
    assert found.broken == ()


@pytest.mark.parametrize(
    ("changes", "named"),
    [
        ({"send": None}, "it has no send"),
        ({"name": "other"}, 'it calls itself "other"'),
        ({"Options": None}, "no pydantic model"),
        ({"api_version": 99}, "99"),
    ],
)
def test_a_plugin_that_breaks_the_contract_is_named(changes: dict[str, Any], named: str) -> None:
    """The error of a table of its kind says what is wrong with the package."""
    module = example()
    kind = type("Other", (module.PagerReceiver,), changes)
    with pytest.raises(errors.ConfigError) as raised:
        registry.admit(kind, "pager")
    assert named in f"{raised.value.message} {raised.value.cause}"


def test_the_receiver_of_the_docs_works(monkeypatch: pytest.MonkeyPatch) -> None:
    """The example is made from a table, and its failures mean what the docs say."""
    module = example()
    monkeypatch.setitem(sys.modules, "acme_pager", module)
    point = EntryPoint("pager", "acme_pager:PagerReceiver", registry.GROUP)
    tables = {"ops": {"kind": "pager", "url": "http://127.0.0.1:1/", "give_up_after": "2h"}}
    made = registry.make("ops", tables, points=[point])
    assert (made.kind, made.give_up_ms) == ("pager", 7_200_000)
    with pytest.raises(errors.StoreUnavailable):
        made.receiver.send(Notice(key="k", kind=NoticeKind.TEST, route="ops"), "k:ops")
    registry.close(made)


def test_a_plugin_that_cannot_be_made_is_a_wrong_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also a SystemExit of a plugin becomes an error with the name of the table."""

    def leave(self: Any, place: Place, options: Any) -> None:
        raise SystemExit("no licence")

    module = example()
    module.PagerReceiver.__init__ = leave
    monkeypatch.setitem(sys.modules, "acme_pager", module)
    point = EntryPoint("pager", "acme_pager:PagerReceiver", registry.GROUP)
    tables = {"pager": {"url": "http://127.0.0.1:1/"}}
    with pytest.raises(errors.InvalidSetting, match="no licence"):
        registry.make("pager", tables, points=[point])


def example() -> Any:
    """The module of docs/plugins.md."""
    text = (DOCS / "plugins.md").read_text()
    found = re.search(r"# acme_pager/__init__\.py\n(.*?)```", text, re.DOTALL)
    assert found is not None
    module = types.ModuleType("acme_pager")
    exec(found[1], module.__dict__)
    return module
