"""What a type checker must say of an `AppendLog`; mypy reads this file, nothing runs it.

A line that ends in `# E: text` must give an error with that text, and no other line may give one.
"""

from __future__ import annotations

from collections.abc import Sequence

from codesmith_lab.zones import AppendLog, RebuildReason, ThreeZoneRequest, TurnScratch
from codesmith_lab.zones.append_log import Message
from codesmith_lab.zones.prefix import PinnedPrefix


def allowed(log: AppendLog, message: Message) -> None:
    log.push(message)
    log.push({"role": "user", "content": "text"})
    log.rebuild(RebuildReason.MANUAL_COMPACTION, [message])
    log.rebuild(RebuildReason.MICRO_COMPACTION, log)
    log.rebuild(RebuildReason.runtime("micro-compact"), iter(log))
    first: Message = log[0]
    some: tuple[Message, ...] = log[1:]
    sequence: Sequence[Message] = log
    wire: bytes = log.message_bytes(0)
    print(first["role"], some, sequence, wire, len(log), message in log, list(reversed(log)))
    print(
        [each["role"] for each in log], log.index(message), log.count(message), sorted(log, key=str)
    )
    ThreeZoneRequest("m", 1, PinnedPrefix(), log, TurnScratch(message))


def forbidden(log: AppendLog, message: Message) -> None:
    log.insert(0, message)  # E: "AppendLog" has no attribute "insert"
    log.remove(message)  # E: "AppendLog" has no attribute "remove"
    log.truncate(1)  # E: "AppendLog" has no attribute "truncate"
    log.pop()  # E: "AppendLog" has no attribute "pop"
    log.append(message)  # E: "AppendLog" has no attribute "append"
    log.extend([message])  # E: "AppendLog" has no attribute "extend"
    log.clear()  # E: "AppendLog" has no attribute "clear"
    log.sort()  # E: "AppendLog" has no attribute "sort"
    log.reverse()  # E: "AppendLog" has no attribute "reverse"
    log[0] = message  # E: Unsupported target for indexed assignment ("AppendLog")
    log[0:1] = [message]  # E: Unsupported target for indexed assignment ("AppendLog")
    del log[0]  # E: "AppendLog" has no attribute "__delitem__"
    del log[:]  # E: "AppendLog" has no attribute "__delitem__"
    log += [message]  # E: Unsupported left operand type for + ("AppendLog")
    log.messages = []  # E: "AppendLog" has no attribute "messages"
    log.records = ()  # E: Property "records" defined in "AppendLog" is read-only


def forbidden_repetition(log: AppendLog) -> None:
    log *= 2  # E: Unsupported operand types for * ("AppendLog" and "int")


def forbidden_on_messages(log: AppendLog) -> None:
    some = log[:]
    log[0]["role"] = "user"  # E: Unsupported target for indexed assignment
    del log[0]["role"]  # E: "Mapping[str, Any]" has no attribute "__delitem__"
    log[0].update(role="user")  # E: "Mapping[str, Any]" has no attribute "update"
    some[0] = log[0]  # E: Unsupported target for indexed assignment


def forbidden_elsewhere(log: AppendLog, message: Message) -> None:
    prefix = PinnedPrefix()
    log.rebuild("purge", [message])  # E: expected "RebuildReason"
    log.rebuild([message])  # E: Missing positional argument "messages"
    ThreeZoneRequest("m", 1, prefix, [message])  # E: expected "AppendLog"
    ThreeZoneRequest("m", 1, prefix, log, [message])  # E: expected "TurnScratch"


class Loophole(AppendLog):  # E: Cannot inherit from final class "AppendLog"
    pass
