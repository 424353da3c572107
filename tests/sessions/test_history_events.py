"""Histories are aligned: what was done to them comes out as what it was."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from codesmith_lab.prompt.blocks import Block
from codesmith_lab.sessions.findings.history import align, history_events

ROLES = ("user", "assistant")


def block(text: str, n: int, zone: str = "log") -> Block:
    return Block(zone, "message", ROLES[n % 2], ROLES[n % 2], text, b"", n)


def history(texts: list[str], own: int = 1) -> list[Block]:
    """Messages of a conversation; the last `own` are the turn's own."""
    start = len(texts) - own
    return [block(t, n, "log" if n < start else "scratch") for n, t in enumerate(texts)]


def classes(was: list[Block], now: list[Block], rebuilt: str | None = None) -> list[str]:
    return [event.cls for event in history_events(was, now, 0, rebuilt)]


# Long enough that no text holds another.
words = st.lists(st.text("abcdefgh", min_size=8, max_size=8), min_size=6, max_size=12, unique=True)
NEW = ["reply of the model", "and a question of the user"]


@given(words)
def test_appending_is_no_event(texts: list[str]) -> None:
    assert classes(history(texts), history(texts + NEW)) == []


@given(words, st.data())
def test_one_edit_is_one_edit(texts: list[str], data) -> None:
    at = data.draw(st.integers(0, len(texts) - 1))
    now = [*texts[:at], "something else entirely", *texts[at + 1 :], *NEW]
    found = history_events(history(texts), history(now), 0, None)
    assert [(event.cls, event.at) for event in found] == [("message_edited", at)]


@given(words, st.data())
def test_one_message_taken_out_is_removed(texts: list[str], data) -> None:
    at = data.draw(st.integers(0, len(texts) - 2))
    was = history(texts)
    now = [*was[:at], *was[at + 1 :], *history(texts + NEW)[len(texts) :]]
    assert classes(was, now) == ["message_removed"]


@given(words, st.data())
def test_one_message_put_in_is_inserted(texts: list[str], data) -> None:
    at = data.draw(st.integers(0, len(texts) - 1))
    was = history(texts)
    new = block("something put in between", 0)
    now = [*was[:at], new, *was[at:], *history(texts + NEW)[len(texts) :]]
    found = history_events(was, now, 0, None)
    assert [(event.cls, event.at) for event in found] == [("message_inserted", at)]


@given(words, st.data())
def test_one_message_moved_is_moved_and_nothing_else(texts: list[str], data) -> None:
    at = data.draw(st.integers(0, len(texts) - 3))
    was = history(texts)
    now = [*was[:at], *was[at + 1 :], *history(texts + NEW)[len(texts) :], was[at]]
    found = history_events(was, now, 0, None)
    assert [event.cls for event in found] == ["block_moved"]
    assert found[0].was is not None and found[0].was.text == texts[at]


@given(words)
def test_a_front_trim_is_a_removal_and_a_summary_a_compaction(texts: list[str]) -> None:
    texts = [text * 20 for text in texts]
    was = history(texts)
    tail = history(texts + NEW)[len(texts) :]
    assert set(classes(was, [*was[4:], *tail])) == {"message_removed"}
    found = history_events(was, [block("Summary of it all", 0), *was[5:], *tail], 0, None)
    assert [(event.cls, event.intended) for event in found] == [("compaction", True)]


@given(words)
def test_another_conversation_a_branch_and_a_retry_are_no_faults(texts: list[str]) -> None:
    was = history(texts)
    found = history_events(was, [block("another task", 0, "scratch")], 0, None)
    assert [(event.cls, event.intended) for event in found] == [("new_conversation", True)]
    other = history([*texts[:-1], "another question"])
    assert [e.cls for e in history_events(was, other, 0, None)] == ["branch"]
    back = history_events(was, history(texts[:-2]), 0, None)
    assert [(event.cls, event.intended) for event in back] == [("message_removed", True)]


@given(words)
def test_a_signed_rebuild_is_taken_at_its_word(texts: list[str]) -> None:
    was, now = history(texts), history(["short", *NEW])
    assert classes(was, now, "auto_compaction") == ["compaction"]
    assert classes(was, now, "front_trim") == ["rebuild"]
    assert classes(was, history(texts + NEW), "front_trim") == []


@given(words, words)
def test_an_alignment_covers_both_histories_in_order(a: list[str], b: list[str]) -> None:
    was, now = history(a), history(b)
    i = j = 0
    for tag, i1, i2, j1, j2 in align(was, now).codes:
        assert (i1, j1) == (i, j)
        if tag == "equal":
            assert [x.text for x in was[i1:i2]] == [y.text for y in now[j1:j2]]
        i, j = i2, j2
    assert (i, j) == (len(was), len(now))


def test_thousands_of_equal_messages_end_soon() -> None:
    was = history(["ok"] * 4000)
    now = history(["ok"] * 1999 + ["no"] + ["ok"] * 2002)
    assert classes(was, now)
