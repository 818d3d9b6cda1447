"""Splits the bytes of a router into sentences, however the bytes are cut. Opens no sockets.

A word is its length and its bytes; an empty word ends the sentence. Texts are UTF-8, or Latin-1 if
they are no valid UTF-8. Each byte is parsed once.
"""

from __future__ import annotations

#: Limits of one poll. All menus of a large router are smaller; a peer that sends more does not
#: answer our commands. A word takes about a hundred bytes of memory until the poll ends.
MAX_BYTES = 64 * 1024 * 1024
MAX_WORDS = 2_000_000
MAX_WORD_BYTES = 4 * 1024 * 1024
#: Memory of one word beside its bytes, as a part of a row: two texts and their place in a dict.
_WORD_BYTES = 150
_WIRE = "latin-1"  # one byte, one character

Sentence = list[str]


class MalformedSentence(ValueError):
    """The bytes are no sentences, or exceed the limits of a poll."""


class SentenceParser:
    """Takes bytes as they arrive and returns the sentences that are complete."""

    __slots__ = ("_byte_count", "_partial", "_partial_needs", "_sentence", "_word_count")

    def __init__(self) -> None:
        self._sentence: Sentence = []  # the words so far of an incomplete sentence
        self._partial = bytearray()  # the bytes so far of an incomplete word
        self._partial_needs = 0  # minimum length of that word, with its length prefix
        self._byte_count = 0
        self._word_count = 0

    @property
    def at_boundary(self) -> bool:
        """Whether the next byte begins a sentence."""
        return not (self._partial or self._sentence)

    @property
    def memory_bytes(self) -> int:
        """An estimate of the memory that the sentences of this poll take."""
        words = self._word_count + len(self._sentence)
        return self._byte_count + words * _WORD_BYTES

    def begin_poll(self) -> None:
        """Restart the counts that limit the replies of one poll."""
        self._byte_count = 0
        self._word_count = 0

    def feed(self, data: bytes) -> list[Sentence]:
        """Return the non-empty sentences these bytes complete. Raises MalformedSentence."""
        self._byte_count += len(data)
        if self._byte_count > MAX_BYTES:
            raise MalformedSentence(f"it sent more than {MAX_BYTES:,} bytes in one poll")
        if self._partial:
            self._partial += data
            if len(self._partial) < self._partial_needs:
                return []
            data = bytes(self._partial)
            self._partial = bytearray()

        sentences = self._parse(data)
        if self._word_count + len(self._sentence) > MAX_WORDS:
            raise MalformedSentence(f"it sent more than {MAX_WORDS:,} words in one poll")
        return sentences

    def _parse(self, data: bytes) -> list[Sentence]:
        text = data.decode(_WIRE)
        at = 0
        end = len(data)
        sentence = self._sentence
        sentences: list[Sentence] = []
        while at < end:
            size = data[at]
            start = at + 1
            if size >= 0x80:
                size, start = _long_length(data, at)
            stop = start + size
            if stop > end:
                self._partial = bytearray(data[at:])
                self._partial_needs = stop - at
                break
            if size:
                word = text[start:stop]
                sentence.append(word if word.isascii() else decode(word))
            else:
                self._word_count += len(sentence) + 1
                if sentence:
                    sentences.append(sentence)
                    sentence = []
            at = stop
        self._sentence = sentence
        return sentences


def _long_length(data: bytes, at: int) -> tuple[int, int]:
    """Return size and start of a word with a long length prefix; size 0 if the prefix is cut."""
    first = data[at]
    if first >= 0xF0:  # four more bytes, which no router sends, or a reserved prefix
        raise MalformedSentence(f"a word begins with the byte {first:#x}")
    more_bytes = 1
    if first >= 0xC0:
        more_bytes = 2 if first < 0xE0 else 3
    start = at + 1 + more_bytes
    if start > len(data):
        return 0, start
    length_bits = 7 * (more_bytes + 1)
    size = int.from_bytes(data[at:start], "big") & ((1 << length_bits) - 1)
    if size > MAX_WORD_BYTES:
        raise MalformedSentence(f"a word is longer than {MAX_WORD_BYTES:,} bytes")
    return size, start


def decode(text: str) -> str:
    """Decode a text with one character per byte as UTF-8; keep it as Latin-1 if it is none."""
    try:
        return text.encode(_WIRE).decode()
    except UnicodeDecodeError:
        return text
