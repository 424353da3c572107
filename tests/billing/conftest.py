from __future__ import annotations

import random
import unicodedata

import pytest

SPECIALS = (
    "<|endoftext|>",
    "<|endofprompt|>",
    "<|im_start|>system<|im_sep|>",
    "<|fim_prefix|>",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<｜begin▁of▁sentence｜>",
    "<｜end▁of▁sentence｜>",
    "｜DSML｜",
)
CODE = (
    "def f(x: int) -> int:\n    if x > 1_000:\n        return x ** 2\n\treturn -x  # done\n",
    "const a = {b: [1,2,3], 'c': `x${y}`};\r\nfor (let i=0;i<10;i++) { console.log(i) }\r\n",
    '{"path": "/usr/local/bin", "n": 12345678, "s": "\\u00e9\\n", "t": [null, true]}',
    "SELECT * FROM t WHERE a='it''s' AND b<>\"x\";\n\n\n-- don't, we'll, I'VE, they'Re\n",
)
WORDS = (
    "prompt", "cache", "Token", "HTTPServer", "naïve", "don't", "it's", "WE'LL", "x86_64", "2026",
    "3.14159", "1,234,567", "https://a.b/c?d=e#f", "日本語", "данные", "مرحبا", "नमस्ते", "한국어",
    "ไทย", "עברית", "👩‍👩‍👧‍👦", "🇩🇪", "❤️‍🔥", "é", "e\u0301", "\u200d", "…", "—", "(", "});", "/",
)  # fmt: skip


def _by_block(step: int) -> list[str]:
    """Every `step`-th code point, unassigned ones too, in runs that mix neighbours."""
    points = [c for c in range(0, 0x110000, step) if not 0xD800 <= c < 0xE000]
    return ["".join(map(chr, points[i : i + 40])) for i in range(0, len(points), 40)]


@pytest.fixture(scope="session")
def corpus() -> list[str]:
    """Deterministic texts: scripts, code, emoji, marks, unassigned, specials, long runs."""
    rng = random.Random(20261129)
    texts = ["", " ", "\n", "\x00", "\x00\x01\x02", "a\x00b", "\u00a0", "\ufeffBOM", *SPECIALS]
    texts += [f"say {s} to {s}{s}x" for s in SPECIALS] + list(CODE)
    for unit in (
        " ",
        "a",
        "A",
        "!",
        "\n",
        "\t",
        "\r\n",
        "\u00a0",
        "\u3000",
        "é",
        "漢",
        "9",
        "/",
        "ab ",
    ):
        texts += [unit * n for n in (2, 3, 7, 64, 513)] + [f"x{unit * 65}y{unit * 2}"]
    texts += _by_block(997)
    newest = [c for c in range(0x110000) if unicodedata.category(chr(c)) == "Cn" and c % 211 == 0]
    texts += [f"a{chr(c)}'store {chr(c)}12 {chr(c)}{chr(c)}B." for c in newest[:600]]
    for _ in range(300):
        glue = rng.choice(("", " ", "  ", "\n", "\n\n", "\t", "\r\n", "\u00a0", " \n "))
        texts.append(glue.join(rng.choices(WORDS, k=rng.randint(1, 40))))
    for _ in range(300):
        start = rng.choice((0x20, 0x300, 0x900, 0x1F300, 0x4E00, 0xAC00, 0x10000, 0x1E000))
        texts.append("".join(chr(start + rng.randrange(0x700)) for _ in range(rng.randint(1, 60))))
    return texts


@pytest.fixture(scope="session")
def prompts() -> list[list[str]]:
    """Prompts in sections that own their trailing blank line, and harder cuts."""
    rng = random.Random(7)
    found: list[list[str]] = []
    for number in range(60):
        glue = ("\n\n", "\n", "", " ")[number % 4]
        sections = []
        for _ in range(rng.randint(1, 12)):
            size = rng.choice((0, 1, 3, 30, 300, 2500))
            body = " ".join(rng.choices(WORDS, k=size))
            if rng.random() < 0.2:
                body += rng.choice(CODE) * rng.randint(1, 20)
            if rng.random() < 0.1:
                body += rng.choice((" ", "a", "=", "/", "\n")) * rng.choice((100, 400, 3000))
            sections.append(body + glue if rng.random() < 0.9 else body)
        found.append(sections)
    return found
