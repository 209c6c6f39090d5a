"""Compares the order of two servers' causes and warnings, as far as upstream has an order: it iterates over Go's maps (labels, limits,
data) in random order.

Where the orders differ, the same request is sent to the real server again, to find what is random: only causes that always precede others
there must precede them here too.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from conformance.exchange import Answer
from conformance.free_values import plain

# Two entries of one of Go's small maps change places in one of eight walks.
_ASKED: Final = 50


def ordered(answer: Answer) -> list[str]:
    """An answer's warnings, and its causes, in order, without identities and times; equal ones are numbered."""
    body = answer.get("body")
    details = (body.get("details") or {}) if isinstance(body, dict) and body.get("kind") == "Status" else {}
    causes: Sequence[Mapping[str, Any]] = details.get("causes") or ()
    lines = [f"{row.get('field', '')}: {row.get('reason', '')}: {plain(row.get('message', ''))}" for row in causes]
    lines = [*(f"warning: {plain(text)}" for text in answer.get("warnings", ())), *lines]
    return [f"{line} ({lines[:at].count(line)})" if line in lines[:at] else line for at, line in enumerate(lines)]


def comparable_in_order(expected: Answer, got: Answer) -> bool:
    """Reports whether both answers have the same causes and warnings, and more than one."""
    wanted = ordered(expected)
    return len(wanted) > 1 and sorted(wanted) == sorted(ordered(got))


def disorder(expected: Answer, got: Answer, again: Callable[[], Answer]) -> str:
    """The first place where the order of two answers with the same causes and warnings differs, or an empty text. `again` has the
    real server's answer to the same request once more."""
    wanted, found = ordered(expected), ordered(got)
    if wanted == found:
        texts = [plain(str(answer["body"].get("message", ""))) for answer in (expected, got) if _is_status(answer)]
        return "" if len(set(texts)) < 2 else f"the message is {texts[0]!r} != {texts[1]!r}"
    seen = [wanted]
    while found not in seen and len(seen) < _ASKED:
        seen.append(ordered(again()))
    if found in seen:
        return ""
    places = [{line: at for at, line in enumerate(lines)} for lines in seen]
    for at, later in enumerate(found):
        for earlier in found[:at]:
            if all(place.get(later, 0) < place.get(earlier, 0) for place in places):
                return f"{json.dumps(later)} comes before {json.dumps(earlier)} there, and after it here"
    return ""


def _is_status(answer: Answer) -> bool:
    return isinstance(answer.get("body"), dict) and answer["body"].get("kind") == "Status"
