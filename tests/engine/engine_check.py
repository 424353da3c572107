"""Predicted cached tokens against a running llama.cpp server, request by request.

    python tests/engine/engine_check.py            # prints the tables

The server is the one inside the `xllamacpp` wheel, in this process, over HTTP on the loopback. The
model is written here: one layer of random numbers over a vocabulary of bytes, 0.1 MB, that only
ever says small letters. What it says is sent back as history, so that generated tokens are reused.
"""

from __future__ import annotations

import json
import random
import struct
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np

from codesmith_lab.cache.indexes import make_index
from codesmith_lab.cache.pieces import PieceTable
from codesmith_lab.cache.plan import make_plan
from codesmith_lab.cache.rule_files import get_rule
from codesmith_lab.prompt.blocks import Block
from codesmith_lab.prompt.chat_format import ChatFormat, Frame

CONTEXT_TOKENS = 16_384
ROLES = ("system", "user", "assistant", "tool")
_WIDTH, _INNER, _HEADS = 32, 64, 2
_LETTERS = b"abcdefghijklmnopqrstuvwxyz"
_FIRST_BYTE = 3
_TEMPLATE = (
    "{% for m in messages %}<|{{ m.role }}|>{{ m.content }}{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)

Messages = list[dict[str, str]]


# -- the model -------------------------------------------------------------------------------------


def write_model(path: Path) -> None:
    """A GGUF file (version 3) of a llama model with byte tokens and a chat template of our own."""
    tokens = ["<unk>", "<s>", "</s>", *(f"<0x{b:02X}>" for b in range(256)), "▁"]
    tokens += [f"<|{role}|>" for role in ROLES]
    kinds = [2, 3, 3, *[6] * 256, 1, *[3] * len(ROLES)]  # unknown, control, bytes, normal, control
    source = np.random.default_rng(5)
    n = len(tokens)
    voiced = np.zeros((n, _WIDTH))
    letters = [_FIRST_BYTE + b for b in _LETTERS]
    # Every other token has a score of zero, which the best of many random ones exceeds.
    voiced[letters] = source.normal(size=(len(letters), _WIDTH))
    tensors = {
        "token_embd.weight": source.normal(size=(n, _WIDTH)),
        "output_norm.weight": np.ones(_WIDTH),
        "output.weight": voiced,
        "blk.0.attn_norm.weight": np.ones(_WIDTH),
        "blk.0.ffn_norm.weight": np.ones(_WIDTH),
    }
    for name in ("attn_q", "attn_k", "attn_v", "attn_output"):
        tensors[f"blk.0.{name}.weight"] = source.normal(size=(_WIDTH, _WIDTH)) * 0.3
    for name, shape in (
        ("ffn_gate", (_INNER, _WIDTH)),
        ("ffn_up", (_INNER, _WIDTH)),
        ("ffn_down", (_WIDTH, _INNER)),
    ):
        tensors[f"blk.0.{name}.weight"] = source.normal(size=shape) * 0.3
    values: dict[str, Any] = {
        "general.architecture": "llama",
        "general.name": "bytes",
        "llama.context_length": CONTEXT_TOKENS,
        "llama.embedding_length": _WIDTH,
        "llama.block_count": 1,
        "llama.feed_forward_length": _INNER,
        "llama.attention.head_count": _HEADS,
        "llama.attention.layer_norm_rms_epsilon": 1e-5,
        "llama.rope.dimension_count": _WIDTH // _HEADS,
        "tokenizer.ggml.model": "llama",
        "tokenizer.ggml.tokens": tokens,
        "tokenizer.ggml.scores": [0.0] * n,
        "tokenizer.ggml.token_type": kinds,
        "tokenizer.ggml.bos_token_id": 1,
        "tokenizer.ggml.eos_token_id": 2,
        "tokenizer.ggml.unknown_token_id": 0,
        "tokenizer.ggml.add_bos_token": True,
        "tokenizer.ggml.add_eos_token": False,
        "tokenizer.ggml.add_space_prefix": False,
        "tokenizer.chat_template": _TEMPLATE,
    }
    infos, data = b"", b""
    for name, array in tensors.items():
        sizes = b"".join(struct.pack("<Q", size) for size in reversed(array.shape))
        infos += _text(name) + struct.pack("<I", array.ndim) + sizes
        infos += struct.pack("<IQ", 0, len(data))
        raw = array.astype("<f4").tobytes()
        data += raw + bytes(-len(raw) % 32)
    head = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), len(values))
    head += b"".join(_text(key) + _value(value) for key, value in values.items()) + infos
    path.write_bytes(head + bytes(-len(head) % 32) + data)


def _text(text: str) -> bytes:
    raw = text.encode()
    return struct.pack("<Q", len(raw)) + raw


def _value(value: Any) -> bytes:
    """A metadata value with its type in front."""
    if isinstance(value, bool):
        return struct.pack("<I?", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    kind, pack = {
        str: (8, _text),
        int: (5, struct.Struct("<i").pack),
        float: (6, struct.Struct("<f").pack),
    }[type(value[0])]
    return struct.pack("<IIQ", 9, kind, len(value)) + b"".join(map(pack, value))


# -- the server ------------------------------------------------------------------------------------


class Engine:
    """A server with so many slots and no prompts kept in main memory."""

    def __init__(self, model: Path, slots: int) -> None:
        import xllamacpp

        params = xllamacpp.CommonParams()
        params.model.path = str(model)
        params.n_ctx = CONTEXT_TOKENS * slots
        params.n_parallel = slots
        params.cache_ram_mib = 0
        params.n_gpu_layers = 0
        params.warmup = False
        params.use_jinja = True
        params.cpuparams.n_threads = params.cpuparams_batch.n_threads = 1
        self._server = xllamacpp.Server(params)
        self._url = self._server.listening_address + "/v1/chat/completions"

    def ask(self, messages: Messages, settings: dict[str, Any], reply_tokens: int) -> Any:
        """The response of one request, as JSON."""
        body = {"messages": messages, "max_tokens": reply_tokens, "temperature": 0, **settings}
        request = urllib.request.Request(
            self._url, json.dumps(body).encode(), {"Content-Type": "application/json"}
        )
        with urllib.request.urlopen(request, timeout=60) as response:
            return json.load(response)


# -- the prediction --------------------------------------------------------------------------------


def _frame(block: Block, first_tool: bool) -> Frame:
    return Frame(before=(f"<|{block.role}|>",))


BYTES = ChatFormat("bytes", True, ("<s>",), ("<|assistant|>",), _frame, "")


class Predictor:
    """The package's own engine over the same layout, one token a byte."""

    def __init__(self, slots: int) -> None:
        self.rule = replace(get_rule("llama-cpp"), slots=slots)
        self.table = PieceTable(
            BYTES,
            lambda text: np.frombuffer(text.encode(), np.uint8).astype(np.int32),
            lambda left, right: 0,
            lambda texts: [len(text.encode()) for text in texts],
        )
        self._index = make_index(self.table, self.rule)
        self._count = 0

    def ask(self, messages: Messages, settings: dict[str, Any], reply: str) -> tuple[int, int]:
        """(prompt tokens, cached tokens) that the server must report."""
        blocks = [_block(message, at) for at, message in enumerate(messages)]
        prompt = self.table.prompt(blocks)
        plan = make_plan(self.rule, "", settings, self.table, prompt, blocks)
        answer = {"role": "assistant", "content": reply}
        output = self.table.output_numbers([_block(answer, len(messages))])
        match = self._index.add(self._count, prompt, output, None, plan)
        self._count += 1
        return prompt.total_tokens, match.hit_tokens


def _block(message: dict[str, str], at: int) -> Block:
    role = message["role"]
    return Block("log", "message", role, role, message["content"], b"", at)


# -- the session -----------------------------------------------------------------------------------


Change = Callable[[Messages, random.Random], Messages]


def words(source: random.Random, n: int) -> str:
    """Made-up words, some of whose letters are several bytes."""
    return " ".join("".join(source.choices("abcdeé→", k=source.randrange(2, 9))) for _ in range(n))


def start(_: Messages, source: random.Random) -> Messages:
    return [_message("system", words(source, 120)), _message("user", words(source, 20))]


def more(messages: Messages, source: random.Random) -> Messages:
    """What was answered is part of `messages` by now; a user or a tool speaks next."""
    role = source.choice(["user", "tool"])
    return [*messages, _message(role, words(source, source.randrange(1, 30)))]


def same(messages: Messages, _: random.Random) -> Messages:
    return messages


def shorter(messages: Messages, _: random.Random) -> Messages:
    return messages[:-2] or messages


def in_front(messages: Messages, _: random.Random) -> Messages:
    return [_message("system", "new " + messages[0]["content"]), *messages[1:]]


def without_middle(messages: Messages, _: random.Random) -> Messages:
    return [*messages[:2], *messages[4:]]


def edit(share: float) -> Change:
    """One character changed, that far into the prompt."""

    def change(messages: Messages, _: random.Random) -> Messages:
        at = int(sum(len(m["content"]) for m in messages) * share)
        for i, message in enumerate(messages):
            text = message["content"]
            if at < len(text):
                edited = {**message, "content": text[:at] + "Z" + text[at + 1 :]}
                return [*messages[:i], edited, *messages[i + 1 :]]
            at -= len(text)
        return messages

    return change


def session(source: random.Random) -> Iterator[tuple[str, str, Change]]:
    """(what, conversation, change of its messages) of each request."""
    yield from (("cold", "a", start), ("repeat", "a", same), ("answered", "a", more))
    for _ in range(5):
        yield "extend", "a", more
    for share in (0.0, 0.1, 0.25, 0.5, 0.75, 0.9, 0.99):
        yield f"edit at {share:.0%}", "a", edit(share)
        yield "extend", "a", more
    yield from (("cold", "b", start), ("alternate", "a", same), ("alternate", "b", same))
    for name in "abab":
        yield "alternate and extend", name, more
    yield from (("shorter", "a", shorter), ("repeat", "a", same), ("in front", "a", in_front))
    yield from (("cut in the middle", "a", without_middle), ("extend", "a", more))
    yield from (("without the cache", "a", same), ("repeat", "a", same))
    yield from (("cold", "c", start), ("alternate", "b", more), ("alternate", "a", more))
    for _ in range(8):
        yield "any", source.choice("abc"), source.choice([more, same, edit(source.random())])


def _message(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


@dataclass(frozen=True)
class Row:
    """One request: what it did, and tokens predicted and reported."""

    what: str
    conversation: str
    prompt: tuple[int, int]
    cached: tuple[int, int]


def check(model: Path, slots: int, seed: int) -> list[Row]:
    """Play the session against the server and the prediction."""
    engine, predictor = Engine(model, slots), Predictor(slots)
    source = random.Random(seed)
    conversations: dict[str, Messages] = {}
    replies: dict[str, str] = {}
    rows = []
    for what, name, change in session(source):
        messages = conversations.get(name, [])
        if change is more and replies.get(name):
            messages = [*messages, _message("assistant", replies[name])]
        messages = change(messages, source)
        settings: dict[str, Any] = {"cache_prompt": False} if what == "without the cache" else {}
        response = engine.ask(messages, settings, reply_tokens=5 + len(rows) % 17)
        reply = response["choices"][0]["message"]["content"]
        usage = response["usage"]
        reported = usage["prompt_tokens"], usage["prompt_tokens_details"]["cached_tokens"]
        predicted = predictor.ask(messages, settings, reply)
        rows.append(Row(what, name, (predicted[0], reported[0]), (predicted[1], reported[1])))
        conversations[name], replies[name] = messages, reply
    return rows


def table(rows: list[Row]) -> str:
    """The rows as text, with a mark where prediction and report differ."""
    lines = [f"{'':>3} {'request':<22} {'of':<3}{'prompt':>8}{'predicted':>10}{'reported':>10}"]
    for at, row in enumerate(rows, 1):
        wrong = " *" if row.cached[0] != row.cached[1] or row.prompt[0] != row.prompt[1] else ""
        lines.append(
            f"{at:>3} {row.what:<22} {row.conversation:<3}{row.prompt[1]:>8}"
            f"{row.cached[0]:>10}{row.cached[1]:>10}{wrong}"
        )
    wrong_rows = sum(line.endswith("*") for line in lines)
    return "\n".join([*lines, f"{wrong_rows} of {len(rows)} differ"])


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        model_path = Path(folder) / "bytes.gguf"
        write_model(model_path)
        for slot_count in (1, 2, 3):
            print(f"\n{slot_count} slot{'s' if slot_count > 1 else ''}")
            print(table(check(model_path, slot_count, seed=slot_count)))
