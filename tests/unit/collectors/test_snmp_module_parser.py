"""Module files of both formats are parsed as snmp_exporter parses them; mistakes are refused."""

from __future__ import annotations

import dataclasses
import time

import pytest

from poller import errors
from poller.collectors.credentials import Community, SnmpV3
from poller.collectors.snmp.modules import module_parser
from poller.collectors.snmp.modules.module_model import Module, WalkParams


def module(metric: str, more: str = "") -> str:
    return f"modules:\n  mine:\n    walk: [1.3.6]\n{more}    metrics:\n      - {metric}\n"


def only(text: str) -> Module:
    (found,) = module_parser.parse(text, "my.yml").values()
    return found


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("modules: [", "my.yml is not valid YAML"),
        ("a: *b", "my.yml, line 1: an alias (*) that stands for nothing before it"),
        ("a: {}\nb: {}\na: {}", "my.yml, line 3: the same key twice"),
        ("a: {b: !!python/name:os.system x}", "my.yml, line 1: a tag"),
        ("? [1]\n: 2", "my.yml, line 1: a key that is no plain text"),
        ("<<: 1", "my.yml, line 1: << takes a mapping"),
        ("[" * 100 + "]" * 100, "more than 32 levels"),
        ("[]", "my.yml: must be a mapping"),
        ("auths: []\nmodules: {}", "my.yml: auths: must be a mapping"),
        ("modules: {}\nmodule: {}", 'my.yml: unknown key "module"'),
        ("modules: {a: {wlak: []}}", 'my.yml: module a: unknown key "wlak"'),
        ("modules: {a: {version: 2}}", 'my.yml: module a: unknown key "version"'),
        ("modules: {a: }", "my.yml: module a: must be a mapping"),
        ("modules: {a: {walk: [ifTable]}}", 'module a: walk: "ifTable" is not a numeric OID'),
        ("modules: {a: {walk: 1.3}}", "module a: walk: must be a list"),
        ("modules: {a: {timeout: 5}}", 'module a: timeout: "5" is not a duration'),
        ("modules: {a: {timeout: soon}}", 'module a: timeout: "soon" is not a duration'),
        ("modules: {a: {retries: -1}}", "module a: retries: must be a whole number"),
        (
            "modules: {a: {max_repetitions: many}}",
            "module a: max_repetitions: must be a whole number",
        ),
        ("modules: {a: {allow_nonincreasing_oids: 2}}", "module a: allow_nonincreasing_oids: "),
        ("modules: {a: {filters: [{oid: x}]}}", "module a: filter: oid"),
        ("modules: {a: {filters: [{oid: 1.3, values: ['(']}]}}", "module a: filter: values: "),
        (
            "modules: {a: {filters: [{oid: 1.3, targets: 1.4}]}}",
            "module a: filter: targets: must be a list",
        ),
        ("a: {metrics: [], version: 4}", "module a: version: must be a whole number from 1 to 3"),
        (module("x"), "module mine: metric ?: must be a mapping"),
        (module("{name: m, oid: 1.3.6, type: gauge, hlep: x}"), 'metric m: unknown key "hlep"'),
        (module("{name: 'a b', oid: 1.3.6, type: gauge}"), 'name: "a b" is not a valid name'),
        (module("{name: [m], oid: 1.3.6}"), "metric ?: name: must be a text"),
        (module("{name: m, type: gauge}"), "metric m: oid"),
        (module("{name: m, oid: 1.3.6, scale: x}"), 'scale: "x" is not a number'),
        (module("{name: m, oid: 1.3.6, scale: .inf}"), "scale: must be finite"),
        (module("{name: m, oid: 1.3.6, enum_values: {up: 1}}"), "enum_values: must map"),
        (module("{name: m, oid: 1.3.6, enum_values: [1]}"), "enum_values: must map"),
        (
            module("{name: m, oid: 1.3.6, datetime_pattern: '%Q'}"),
            'metric m: datetime_pattern: "%Q" stands for',
        ),
        (
            module("{name: m, oid: 1.3.6, indexes: [{labelname: a, type: Bits}]}"),
            'index: type: "Bits" is not',
        ),
        (
            module("{name: m, oid: 1.3.6, indexes: [{labelname: 1, type: gauge}]}"),
            "index: labelname",
        ),
        (
            module("{name: m, oid: 1.3.6, indexes: [{labelname: a, type: gauge, fixed_size: -1}]}"),
            "fixed_size",
        ),
        (module("{name: m, oid: 1.3.6, lookups: [{labels: [a], labelname: b}]}"), "lookup: oid"),
        (
            module("{name: m, oid: 1.3.6, regex_extracts: {'-': []}}"),
            'regex_extracts: "-" cannot end',
        ),
        (
            module("{name: m, oid: 1.3.6, regex_extracts: {A: 1}}"),
            "regex_extracts: A must have a list",
        ),
        (
            module("{name: m, oid: 1.3.6, regex_extracts: {A: [{regex: '(?=a)'}]}}"),
            "not a regular expression of RE2",
        ),
    ],
)
def test_mistakes_are_refused(text: str, message: str) -> None:
    """The error names file, module, metric and field."""
    with pytest.raises(errors.ConfigError) as raised:
        module_parser.parse(text, "my.yml")
    assert message in str(raised.value)


def test_both_formats_give_the_same_module() -> None:
    """Only the protocol version differs, which the flat format has in its modules."""
    body = "{walk: [1.3.6.1], metrics: [{name: m, oid: .1.3.6.1.2, type: gauge, help: h}]}"
    flat, newer = (
        module_parser.parse(f"if_mib: {body}", "a"),
        module_parser.parse(f"modules: {{if_mib: {body}}}", "b"),
    )
    assert (flat["if_mib"].version, newer["if_mib"].version) == (2, 0)
    assert dataclasses.replace(flat["if_mib"], version=0) == newer["if_mib"]


def test_texts_stay_as_they_are_written() -> None:
    """`on` is a name, 1.10 an OID and 010 a text, as in Go; PyYAML differs."""
    found = only(
        module(
            "{name: on, oid: 1.10, type: gauge, help: 1e3,"
            " enum_values: {1: on, 0x2: no, 3: 010, 4: ~}}"
        )
    )
    metric = found.metrics[0]
    assert (metric.name, metric.oid, metric.help) == ("on", "1.10", "1e3")
    assert metric.enum_values == {1: "on", 2: "no", 3: "010", 4: ""}


def test_unknown_types_of_metrics_and_lookups_are_texts() -> None:
    """snmp_exporter accepts any type, so its files are not refused here either."""
    text = (
        "{name: m, oid: 1.3.6, type: Foo,"
        " lookups: [{labels: [a], labelname: b, oid: 1.4, type: Bar}]}"
    )
    assert only(module(text)).metrics[0].type == "Foo"


def test_an_extract_without_an_expression_gives_nothing() -> None:
    """snmp_exporter accepts such a file, too."""
    found = only(module("{name: m, oid: 1.3.6, regex_extracts: {A: [{value: 1}, {regex: }], B: }}"))
    assert found.metrics[0].extracts == {"A": (), "B": ()}


def test_walk_parameters() -> None:
    """Missing parameters are None and leave the choice to the target."""
    more = (
        "    max_repetitions: 4\n    retries: 0\n    timeout: 1m2s500ms\n"
        "    allow_nonincreasing_oids: yes\n    use_unconnected_udp_socket: true\n"
    )
    params = only(module("{name: m, oid: 1.3.6}", more)).walk_params
    assert params == WalkParams(4, 0, 62.5, allow_nonincreasing_oids=True)
    assert (
        only(module("{name: m, oid: 1.3.6}", "    max_repetitions: 0\n")).walk_params
        == WalkParams()
    )


def test_anchors_and_merges() -> None:
    """A merged mapping gives the fields that the module does not have itself."""
    text = (
        "base: &base {walk: [1.3.6], metrics: [{name: m, oid: 1.3.6}]}\n"
        "more: {<<: *base, walk: [1.4], get: [1.5.0]}"
    )
    found = module_parser.parse(text, "my.yml")["more"]
    assert (found.walk, found.get, [metric.name for metric in found.metrics]) == (
        ("1.4",),
        ("1.5.0",),
        ["m"],
    )


@pytest.mark.parametrize(
    "text",
    [
        "a: &a [x, x, x, x, x, x, x, x, x, x]\n"
        + "".join(
            f"{chr(98 + i)}: &{chr(98 + i)} [{', '.join(['*' + chr(97 + i)] * 10)}]\n"
            for i in range(9)
        ),
        "a: " + "[" * 200_000,
        "a: " + "{a: " * 200_000,
        "- " * 100_000,
    ],
    ids=["aliases", "lists", "mappings", "blocks"],
)
def test_an_alias_bomb_and_endless_depth_are_refused_at_once(text: str) -> None:
    """Ten billion values by aliases, or endless depth, take neither memory nor time."""
    started = time.process_time()
    with pytest.raises(errors.ConfigError):
        module_parser.parse(text, "my.yml")
    assert time.process_time() - started < 1


def test_logins() -> None:
    """Entries of `auths` have the defaults of snmp_exporter."""
    file = module_parser.read(
        "auths:\n  plain: {}\n  old: {version: 1, community: c1}\n"
        "  none: {version: 3, username: u, password: ignored1}\n"
        "  auth: {version: 3, username: u, security_level: authNoPriv, password: p1,"
        " context_name: vlan-7}\n"
        "  full: {version: 3, username: u, security_level: authPriv, password: p1,"
        " auth_protocol: SHA256, priv_protocol: AES256C, priv_password: p2}\n",
        "my.yml",
    )
    assert set(file.auth_names()) == {"plain", "old", "none", "auth", "full"}
    plain, old = file.auth("plain"), file.auth("old")
    assert (plain.version, plain.credential) == (2, Community.from_fields({"community": "public"}))
    assert (old.version, old.credential) == (1, Community.from_fields({"community": "c1"}))
    assert file.auth("none").credential == SnmpV3(username="u")
    assert file.auth("auth").credential == SnmpV3.from_fields(
        {"username": "u", "auth_protocol": "MD5", "auth_password": "p1"}
    )
    assert file.auth("auth").context == "vlan-7"
    assert file.auth("full").credential == SnmpV3.from_fields(
        {
            "username": "u",
            "auth_protocol": "SHA256",
            "auth_password": "p1",
            "priv_protocol": "AES256C",
            "priv_password": "p2",
        }
    )


def test_in_the_flat_format_each_module_has_its_own_login() -> None:
    """A module of the flat format has `version` and `auth` beside `walk`."""
    file = module_parser.read(
        "a: {walk: [1.3], version: 1, auth: {community: c1}}\nb: {walk: [1.3]}", "my.yml"
    )
    assert (file.auth("a").version, file.auth("b").version) == (1, 2)
    assert file.auth("a").credential == Community.from_fields({"community": "c1"})
    assert file.module("a").walk == ("1.3",)


@pytest.mark.parametrize(
    ("login", "message"),
    [
        ("{comunity: hidden-word}", "auth a: unknown key"),
        ("{hidden-word}", "auth a: unknown key"),
        ("hidden-word", "auth a: must be a mapping"),
        ("{community: [hidden-word]}", "auth a: community: must be a text"),
        ("{version: hidden-word}", "auth a: version: must be a whole number from 1 to 3"),
        ("{version: 3}", "auth a: username is missing"),
        (
            "{version: 3, username: u, security_level: hidden-word}",
            "auth a: security_level: is none that exists",
        ),
        ("{version: 3, username: u, security_level: authNoPriv}", "auth a: password is missing"),
        (
            "{version: 3, username: u, security_level: authPriv, password: hidden-word}",
            "auth a: priv_password is missing",
        ),
        (
            "{version: 3, username: u, security_level: authNoPriv, password: p,"
            " auth_protocol: hidden-word}",
            "auth a: auth_protocol: is none that exists",
        ),
        ("{community: *hidden-word}", "line 1: an alias"),
        ('{community: "hidden-word}', "not valid YAML"),
    ],
)
def test_mistakes_in_logins_are_refused_without_repeating_a_secret(
    login: str, message: str
) -> None:
    """Any text of a login may be a password, so no error repeats it."""
    with pytest.raises(errors.ConfigError) as raised:
        module_parser.read(f"auths: {{a: {login}}}", "my.yml").auth("a")
    error = raised.value
    assert message in str(error)
    assert "hidden-word" not in f"{error} {error.hint} {error!r}"


def test_a_login_does_not_show_its_secrets() -> None:
    """Neither `repr` nor `str` of a login holds a secret."""
    login = module_parser.read("auths: {a: {community: hidden-word}}", "my.yml").auth("a")
    assert "hidden-word" not in f"{login} {login!r}"
