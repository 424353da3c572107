"""HTTP exchanges as proxies and test recorders keep them."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

from .anthropic import claude_body, claude_response, claude_stream
from .openai import chat_body, chat_response
from .plot import iso, time_of


def har() -> dict[str, Any]:
    page = {
        "startedDateTime": iso(0),
        "request": {"method": "GET", "url": "https://harbour.example/", "headers": []},
        "response": {"status": 200, "content": {"mimeType": "text/html", "text": "<p>"}},
    }
    entries = [page]
    for turn in range(3):
        packed = turn == 1
        text = claude_stream(turn)
        content = base64.b64encode(text.encode()).decode() if packed else text
        key = [{"name": "X-Api-Key", "value": "sk-secret"}]
        url = "https://api.anthropic.com/v1/messages"
        sent = json.dumps(claude_body(turn), ensure_ascii=False)
        entries.append(
            {
                "startedDateTime": iso(turn),
                "request": {
                    "method": "POST",
                    "url": url,
                    "headers": key,
                    "postData": {"text": sent},
                },
                "response": {
                    "status": 200,
                    "content": {"text": content, **({"encoding": "base64"} if packed else {})},
                },
            }
        )
    return {"log": {"version": "1.2", "creator": {"name": "made"}, "entries": entries}}


def quoted(text: str) -> str:
    return json.dumps(text)


def vcr() -> bytes:
    """vcrpy's YAML: strings quoted, one body folded over lines, one packed."""
    text = "interactions:\n"
    for turn in range(3):
        sent = json.dumps(chat_body(turn), ensure_ascii=False)
        came = json.dumps(chat_response(turn))
        packed = base64.b64encode(gzip.compress(came.encode(), mtime=0)).decode()
        text += "- request:\n"
        text += f"    body: {quoted(sent)}\n"
        text += "    headers:\n      authorization:\n      - Bearer sk-secret\n"
        text += "    method: POST\n    uri: https://api.openai.com/v1/chat/completions\n"
        text += "  response:\n    body:\n"
        if turn == 1:
            text += f"      string: !!binary |\n        {packed}\n"
            text += "    headers:\n      Content-Encoding:\n      - gzip\n"
        else:
            text += f"      string: {quoted(came)}\n    headers:\n"
        when = time_of(turn).strftime("%a, %d %b %Y %H:%M:%S GMT")
        text += f"      Date:\n      - {when}\n    status:\n      code: 200\n      message: OK\n"
    return (text + "version: 1\n").encode()


def vcr_parsed() -> bytes:
    """A cassette that holds bodies parsed, and says what repeats by anchors."""
    text = "interactions:\n"
    for turn in range(3):
        tools = "&tools" if turn == 0 else "*tools"
        body = chat_body(turn)
        defined = "\n" + indented(body.pop("tools"), 8) if turn == 0 else ""
        text += (
            "- request:\n    method: POST\n    uri: https://api.openai.com/v1/chat/completions\n"
        )
        text += f"    parsed_body:\n{indented(body, 6)}\n      tools: {tools}{defined}\n"
        text += f"  response:\n    parsed_body:\n{indented(chat_response(turn), 6)}\n"
        text += (
            f"    status: {{code: 200}}\n  recorded_at: {time_of(turn):%a, %d %b %Y %H:%M:%S} GMT\n"
        )
    return text.encode()


def indented(value: Any, depth: int) -> str:
    if isinstance(value, dict):
        # JSON is YAML, but a block shows that both are read.
        return "\n".join(
            f"{' ' * depth}{quoted(key)}: {json.dumps(item)}" for key, item in value.items()
        )
    return " " * depth + json.dumps(value)


def ruby_vcr() -> dict[str, Any]:
    return {
        "http_interactions": [
            {
                "request": {
                    "method": "post",
                    "uri": "https://api.anthropic.com/v1/messages",
                    "body": {"encoding": "UTF-8", "string": json.dumps(claude_body(turn))},
                    "headers": {"X-Api-Key": ["<KEY>"]},
                },
                "response": {
                    "status": {"code": 200, "message": "OK"},
                    "headers": {},
                    "body": {"encoding": "UTF-8", "string": json.dumps(claude_response(turn))},
                },
                "recorded_at": f"{time_of(turn):%a, %d %b %Y %H:%M:%S} GMT",
            }
            for turn in range(3)
        ],
        "recorded_with": "VCR 6.0.0",
    }
