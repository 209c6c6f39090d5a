"""Checks whether two answers have their keys in the same order: Go writes a struct's fields as they are declared, and a map's keys sorted.

    python -m conformance.compare.key_order --oracle URL --oracle-token T --server URL --token T [--area AREA]

sends every scenario's requests (of the areas that need no flags, or of the named areas) to a real server and to this one, both fresh and
with `--disable-admission-plugins=ServiceAccount`, and prints each kind of disorder once, then the share of answers in order. Only
recordings of scenarios with `"keyOrder": true` keep the order.
"""

import json
import re
import sys
from collections.abc import Iterator
from typing import Any, Final

from conformance import recordings
from conformance.exchange import HERE, Answer, Client, comparing, run, scenarios
from conformance.free_values import UID

_INDEX: Final = re.compile(r"\[\d+\]")


def disorder(expected: Any, got: Any, path: str = "") -> str:
    """The first place where keys that both have come in another order, or an empty text."""
    if isinstance(expected, dict) and isinstance(got, dict):
        expected = {UID.sub("UID", key): value for key, value in expected.items()}
        got = {UID.sub("UID", key): value for key, value in got.items()}
        wanted, found = [key for key in expected if key in got], [key for key in got if key in expected]
        if wanted != found:
            return f"{path}: {', '.join(wanted)} != {', '.join(found)}"
        return next((text for key in wanted if (text := disorder(expected[key], got[key], f"{path}.{key}"))), "")
    if isinstance(expected, list) and isinstance(got, list):
        pairs = enumerate(zip(expected, got, strict=False))
        return next((text for i, (left, right) in pairs if (text := disorder(left, right, f"{path}[{i}]"))), "")
    return ""


def answer_disorder(expected: Answer, got: Answer) -> str:
    """Returns the `disorder` between the bodies or events of two answers."""
    left, right = ({key: answer.get(key) for key in ("body", "events")} for answer in (expected, got))
    return disorder(left, right)


def _plain_areas() -> Iterator[str]:
    """Yields the areas whose servers need no flags."""
    flagged = json.loads((HERE / "areas.json").read_text())
    yield from dict.fromkeys(area for area, _ in scenarios() if area not in flagged)


def main() -> int:
    parser = comparing(__doc__)
    parser.add_argument("--area", action="append", default=[])
    arguments = parser.parse_args()
    oracle, server = Client(arguments.oracle, arguments.oracle_token), Client(arguments.server, arguments.token)
    seen: set[str] = set()
    total = equal = 0
    for area, path in scenarios(arguments.area or [*_plain_areas()]):
        requests = recordings.scenario(path.read_text())["requests"]
        for request, want, got in zip(requests, run(path, oracle, patient=True), run(path, server), strict=True):
            total += 1
            found = answer_disorder(want, got)
            equal += not found
            kind = _INDEX.sub("[]", found)
            if found and kind not in seen:
                seen.add(kind)
                print(f"{area}/{path.stem}: {request['method']} {request['path'][:100]}\n    {found[:600]}", flush=True)
    print(f"{equal} of {total} answers have their keys in order")
    return 0 if equal == total else 1


if __name__ == "__main__":
    sys.exit(main())
