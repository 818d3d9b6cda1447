"""The options of an http target, and the combinations that are refused."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller import errors
from poller.collectors.http import json_paths, urls
from poller.collectors.http.options import HttpOptions
from poller.collectors.registry import load

JSON = st.recursive(
    st.none() | st.booleans() | st.floats() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
DOCUMENT = {
    "nodes": [{"cpu": 0.5, "up": True, "odd.key": "12.5", "name": "a", "none": None}],
    "list": [1, 2, 3],
}


@pytest.mark.parametrize(
    ("path", "number"),
    [
        ("nodes[0].cpu", 0.5),
        ("nodes[0].up", 1.0),
        ('nodes[0]["odd.key"]', 12.5),
        ("list[-1]", 3.0),
    ],
)
def test_numbers_are_found(path: str, number: float) -> None:
    assert json_paths.number(DOCUMENT, path) == number


@pytest.mark.parametrize(
    ("path", "why"),
    [
        ("nodes[7].cpu", "nodes[7].cpu is not in the answer"),
        ("nodes.cpu", "nodes.cpu is not in the answer"),
        ("list[0].x", "list[0].x is not in the answer"),
        ("nodes[0].name", "nodes[0].name is no number but a text"),
        ("nodes[0].none", "nodes[0].none is no number but null"),
        ("nodes", "nodes is no number but a list"),
    ],
)
def test_a_missing_value_is_named(path: str, why: str) -> None:
    with pytest.raises(json_paths.NotThere) as caught:
        json_paths.number(DOCUMENT, path)
    assert str(caught.value) == why


@given(JSON)
def test_any_document_gives_a_finite_number_or_says_why_not(document: Any) -> None:
    try:
        found = json_paths.number({"a": [document]}, "a[0]")
    except json_paths.NotThere:
        return
    assert abs(found) < float("inf")


@pytest.mark.parametrize("path", ["", ".a", "a..b", "a[", "a[x]", "a b", "a.[0]"])
def test_a_path_that_is_none_is_refused(path: str) -> None:
    with pytest.raises(ValueError, match="path"):
        json_paths.parse(path)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("http://a", "http://a/"),
        ("https://[::1]:8443/x?token=1", "https://[::1]:8443/x"),
        ("https://A.example:443/x", "https://a.example/x"),
        ("http://bücher.example/ä", "http://xn--bcher-kva.example/%C3%A4"),
    ],
)
def test_urls_are_printed_without_their_query(text: str, said: str) -> None:
    assert str(urls.parse(text)) == said


@given(st.text(max_size=30))
def test_any_redirection_leads_to_a_url_or_nowhere(location: str) -> None:
    try:
        found = urls.join(urls.parse("http://192.0.2.1/a"), location)
    except ValueError:
        return
    assert found.scheme in urls.PORTS
    assert found.target.startswith("/")
    assert found.target.isascii()
    assert not any(c.isspace() for c in found.target + found.host)


@pytest.mark.parametrize(
    ("words", "good"), [(("200-399",), True), (("404", "301"), True), (("200-299",), False)]
)
def test_statuses(words: tuple[str, ...], good: bool) -> None:
    assert options(expect=words).expects(301) is good


def options(**raw: Any) -> HttpOptions:
    found = load().options("http", raw)
    assert isinstance(found, HttpOptions)
    return found


def test_where_to_ask() -> None:
    """The URL is at the device's address, unless the option `url` is set."""
    assert str(options().target_url("192.0.2.1")) == "http://192.0.2.1/"
    assert (
        str(options(scheme="https", port=8443, path="/a").target_url("2001:db8::1"))
        == "https://[2001:db8::1]:8443/a"
    )
    assert (
        str(options(url="https://example.org/b").target_url("192.0.2.1")) == "https://example.org/b"
    )


def test_lists_may_be_typed() -> None:
    typed = options(expect="200, 401", values="load=a.b[0],free=c")
    assert (typed.expect, typed.values) == (("200", "401"), {"load": "a.b[0]", "free": "c"})
    assert options(expect=204).expect == ("204",)
    assert options(expect=[200, "300-310"]).expect == ("200", "300-310")


@pytest.mark.parametrize(
    ("raw", "complaint"),
    [
        ({"url": "ftp://a"}, 'option "url": a URL begins with http:// or https://'),
        ({"url": "http://"}, "the URL names no host"),
        ({"url": "http://a:99999/"}, 'option "url"'),
        ({"url": "http://a/", "port": 80}, "url says it all: leave out port"),
        ({"path": "x"}, 'option "path": a path begins with /'),
        ({"host": "a b"}, 'option "host": that is no name of a host'),
        ({"expect": "2xx"}, '"2xx" is no status code; write 200, or 200-299'),
        ({"expect": "300-200"}, "is empty"),
        ({"expect": ""}, "at least one status code"),
        ({"match": "("}, "it is no regular expression"),
        ({"values": "load"}, "write metric=path"),
        ({"values": {"a b": "x"}}, '"a b" is no name of a metric'),
        ({"values": {"http_up": "x"}}, "are this collector's own"),
        ({"values": {"a": "b..c"}}, '"b..c" is no path'),
        ({"insecure": True}, "insecure needs https"),
        ({"scheme": "https", "fingerprint": "AA:BB"}, "a SHA-256 fingerprint has 64"),
        ({"scheme": "https", "insecure": True, "ca_file": "/x"}, "contradict each other"),
        ({"method": "HEAD", "match": "x"}, "match and values need a body"),
        ({"header": "X-Token"}, "header needs auth=header"),
        ({"auth": "header", "header": "a b"}, "a name of a header"),
        ({"auth": "digest"}, 'option "auth"'),
    ],
)
def test_wrong_options_are_named(raw: dict[str, Any], complaint: str) -> None:
    with pytest.raises(errors.InvalidInput) as caught:
        options(**raw)
    assert complaint in str(caught.value)


def test_a_password_in_a_url_is_refused_and_not_repeated() -> None:
    with pytest.raises(errors.InvalidInput, match="no user and password in a URL") as caught:
        options(url="http://admin:hunter22@a/")
    assert "hunter22" not in repr(caught.value)


def test_a_ca_file_that_is_not_there_is_refused_when_a_target_is_saved() -> None:
    raw = {"scheme": "https", "ca_file": "/no/such/file.pem"}
    with pytest.raises(errors.InvalidInput, match=r"/no/such/file\.pem"):
        load().checked_options("http", raw)
    assert load().options("http", raw)  # a worker looks again with every poll
