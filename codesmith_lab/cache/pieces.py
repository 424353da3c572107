"""Framed blocks, interned: equal text is tokenized once and compared by number.

A *piece* is a block with its framing. A prompt becomes an array of piece numbers, so that two
prompts of thousands of blocks are compared in microseconds.
"""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from codesmith_lab.prompt.blocks import Block
from codesmith_lab.prompt.chat_format import ChatFormat, Frame, reading_order

__all__ = ["BlockNumbers", "Piece", "PieceTable", "Prompt", "common_length"]

IntArray = npt.NDArray[np.int32]
LongArray = npt.NDArray[np.int64]
JointDelta = Callable[[str, str], int]
RunCounts = Callable[[Sequence[str]], Sequence[int]]

_FEW = 8
_LEAST_KEY_BYTES = 4 * 2**20
# What a piece is besides its text, as bits.
_IMAGE, _CITES, _TURN_END = 1, 2, 4
_FEATURES = {"image": _IMAGE, "citations": _CITES}


def common_length(a: bytes, b: bytes, width: int = 1) -> int:
    """Length of the common prefix of two byte strings, in items of `width` bytes."""
    n = min(len(a), len(b)) // width * width
    if a[:n] == b[:n]:
        return n // width
    step, at = 4096, 0
    while a[at : at + step] == b[at : at + step]:
        at += step
    x = np.frombuffer(a[at : min(at + step, n)], np.uint8)
    y = np.frombuffer(b[at : min(at + step, n)], np.uint8)
    return (at + int(np.argmax(x != y))) // width


@dataclass(frozen=True, slots=True, eq=False)
class Piece:
    """A framed block. Its token ids are `PieceTable.key`.

    number: its place in the table.
    tokens, n_bytes: its length standing alone, framing included.
    frame, text: the block's own text and what stands around it; markers are one token each.
    cut: it stands for the piece without its last token.
    """

    number: int
    tokens: int
    n_bytes: int
    frame: Frame
    text: str
    cut: bool = False

    @property
    def head(self) -> str:
        """Framing text before the block's own text: markers and lead."""
        return "".join(self.frame.before) + self.frame.lead

    @property
    def body(self) -> str:
        """The framed text without markers."""
        return self.frame.lead + self.text + self.frame.tail

    @property
    def full(self) -> str:
        """The framed text with markers."""
        return "".join((*self.frame.before, self.body, *self.frame.after))

    @property
    def marker_tokens(self) -> int:
        """How many of the tokens are markers."""
        return len(self.frame.before) + len(self.frame.after)


@dataclass(frozen=True, slots=True, eq=False)
class Prompt:
    """One prompt as the provider reads it.

    blocks: in prompt order; pieces has one number more, the markers that open the reply.
    tokens: int64[n + 1], tokens of each piece in its place (joints counted).
    ends: int64[n + 1], running sum of `tokens`.
    """

    blocks: tuple[Block, ...]
    pieces: IntArray
    tokens: LongArray
    ends: LongArray

    def __reduce__(self) -> tuple[type[Prompt], tuple[object, ...]]:
        # Copies stand alone, whatever they share their parts with.
        return Prompt, (self.blocks, self.pieces, self.tokens, self.ends)

    @property
    def size(self) -> int:
        """How many pieces, the reply's marks included."""
        return len(self.pieces)

    @property
    def total_tokens(self) -> int:
        """Input tokens of the request."""
        return int(self.ends[-1]) if len(self.ends) else 0

    @property
    def pinned_pieces(self) -> int:
        """How many pieces at the front are tools and system prompt."""
        return next(
            (i for i, b in enumerate(self.blocks) if b.kind not in ("tool", "section")),
            len(self.blocks),
        )

    def blocks_between(self, low: int, high: int) -> tuple[Block, ...]:
        """Blocks `low` to `high` (exclusive)."""
        return self.blocks[low:high]

    def same_start(self, other: Prompt) -> int:
        """A number of blocks that both are known to begin with, found without comparing."""
        return len(self.blocks) if other is self else 0

    @property
    def pinned_blocks(self) -> tuple[Block, ...]:
        """Tools and system prompt, in prompt order."""
        return self.blocks[: self.pinned_pieces]

    def block_at(self, at: int) -> Block:
        """The block in place `at`, 0 <= at < size - 1."""
        return self.blocks[at]

    def numbers(self, low: int, high: int) -> IntArray:
        """Pieces `low` to `high` (exclusive)."""
        return self.pieces[low:high]

    def tokens_before(self, pieces: int) -> int:
        """Tokens of the first `pieces` pieces."""
        return int(self.ends[pieces - 1]) if pieces else 0


class BlockNumbers:
    """Running number of content blocks behind each piece of a prompt, from 0 on.

    A tool call is one; the sections of one system text are one together. Counted when somebody
    asks: kept for every request they would fill the memory.
    """

    __slots__ = ("_prompt", "_table")

    def __init__(self, table: PieceTable, prompt: Prompt) -> None:
        self._table = table
        self._prompt = prompt

    def __getitem__(self, piece: int) -> int:
        return int(self._table.count_blocks(self._prompt)[piece])


class PieceTable:
    """Interns framed blocks of one chat format under one tokenizer.

    Parameters
    ----------
    chat_format: order and framing.
    ids: token ids of a plain text (special-token text in it is ordinary text).
    joint_delta: tokens to add at a joint of two texts, from both texts (0 or negative as a rule).
    run_counts: tokens of each of several texts that are read as one, from the whole.
    """

    def __init__(
        self,
        chat_format: ChatFormat,
        ids: Callable[[str], npt.NDArray[np.int32]],
        joint_delta: JointDelta,
        run_counts: RunCounts,
    ) -> None:
        self.chat_format = chat_format
        self.pieces: list[Piece] = []
        self._ids = ids
        self._joint_delta = joint_delta
        self._run_counts = run_counts
        self._runs: dict[bytes, list[int]] = {}
        self._frames: dict[tuple[Frame, int, int], tuple[int, Frame]] = {}
        self._by_content: dict[tuple[int, str], int] = {}
        self._by_block: dict[int, int] = {}
        self._alive: list[Block] = []
        self._markers: dict[str, int] = {}
        self._joints: dict[tuple[int, int], int] = {}
        self._counts = np.zeros(64, np.int64)
        self._joins = np.zeros(64, np.bool_)
        self._closed = np.zeros(64, np.bool_)
        self._flags = np.zeros(64, np.uint8)
        self._weights = np.zeros(64, np.int64)
        self._cut: dict[int, int] = {}
        self._counted: tuple[Prompt, LongArray] | None = None
        self._keys: OrderedDict[int, bytes] = OrderedDict()
        self._key_bytes = 0
        self._keeps_keys = False
        self._text_bytes = 0
        self._reply = self._intern(Frame(before=chat_format.reply), "", ())

    def prompt(self, blocks: Iterable[Block]) -> Prompt:
        """Lay the blocks out in prompt order, with the markers that open the reply."""
        ordered = reading_order(tuple(blocks), self.chat_format)
        numbers = np.empty(len(ordered) + 1, np.int32)
        seen_tool = False
        for i, block in enumerate(ordered):
            is_tool = block.kind == "tool"
            numbers[i] = self._number(block, is_tool and not seen_tool, i == 0)
            seen_tool = seen_tool or is_tool
        numbers[-1] = self._reply
        return self.assemble(tuple(ordered), numbers)

    def vary(self, base: Prompt, blocks: Iterable[Block]) -> Prompt:
        """What `prompt(blocks)` gives, quickly where few blocks differ from `base`'s.

        Only changed blocks are looked up and only the runs of text they stand in are joined again.
        """
        ordered = tuple(reading_order(tuple(blocks), self.chat_format))
        changed = [
            i for i, (a, b) in enumerate(zip(ordered, base.blocks, strict=False)) if a is not b
        ]
        if (
            len(ordered) != len(base.blocks)
            or len(changed) > _FEW
            or any("tool" in (ordered[i].kind, base.blocks[i].kind) for i in changed)
        ):
            return self.prompt(ordered)
        numbers, tokens = base.pieces.copy(), base.tokens.copy()
        for i in changed:
            numbers[i] = self._number(ordered[i], False, i == 0)
        # A change may cut or join runs: first what was one run, then what is one now.
        runs = [self.run_around(pieces, i) for pieces in (base.pieces, numbers) for i in changed]
        for at, run in enumerate(runs):
            if run not in runs[at + 1 :]:
                tokens[slice(*run)] = self.assemble((), numbers[slice(*run)]).tokens
        return Prompt(ordered, numbers, tokens, np.cumsum(tokens))

    def assemble(self, blocks: tuple[Block, ...], numbers: IntArray) -> Prompt:
        """A prompt from piece numbers, with the tokens of each piece in its place."""
        tokens = self._counts[numbers]
        for low, high in self._joined_runs(numbers):
            exact = self._runs.get(numbers[low:high].tobytes())
            if exact is not None:
                tokens[low:high] = exact
                continue
            for at in range(low + 1, high):
                tokens[at] += self._joint(int(numbers[at - 1]), int(numbers[at]))
        return Prompt(blocks, numbers, tokens, np.cumsum(tokens))

    def extended(
        self, numbers: IntArray, ends: LongArray, more: IntArray
    ) -> tuple[IntArray, LongArray]:
        """Piece numbers and running sum of tokens with further pieces behind them."""
        whole = np.concatenate([numbers, more])
        if len(numbers) and self._joins[more[0]] and not self._closed[numbers[-1]]:
            return whole, self.assemble((), whole).ends
        start = ends[-1] if len(ends) else 0
        return whole, np.concatenate([ends, start + self.assemble((), more).ends])

    def exact(self, prompt: Prompt) -> Prompt:
        """The same prompt with every run of joined texts counted as one text.

        The counts are remembered: the same run is exact from then on wherever it stands.
        """
        for low, high in self._joined_runs(prompt.pieces):
            run = prompt.pieces[low:high]
            if run.tobytes() in self._runs:
                continue
            parts = [self.pieces[number] for number in run.tolist()]
            counts = list(self._run_counts([part.body for part in parts]))
            # Markers stand at the outer ends of a run and are one token each.
            for i, part in enumerate(parts):
                counts[i] += part.marker_tokens
            self._runs[run.tobytes()] = counts
        return self.assemble(prompt.blocks, prompt.pieces)

    def output_numbers(self, blocks: Sequence[Block]) -> IntArray:
        """Piece numbers of a response, as the next request's history would hold it."""
        return np.array([self._number(block, False, False) for block in blocks], np.int32)

    @property
    def reply_tokens(self) -> int:
        """Tokens of the marks that open the reply."""
        return self.pieces[self._reply].tokens

    def forget_blocks(self) -> None:
        """Drop what finds a block's piece by the block itself; its text finds it as well.

        It makes laying out a whole session quick. Behind that it is only large.
        """
        self._by_block = {}
        self._alive = []

    def number_of(self, block: Block, opens: bool) -> int:
        """The piece of a block that is no tool; `opens`: it stands first in the prompt."""
        return self._number(block, False, opens)

    def without_last_token(self, number: int) -> int:
        """The piece without its last token: what an engine holds of a generated text."""
        cut = self._cut.get(number)
        if cut is None:
            whole = self.pieces[number]
            cut = len(self.pieces)
            shorter = replace(whole, number=cut, tokens=max(0, whole.tokens - 1), cut=True)
            self._put(shorter, bool(self._joins[number]), bool(self._closed[number]))
            self._cut[number] = cut
        return cut

    def key(self, number: int) -> bytes:
        """Token ids of a piece as big-endian 32-bit integers.

        Byte order is token order: `common_length(a, b, 4)` of two keys is the number of leading
        tokens that the pieces share.
        """
        key = self._keys.get(number)
        if key is None:
            piece = self.pieces[number]
            key = self._token_ids(piece.frame, piece.text).astype(">i4").tobytes()
            if piece.cut:
                key = key[:-4]
            self._keep_key(number, key)
        elif not self._keeps_keys:
            self._keys.move_to_end(number)
        return key

    def keep_keys(self) -> None:
        """Keep the token ids of all pieces, for caches that compare whole prompts by them."""
        self._keeps_keys = True

    def _keep_key(self, number: int, key: bytes) -> None:
        """Keep the ids of the pieces used last: the text gives them again, and ids are as large."""
        self._keys[number] = key
        self._key_bytes += len(key)
        if self._keeps_keys:
            return
        most = max(_LEAST_KEY_BYTES, self._text_bytes // 8)
        while self._key_bytes > most and len(self._keys) > 1:
            self._key_bytes -= len(self._keys.popitem(last=False)[1])

    def token_bytes(self, numbers: IntArray) -> bytes:
        """Token ids of pieces, 4 bytes each, in order."""
        return b"".join([self.key(number) for number in numbers.tolist()])

    def computed_bytes(self, pieces: IntArray, output: IntArray) -> bytes:
        """Token ids that an engine has computed after a request: prompt and output but its last.

        What is generated follows the marks that open the reply, which the output repeats.
        """
        prompt = self.token_bytes(pieces)
        if not len(output):
            return prompt
        whole = self.token_bytes(pieces[:-1]) + self.token_bytes(output)[:-4]
        return max(prompt, whole, key=len)

    # -- what rules ask of a prompt --------------------------------------------------------

    def has(self, prompt: Prompt, feature: str) -> bool:
        """Whether a prompt holds "image" blocks, or documents with "citations" turned on."""
        return bool((self._flags[prompt.pieces] & _FEATURES[feature]).any())

    def turn_ends(self, prompt: Prompt, most: int | None = None) -> list[int]:
        """Pieces up to the end of each message of user or tool, the latest `most` of them."""
        ends = np.flatnonzero(self._flags[prompt.pieces] & _TURN_END) + 1
        return [int(n) for n in (ends if most is None else ends[-most:])]

    def count_blocks(self, prompt: Prompt) -> LongArray:
        """What `BlockNumbers` of a prompt says, for all pieces."""
        if self._counted is not None and self._counted[0] is prompt:
            return self._counted[1]
        weights = self._weights[prompt.pieces]
        for i, (block, following) in enumerate(pairwise(prompt.pinned_blocks)):
            if block.kind == following.kind == "section" and block.raw == following.raw:
                weights[i] = 0
        self._counted = (prompt, np.cumsum(weights))
        return self._counted[1]

    def __getitem__(self, number: int) -> Piece:
        return self.pieces[number]

    def _joined_runs(self, numbers: IntArray) -> list[tuple[int, int]]:
        """Ranges [low, high) of pieces whose texts follow each other without a marker."""
        joins = self._joins[numbers]
        if not joins.any():
            return []
        ends_open = ~self._closed[numbers]
        linked = joins[1:] & ends_open[:-1]
        edges = np.flatnonzero(np.diff(np.concatenate([[False], linked, [False]])))
        return [(int(a), int(b) + 1) for a, b in edges.reshape(-1, 2)]

    def run_around(self, numbers: IntArray, at: int) -> tuple[int, int]:
        """The range of pieces joined with the one at `at`, itself included."""
        low, high = at, at + 1
        while low and self._joins[numbers[low]] and not self._closed[numbers[low - 1]]:
            low -= 1
        while (
            high < len(numbers)
            and self._joins[numbers[high]]
            and not self._closed[numbers[high - 1]]
        ):
            high += 1
        return low, high

    def _number(self, block: Block, first_tool: bool, opens: bool) -> int:
        memo = 4 * id(block) + 2 * first_tool + opens
        known = self._by_block.get(memo)
        if known is not None:
            return known
        frame = self.chat_format.frame(block, first_tool)
        opening = self.chat_format.opening if opens else ()
        number = self._intern(frame, block.text, opening, _flags_of(block), max(1, block.calls))
        self._by_block[memo] = number
        # The block is kept alive so that its id cannot be given to another object.
        self._alive.append(block)
        return number

    def _intern(
        self, frame: Frame, text: str, opening: tuple[str, ...], flags: int = 0, weight: int = 0
    ) -> int:
        if opening:
            frame = replace(frame, before=opening + frame.before)
        framing, frame = self._frames.setdefault((frame, flags, weight), (len(self._frames), frame))
        content = (framing, text)
        number = self._by_content.get(content)
        if number is None:
            number = self._add(frame, text)
            self._flags[number], self._weights[number] = flags, weight
            self._by_content[content] = number
        return number

    def _add(self, frame: Frame, text: str) -> int:
        ids = self._token_ids(frame, text)
        parts = (*frame.before, frame.lead, text, frame.tail, *frame.after)
        n_bytes = sum(len(part.encode("utf-8")) for part in parts)
        piece = Piece(len(self.pieces), len(ids), n_bytes, frame, text)
        self._text_bytes += n_bytes
        self._keep_key(piece.number, ids.astype(">i4").tobytes())
        return self._put(piece, frame.joins and not frame.before, bool(frame.after))

    def _token_ids(self, frame: Frame, text: str) -> IntArray:
        body = frame.lead + text + frame.tail
        parts = [self._marker_ids(frame.before), self._marker_ids(frame.after)]
        if body:
            parts.insert(1, self._ids(body))
        return np.concatenate(parts)

    def _marker_ids(self, markers: tuple[str, ...]) -> IntArray:
        return np.array([self._marker(marker) for marker in markers], np.int32)

    def _put(self, piece: Piece, joins: bool, closed: bool) -> int:
        number = piece.number
        self.pieces.append(piece)
        if number >= len(self._counts):
            more = len(self._counts)
            self._counts = np.concatenate([self._counts, np.zeros(more, np.int64)])
            self._joins = np.concatenate([self._joins, np.zeros(more, np.bool_)])
            self._closed = np.concatenate([self._closed, np.zeros(more, np.bool_)])
            self._flags = np.concatenate([self._flags, np.zeros(more, np.uint8)])
            self._weights = np.concatenate([self._weights, np.zeros(more, np.int64)])
        self._counts[number] = piece.tokens
        self._joins[number] = joins
        self._closed[number] = closed
        return number

    def _marker(self, marker: str) -> int:
        # Markers get numbers of their own below zero: no text can ever produce them.
        return self._markers.setdefault(marker, -1 - len(self._markers))

    def _joint(self, left: int, right: int) -> int:
        delta = self._joints.get((left, right))
        if delta is None:
            a, b = self.pieces[left], self.pieces[right]
            delta = self._joint_delta(a.body, b.body)
            self._joints[(left, right)] = delta
        return delta


def _flags_of(block: Block) -> int:
    flags = 0
    if block.name == "image":
        flags |= _IMAGE
    if block.name == "document" and _cites(block.raw):
        flags |= _CITES
    if block.last and block.role in ("user", "tool") and block.kind in ("message", "part"):
        flags |= _TURN_END
    return flags


def _cites(raw: bytes) -> bool:
    """Whether a document's JSON turns citations on."""
    if b'"citations"' not in raw:
        return False
    try:
        part = json.loads(raw)
    except ValueError:
        return False
    while isinstance(part, dict) and isinstance(part.get("content"), list) and part["content"]:
        part = part["content"][0]
    citations = part.get("citations") if isinstance(part, dict) else None
    return isinstance(citations, dict) and citations.get("enabled") is True
