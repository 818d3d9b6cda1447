"""Bytes of a router to sentences: each byte is looked at once, however they are cut. Knows no socket.

A word is its length and its bytes; an empty one ends the sentence. Texts are UTF-8, or Latin-1 where they are not.
"""

from __future__ import annotations

#: More than all menus of a router that anybody polls: a peer that says more in one poll is not answering us, and what
#: it said is in memory until the poll ends. A word takes a hundred bytes there.
MAX_BYTES = 64 * 1024 * 1024
MAX_WORDS = 2_000_000
_WIRE = "latin-1"  # one byte, one character

Sentence = list[str]


class Malformed(ValueError):
    """These bytes are no sentences, or there are too many of them."""


class Decoder:
    """Takes bytes as they come and gives back the sentences that are complete."""

    __slots__ = ("_bytes", "_need", "_rest", "_sentence", "_words")

    def __init__(self) -> None:
        self._sentence: Sentence = []  # the words there are of one that has not ended
        self._rest = bytearray()  # the beginning of a word
        self._need = 0  # how many bytes it has at least, its length included
        self._bytes = self._words = 0

    @property
    def between(self) -> bool:
        """Does the next byte begin a sentence?"""
        return not (self._rest or self._sentence)

    def begin(self) -> None:
        """The next poll: what its answers may take is counted from here."""
        self._bytes = self._words = 0

    def feed(self, data: bytes) -> list[Sentence]:
        """The sentences that these bytes complete, empty ones left out. Raises Malformed."""
        self._bytes += len(data)
        if self._bytes > MAX_BYTES:
            raise Malformed(f"it said more than {MAX_BYTES:,} bytes in one poll")
        if self._rest:
            self._rest += data
            if len(self._rest) < self._need:
                return []
            data, self._rest = bytes(self._rest), bytearray()
        done = self._take(data)
        if self._words + len(self._sentence) > MAX_WORDS:
            raise Malformed(f"it said more than {MAX_WORDS:,} words in one poll")
        return done

    def _take(self, data: bytes) -> list[Sentence]:
        text = data.decode(_WIRE)
        at, end, sentence = 0, len(data), self._sentence
        done: list[Sentence] = []
        while at < end:
            size, start = data[at], at + 1
            if size >= 0x80:
                size, start = _long(data, at)
            stop = start + size
            if stop > end:
                self._rest, self._need = bytearray(data[at:]), stop - at
                break
            if size:
                word = text[start:stop]
                sentence.append(word if word.isascii() else decode(word))
            else:
                self._words += len(sentence) + 1
                if sentence:
                    done.append(sentence)
                    sentence = []
            at = stop
        self._sentence = sentence
        return done


def _long(data: bytes, at: int) -> tuple[int, int]:
    """Size of a word whose length takes several bytes, and where it starts; size 0 if not all of these are there."""
    first = data[at]
    more = 1 if first < 0xC0 else 2 if first < 0xE0 else 3
    if first >= 0xF0:  # four more bytes, for what nobody sends; or reserved for what nobody knows
        raise Malformed(f"a word begins with the byte {first:#x}")
    start = at + 1 + more
    if start > len(data):
        return 0, start
    size = int.from_bytes(data[at:start], "big") & (1 << 7 * (more + 1)) - 1
    if size > MAX_BYTES:
        raise Malformed(f"a word is longer than {MAX_BYTES:,} bytes")
    return size, start


def decode(text: str) -> str:
    """One character per byte, as UTF-8 if it is that; else as it is, which old Windows tools leave behind."""
    try:
        return text.encode(_WIRE).decode()
    except UnicodeDecodeError:
        return text
