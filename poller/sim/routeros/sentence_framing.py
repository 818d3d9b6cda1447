"""The framing of the RouterOS API: words with a length prefix, and an empty word at the end.

Lengths take one to five octets. First octets from 0xF8 are reserved. Oversized words and sentences
are refused, so that a peer cannot fill the memory.
"""

from __future__ import annotations

from collections.abc import Iterable

MAX_WORD = 64 * 1024
MAX_SENTENCE = 256 * 1024

Sentence = list[bytes]


class Malformed(ValueError):
    """The bytes are not sentences."""


def length(n: int) -> bytes:
    if n < 0x80:
        return bytes((n,))
    if n < 0x4000:
        return (n | 0x8000).to_bytes(2, "big")
    if n < 0x20_0000:
        return (n | 0xC0_0000).to_bytes(3, "big")
    if n < 0x1000_0000:
        return (n | 0xE000_0000).to_bytes(4, "big")
    return b"\xf0" + n.to_bytes(4, "big")


_SHORT = tuple(bytes((n,)) for n in range(0x80))


def word(content: bytes) -> bytes:
    size = len(content)
    return (_SHORT[size] if size < 0x80 else length(size)) + content


def encode(words: Iterable[bytes]) -> bytes:
    """Encode one sentence."""
    return b"".join(map(word, words)) + b"\0"


class Decoder:
    """Collects bytes as they arrive and returns complete sentences."""

    def __init__(self) -> None:
        self._buffer = b""
        self._words: Sentence = []
        self._size = 0

    def feed(self, data: bytes) -> list[Sentence]:
        """Return the sentences that these bytes complete, without empty ones. Raises Malformed."""
        buffer = self._buffer + data if self._buffer else data
        at, done = 0, []
        while (word := _word(buffer, at)) is not None:
            start, at = word
            if start == at:
                if self._words:
                    done.append(self._words)
                self._words, self._size = [], 0
            else:
                self._keep(buffer[start:at])
        self._buffer = buffer[at:]
        return done

    def _keep(self, word: bytes) -> None:
        self._size += len(word)
        if self._size > MAX_SENTENCE:
            raise Malformed("sentence too long")
        self._words.append(word)


def _word(buffer: bytes, at: int) -> tuple[int, int] | None:
    """Return where the content of the word at `at` starts and stops; None if incomplete."""
    if at >= len(buffer):
        return None
    first = buffer[at]
    if first < 0x80:
        start, size = at + 1, first
    else:
        extra, keep = _form(first)
        start = at + 1 + extra
        if start > len(buffer):
            return None
        size = int.from_bytes(bytes((first & keep,)) + buffer[at + 1 : start], "big")
    if size > MAX_WORD:
        raise Malformed("word too long")
    return (start, start + size) if start + size <= len(buffer) else None


def _form(first: int) -> tuple[int, int]:
    """Return the number of length octets after the first, and the mask of the first."""
    if first < 0xC0:
        return 1, 0x3F
    if first < 0xE0:
        return 2, 0x1F
    if first < 0xF0:
        return 3, 0x0F
    if first < 0xF8:
        return 4, 0x00
    raise Malformed("reserved control octet")
