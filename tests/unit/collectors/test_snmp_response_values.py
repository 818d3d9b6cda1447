"""Values of responses with known names, by the module as it is installed and as plain Python."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.collectors.snmp.wire import codec, response_values
from tests.unit.collectors.snmp_agent import element, integer, octets, oid, response

COMMUNITY = b"public"
HEAD = codec.integer(1) + codec.element(codec.OCTETS, COMMUNITY)
ID = 0x41020304
COLUMN = "1.3.6.1.2.1.2.2.1.10"
NAMES = [f"{COLUMN}.{index}" for index in (1, 2, 300)]
END = ("1.3.6.1.2.1.2.2.1.11.1", integer(5))


def plain() -> ModuleType:
    """Load the source of the module, whether or not it is compiled."""
    source = Path(response_values.__file__).parent / "response_values.py"
    spec = importlib.util.spec_from_file_location("plain_response_values", source)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


PLAIN = plain()
both = pytest.mark.parametrize("reader", [response_values, PLAIN], ids=["installed", "plain"])


def message(rows: Sequence[tuple[str, bytes]], status: int = 0) -> bytes:
    named = [(oid(name), value) for name, value in rows]
    return response(COMMUNITY, ID.to_bytes(4, "big"), named, status)


def read(
    reader: ModuleType, data: bytes, names: Sequence[str] = NAMES, root: str = ""
) -> list[object] | None:
    elements = b"".join(codec.oid_element(name) for name in names)
    subtree = codec.oid_element(root)[2:] if root else b""
    values: list[object] | None = reader.read_values(
        bytearray(data), len(data), HEAD, elements, len(names), subtree
    )
    return values


def rows(*values: bytes) -> list[tuple[str, bytes]]:
    return list(zip(NAMES, values, strict=True))


@both
def test_values_of_known_names_are_read(reader: ModuleType) -> None:
    """Counters up to 64 bits, negative numbers and octets are those that were sent."""
    data = message(rows(integer(2**64 - 1, 0x46), integer(-129), octets(b"eth0")))
    assert read(reader, data) == [2**64 - 1, -129, b"eth0"]
    assert reader.request_id(bytearray(data), len(data), HEAD) == ID


@both
@given(
    st.sampled_from([0x02, 0x41, 0x42, 0x43, 0x46]), st.integers(min_value=0, max_value=2**63 - 1)
)
def test_numbers_of_every_type_are_those_that_were_sent(
    reader: ModuleType, tag: int, number: int
) -> None:
    data = message([(NAMES[0], integer(number, tag))])
    assert read(reader, data, NAMES[:1]) == [number]


@both
@pytest.mark.parametrize(
    "value",
    [
        element(0x81, b""),  # noSuchInstance
        element(0x05, b""),
        element(0x06, b"\x2b\x06"),
        element(0x41, b""),
        element(0x41, b"\xff\xff\xff\xff"),  # no leading zero
        element(0x02, bytes(9)),
    ],
)
def test_a_value_of_another_kind_is_left_to_the_usual_way(reader: ModuleType, value: bytes) -> None:
    assert read(reader, message(rows(integer(1), value, integer(3)))) is None


@both
def test_other_names_are_not_accepted(reader: ModuleType) -> None:
    """A row that is missing, new or another one; an error status; another community."""
    good = rows(integer(1), integer(2), integer(3))
    assert read(reader, message(good[:2])) is None
    assert read(reader, message([*good, END])) is None
    assert read(reader, message([good[0], END, good[2]])) is None
    assert read(reader, message(good, status=5)) is None
    foreign = message(good).replace(COMMUNITY, b"secret")
    assert read(reader, foreign) is None
    assert reader.request_id(bytearray(foreign), len(foreign), HEAD) == -1


@both
def test_the_end_of_a_subtree_must_show(reader: ModuleType) -> None:
    """A further row in the subtree is a new one, and no further row shows nothing."""
    good = rows(integer(1), integer(2), integer(3))
    values = [1, 2, 3]
    assert read(reader, message([*good, END]), root=COLUMN) == values
    end_of_view = (NAMES[2], element(0x82, b""))
    assert read(reader, message([*good, end_of_view]), root=COLUMN) == values
    assert read(reader, message(good), root=COLUMN) is None
    assert read(reader, message([*good, (f"{COLUMN}.301", integer(1))]), root=COLUMN) is None


@given(st.data())
def test_damaged_datagrams_are_read_alike_and_never_raise(data: st.DataObject) -> None:
    """The compiled module and its source agree on any octets: no index leaves the datagram."""
    good = message([*rows(integer(1), integer(2**40, 0x46), octets(b"x" * 130)), END])
    at = data.draw(st.integers(0, len(good) - 1))
    octet = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(good)))
    damaged = (good[:at] + bytes((octet,)) + good[at + 1 :])[: cut or len(good)]
    root = data.draw(st.sampled_from(["", COLUMN]))
    assert read(response_values, damaged, root=root) == read(PLAIN, damaged, root=root)
    ids = [
        each.request_id(bytearray(damaged), len(damaged), HEAD) for each in (response_values, PLAIN)
    ]
    assert ids[0] == ids[1]
