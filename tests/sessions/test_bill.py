"""A five-turn session, its bill worked by hand under both rules."""

from __future__ import annotations

import json
from decimal import Decimal

from codesmith_lab.sessions.analysis import analyze
from codesmith_lab.sessions.reading.load import load_bytes
from codesmith_lab.sessions.records import Session

# DeepSeek flash off-peak, a Sunday: USD per million tokens.
HIT, MISS = Decimal("0.003"), Decimal("0.15")
# gpt-5: 1.25 in, 0.125 cached.
OPENAI_HIT, OPENAI_MISS = Decimal("0.125"), Decimal("1.25")
WORDS = " word" * 1500


def five_turns(model: str) -> Session:
    """Turns 1 to 3 append; the system prompt's first word changes at turn 4; turn 5 appends."""
    messages: list[dict[str, str]] = []
    lines = []
    for turn in range(5):
        messages = [*messages, {"role": "user", "content": f"question {turn}"}]
        first = "Alpha" if turn < 3 else "Omega"
        body = {
            "model": model,
            "messages": [{"role": "system", "content": first + WORDS}, *messages],
        }
        time = f"2026-11-29T12:0{turn}:00Z"
        lines.append(json.dumps({"time": time, "request": body}))
        messages = [*messages, {"role": "assistant", "content": f"answer {turn}"}]
    return load_bytes("\n".join(lines).encode())


def check(model: str, rules: str | None, unit: int, hit: Decimal, miss: Decimal) -> list[int]:
    report = analyze(five_turns(model), rules=rules)
    sizes = [turn.prompt.total_tokens for turn in report.turns]
    hits = [turn.causes.tokens[0] for turn in report.turns]
    # Turns 2, 3 and 5 extend the turn before them: whole units of its prompt (without the markers
    # that open the reply) are hits. Turn 4 breaks in the first word and hits nothing.
    for turn in (1, 2, 4):
        assert 0 <= sizes[turn - 1] - hits[turn] < unit + 4
        assert hits[turn] % unit == 0
    assert hits[0] == hits[3] == 0
    by_hand = sum((h * hit + (n - h) * miss) / 1_000_000 for h, n in zip(hits, sizes, strict=True))
    assert report.totals.cost_usd == by_hand
    assert sum(report.totals.causes) == sum(report.totals.lines) == sum(sizes)
    return hits


def test_deepseek_v4_units_of_128() -> None:
    check("deepseek-v4-flash", None, 128, HIT, MISS)


def test_deepseek_units_of_64() -> None:
    check("deepseek-v4-flash", "deepseek-v3", 64, HIT, MISS)


def test_openai_steps_of_128_from_1024() -> None:
    hits = check("gpt-5", None, 128, OPENAI_HIT, OPENAI_MISS)
    assert min(hits[1], hits[2], hits[4]) >= 1024


def test_turn_four_repays_nothing_it_did_not_break() -> None:
    """The changed block is the whole system prompt; behind it the old messages are paid again."""
    report = analyze(five_turns("deepseek-v4-flash"))
    broken = report.breaks[3]
    assert broken is not None
    assert (broken.zone, broken.line, broken.column) == ("pinned", 1, 1)
    turn = report.turns[3]
    last = sum(int(n) for n in turn.prompt.tokens[-3:])
    messages = turn.prompt.total_tokens - int(turn.prompt.ends[0])
    assert 0 < turn.causes.tokens[2] <= messages - last + 8
