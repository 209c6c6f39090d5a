"""Random requests to every subresource, sent to a real server and to another one: prints each kind of difference once.

    python -m conformance.compare.subresources --oracle URL --oracle-token T --server URL --token T [--seed N] [--count N]
        [--part PART]

Both servers should be fresh, without controllers, and have `--disable-admission-plugins=ServiceAccount`. Objects of every kind
(minimal_objects.json, rich_objects.json) are made, then their subresources are read, written, patched and applied to with valid and
broken bodies: wrong methods, kinds, names, revisions, missing objects, dry runs, field validation. With `--part` only those whose name
has it in it: status, scale, eviction, binding, log, token, approval, finalize, resize, ephemeralcontainers, connect.
"""

import json
import re
import sys
from collections import Counter
from functools import partial
from typing import Final

from conformance.compare.customresources import comparable
from conformance.compare.ordering import comparable_in_order, disorder
from conformance.exchange import Answer, Client, comparing, difference
from conformance.random.subresources import Generator

# Where a message shows a whole object, quoted.
_IDENTITY: Final = re.compile(r'((?:uid|resourceVersion|creationTimestamp|time)\\+":\\+")[^"\\]+')


def _ordered(answer: Answer) -> Answer:
    """Component statuses come as their probes end; what shows a whole object shows its identity."""
    answer = json.loads(_IDENTITY.sub(r"\1FREE", json.dumps(comparable(answer))))
    body = answer.get("body")
    for rows in ("items", "rows"):
        if isinstance(body, dict) and isinstance(body.get(rows), list):
            body[rows].sort(key=json.dumps)
    return answer


def _message(answer: Answer) -> str:
    body = answer.get("body")
    return str(body.get("message", ""))[:300] if isinstance(body, dict) else str(answer.get("text", ""))[:300]


def main() -> int:
    parser = comparing(__doc__, count=1000)
    parser.add_argument("--part", default="", help="only parts whose name has this in it")
    arguments = parser.parse_args()
    generator = Generator(arguments.seed)
    clients = (Client(arguments.oracle, arguments.oracle_token), Client(arguments.server, arguments.token))
    for request in generator.setup():
        answers = [client.send(request, []) for client in clients]
        if answers[0]["status"] != answers[1]["status"]:
            print(f"setup: {request['path']}: {answers[0]['status']} != {answers[1]['status']} {_message(answers[1])}")
        body = answers[0].get("body")
        if isinstance(body, dict) and answers[0]["status"] == 201:
            generator.kinds[request["path"]] = str(body["kind"])
    equal: Counter[str] = Counter()
    sent: Counter[str] = Counter()
    told: Counter[str] = Counter()
    several = in_order = 0
    for number in range(arguments.count):
        part, request = generator.request(arguments.part)
        expected, got = (client.send(request, []) for client in clients)
        found = difference(_ordered(expected), _ordered(got))
        sent[part] += 1
        equal[part] += not found
        if not found and expected["status"] >= 400 and comparable_in_order(expected, got):
            found = disorder(expected, got, partial(clients[0].send, request, ()))
            several += 1
            in_order += not found
        if found:
            kind = re.sub(r"\d+|\"[^\"]*\"", "N", f"{part} {found}")[:110]
            told[kind] += 1
            if told[kind] == 1:
                print(
                    f"{number} {request['method']} {request['path']} {json.dumps(request.get('body', request.get('text')))[:700]}"
                )
                print(f"    {found[:700]}")
                if expected["status"] != got["status"]:
                    print(f"    {expected['status']} {_message(expected)}\n    {got['status']} {_message(got)}")
    for part in sorted(sent):
        print(f"{part}: {equal[part]} of {sent[part]}")
    print(f"{equal.total()} of {sent.total()} equal, {len(told)} ways to differ")
    print(f"{in_order} of {several} errors with several causes have them in the same order")
    return 0


if __name__ == "__main__":
    sys.exit(main())
