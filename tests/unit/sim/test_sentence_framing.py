"""The framing of the RouterOS API."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from poller.sim.routeros import sentence_framing

words = st.lists(st.binary(min_size=1, max_size=300), min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("length", "encoded"),
    [
        (0, "00"),
        (127, "7f"),
        (128, "8080"),
        (130, "8082"),
        (0x3FFF, "bfff"),
        (0x4000, "c04000"),
        (2_097_140, "dffff4"),
        (0x200000, "e0200000"),
        (268_435_440, "effffff0"),
        (0x10000000, "f010000000"),
    ],
)
def test_lengths_of_all_forms(length: int, encoded: str) -> None:
    """Lengths take one to five octets, as in the documentation of the vendor."""
    assert sentence_framing.length(length).hex() == encoded


@given(st.lists(words, max_size=4), st.integers(1, 50))
def test_sentences_are_decoded_from_any_pieces(spoken: list[list[bytes]], size: int) -> None:
    """Sentences are decoded correctly for any division of the stream."""
    stream = b"".join(map(sentence_framing.encode, spoken))
    decoder, heard = sentence_framing.Decoder(), []
    for at in range(0, len(stream), size):
        heard += decoder.feed(stream[at : at + size])
    assert heard == spoken


def test_words_with_a_long_length_are_read() -> None:
    """A word of 20,000 octets, whose length takes three, is read."""
    assert sentence_framing.Decoder().feed(sentence_framing.encode([b"x" * 20_000])) == [
        [b"x" * 20_000]
    ]


def test_empty_sentences_are_skipped() -> None:
    """Zero-length words without a sentence before them are skipped."""
    assert sentence_framing.Decoder().feed(
        b"\0\0\0" + sentence_framing.encode([b"/quit"]) + b"\0"
    ) == [[b"/quit"]]


@pytest.mark.parametrize(
    "stream", [b"\xf0\xff\xff\xff\xff", b"\xe0\x20\x00\x00", b"\xf8", b"\xff\x00"]
)
def test_oversized_lengths_are_refused_at_once(stream: bytes) -> None:
    """A length of gigabytes and reserved octets are refused at once."""
    with pytest.raises(sentence_framing.Malformed):
        sentence_framing.Decoder().feed(stream)


def test_an_endless_sentence_is_refused() -> None:
    """A sentence without an end is refused at the maximum size."""
    decoder = sentence_framing.Decoder()
    word = sentence_framing.length(60_000) + bytes(60_000)
    for _ in range(4):
        assert decoder.feed(word) == []
    with pytest.raises(sentence_framing.Malformed):
        decoder.feed(word)


@given(st.binary(max_size=200))
def test_random_bytes_raise_only_malformed(data: bytes) -> None:
    """For any bytes the decoder raises only Malformed."""
    with contextlib.suppress(sentence_framing.Malformed):
        sentence_framing.Decoder().feed(data)
