"""Bytes become the same sentences however they are cut, within limits."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.collectors.routeros import sentence_parser
from poller.collectors.routeros.sentence_parser import MalformedSentence, SentenceParser
from poller.sim.routeros import sentence_framing as simulated

words = st.text(st.characters(codec="utf-8"), min_size=1, max_size=300)
spoken = st.lists(st.lists(words, min_size=1, max_size=5), max_size=4)


@given(spoken, st.integers(1, 50))
def test_sentences_survive_any_cut(said: list[list[str]], size: int) -> None:
    stream = b"\0".join(simulated.encode(word.encode() for word in sentence) for sentence in said)
    parser, heard = SentenceParser(), []
    for at in range(0, len(stream), size):
        heard += parser.feed(stream[at : at + size])
    assert heard == said
    assert parser.at_boundary


@pytest.mark.parametrize("size", [0, 1, 0x7F, 0x80, 0x3FFF, 0x4000, 0x1FFFFF, 0x200000])
def test_lengths_of_all_forms(size: int) -> None:
    """A length prefix has one to four octets, as the vendor describes."""
    parser, word = SentenceParser(), b"x" * size
    assert parser.feed(simulated.encode([b"!re", word])) == (
        [["!re", word.decode()]] if size else [["!re"]]
    )


@given(st.binary(max_size=400), st.integers(1, 40))
def test_any_bytes_are_sentences_or_refused(data: bytes, size: int) -> None:
    parser = SentenceParser()
    with contextlib.suppress(MalformedSentence):
        for at in range(0, len(data), size):
            for sentence in parser.feed(data[at : at + size]):
                assert all(sentence)


@pytest.mark.parametrize(
    ("sent", "text"),
    [
        ("zażółć".encode(), "zażółć"),
        (b"caf\xe9", "café"),
        (b"\xff\xfe", "ÿþ"),
        ("网络 😀".encode(), "网络 😀"),
        (b"007", "007"),
    ],
)
def test_texts_are_utf_8_or_latin_1(sent: bytes, text: str) -> None:
    """Comments may come from any tool; no text becomes a number."""
    assert SentenceParser().feed(simulated.encode([b"=comment=" + sent])) == [[f"=comment={text}"]]


@pytest.mark.parametrize("first", [0xF0, 0xF1, 0xF8, 0xFF])
def test_control_octets_are_refused(first: int) -> None:
    with pytest.raises(MalformedSentence):
        SentenceParser().feed(bytes((first, 0, 0, 0, 5)))


def test_a_word_longer_than_any_answer_is_refused_at_its_length() -> None:
    with pytest.raises(MalformedSentence, match="longer than"):
        SentenceParser().feed(b"\xef\xff\xff\xff")


@pytest.mark.parametrize("piece", [b"\x03!re\x04=a=b\0", b"\x04=a=b", b"\0"])
def test_rows_words_and_ends_without_an_end_are_refused(piece: bytes) -> None:
    parser, chunk = SentenceParser(), piece * 20_000

    def endless() -> None:
        for _ in range(200):
            parser.feed(chunk)

    with pytest.raises(MalformedSentence, match="more than"):
        endless()


def test_limits_count_from_the_beginning_of_each_poll(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sentence_parser, "MAX_BYTES", 100)
    parser = SentenceParser()
    for _ in range(10):
        parser.begin_poll()
        assert parser.feed(simulated.encode([b"x" * 60]))
    with pytest.raises(MalformedSentence):
        parser.feed(simulated.encode([b"x" * 60]))
