"""Random writes that built-in admission plugins judge, sent to a real server and to another one: prints what differs.

    python -m conformance.compare.access.admission --oracle URL --oracle-token T --server URL --token T
        [--topics LimitRanger,ResourceQuota] [--seed N] [--rounds N] [--count N]

Both servers should be fresh and started with the same flags. Each round of a topic (conformance/random/admission.py) makes a new
namespace with its settings, waits until the real server's informers have seen them, and sends `count` random requests.
"""

import random
import re
import sys
import time
from typing import Any, Final

from conformance.compare.requests import Report
from conformance.exchange import Answer, Client, comparing
from conformance.random.admission import TOPICS
from conformance.random.topics.topic import Topic

_SEEN: Final = 0.5  # seconds
# Go walks its maps in no order: a list of complaints is compared as a set.
_LIST: Final = re.compile(r"is forbidden: \[(.*)\]$")


def sorted_complaints(answer: Answer) -> Answer:
    body = answer.get("body")
    if not isinstance(body, dict) or body.get("kind") != "Status":
        return answer
    found = _LIST.search(body.get("message", ""))
    if found is None:
        return answer
    ordered = ", ".join(sorted(re.split(r", (?=min|max|[\w/.-]+ max)", found[1])))
    message = body["message"][: found.start(1)] + ordered + "]"
    return {**answer, "body": {**body, "message": message}}


def run_round(clients: tuple[Client, Client], topic: Topic, label: str, count: int, report: Report) -> None:
    def both(request: dict[str, Any], where: str) -> None:
        answers: list[Answer] = []
        for client in clients:
            answer = client.send(request, [])
            answers.append(sorted_complaints(answer))
        report.judge(where, request, *answers)

    for number, request in enumerate(topic.setup()):
        both(request, f"{label} setup {number}")
    time.sleep(_SEEN)
    for number in range(count):
        time.sleep(topic.pause)
        both(topic.request(), f"{label} {number}")
    for request in topic.cleanup():
        for client in clients:
            client.send(request, [])


def main() -> int:
    parser = comparing(__doc__, rounds=5, count=60)
    parser.add_argument("--topics", default=",".join(TOPICS), help=f"of {', '.join(TOPICS)}")
    arguments = parser.parse_args()
    clients = Client(arguments.oracle, arguments.oracle_token), Client(arguments.server, arguments.token)
    for name in arguments.topics.split(","):
        report = Report()
        for number in range(arguments.rounds):
            label = f"{name} {arguments.seed}/{number}"
            topic = TOPICS[name](random.Random(label), f"da-{name.lower()}-{arguments.seed}-{number}")
            run_round(clients, topic, label, arguments.count, report)
        print(f"{name}: {report.summary()}", flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
