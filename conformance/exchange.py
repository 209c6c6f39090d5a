"""Runs scenarios: sends their requests in order, and compares two servers' answers.

A scenario is a JSON file in `scenarios/<area>/`:
`{"requests": [{"method", "path", "body" | "text", "type", "accept", "token", "headers"}]}`.
`repeat` repeats a text, `pad` is how many x stand for PADDING in it, `wait` delays the request by this many seconds where a
server needs time (only while recording). `until` is a text that the answer must have: the request is sent again until it does, some seconds
at most. `${N.metadata.uid}` stands for a value of the Nth answer of the same run, so that later
requests can use it. Its recording in `exchanges/<area>/` has the same name and holds the answers:
`{"status", "type", "warnings", "headers", "body" | "text"}`; headers are those that matter to caches, browsers and clients,
where they are not what every answer has.
`show`, `digest` and `metrics` ask for the summaries that `summary.py` describes; `${N.headers.ETag}` is a shown header.
Protobuf is written in the form of `wire.py`: `"protobuf"` in requests and answers, `"frames"` for a watch's. `"protobufOf": N` sends
back the Nth answer. `"cbor"` is a body in the notation of `cbor.py`; answers in CBOR are bodies and events like JSON's.
A scenario that names `${aggregated}` has an aggregated API server while it runs (`aggregated.py`).
A scenario that names `${webhook}` has a conversion webhook while it runs (`webhook.py`); `fault` in a request makes all
answers of the webhook or aggregated server faulty from then on, in the way that it names, and "" correct again.
`"state"` and `"faults"` in a request bring the servers into another state (`server_states.py`).
A scenario with `"keyOrder": true` is recorded with the keys of its answers in their order, which is compared as well.
A scenario with `"audit": true` keeps the audit events of each request (`audit_log.py`).
Rows that are like another one are written as the difference (`recordings.py`), in scenarios and in recordings.
An area whose servers need flags has them in `areas.json`; where these name files, `credentials.py` creates them and describes the
tokens and certificates that a scenario may name.
"""

import argparse
import base64
import gzip
import http.client
import json
import re
import ssl
import time
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import urlsplit

from conformance import cbor, recordings, wire
from conformance.free_values import FREE_KEYS, UID, plain
from conformance.players.audit_log import AuditLog
from conformance.players.credentials import Credentials
from conformance.players.server_states import InjectedFaults, ServerStates
from conformance.summary import summarized

if TYPE_CHECKING:
    from conformance.players.aggregated import Aggregated
    from conformance.players.webhook import Webhook

    Other = Aggregated | Webhook

HERE: Final = Path(__file__).parent
Answer = dict[str, Any]

_REFERENCE: Final = re.compile(r"\$\{(\d+)((?:\.[\w-]+)+)\}")
_TOKEN: Final = re.compile(r"\$\{token(64)?\.([\w -]+)\}")
_PADDING: Final = re.compile("x{1000,}")
_CHOSEN: Final = re.compile(r"((?:resourceVersion|continue)=)[^&]*")
_REASON: Final = "authorization.k8s.io/reason"
_ALLOWED: Final = "RBAC: allowed by "
_FREE_HEADERS: Final = (
    "ETag",
    "Last-Modified",
    "X-Kubernetes-Pf-Flowschema-Uid",
    "X-Kubernetes-Pf-Prioritylevel-Uid",
)
_TOLD_HEADERS: Final = (
    "Allow",
    "Cache-Control",
    "Content-Encoding",
    "Location",
    "Vary",
    "X-Content-Type-Options",
    *_FREE_HEADERS,
)
_USUAL_HEADERS: Final = {
    "Cache-Control": "no-cache, private",
    "X-Kubernetes-Pf-Flowschema-Uid": "*",
    "X-Kubernetes-Pf-Prioritylevel-Uid": "*",
}


@dataclass(slots=True)
class Client:
    """A client of a server, with a connection for each certificate that it presents. TLS is not verified: the servers are on loopback.
    `log` is the server's audit log, from which every scenario's events are read. `states` brings the server into the states that requests
    name.
    """

    url: str
    token: str
    credentials: Credentials | None = None
    log: Path | None = None
    states: ServerStates | None = None
    _connections: dict[str, http.client.HTTPSConnection] = field(default_factory=dict)

    def send(self, request: Mapping[str, Any], answers: Sequence[Answer]) -> Answer:
        """The answer in the form that is recorded. OSError when the server can't be reached."""
        headers = {"Accept": request.get("accept", "application/json"), "User-Agent": "conformance/1"}
        headers |= {name: _filled(value, answers) for name, value in request.get("headers", {}).items()}
        token = request.get("token", self.token)
        if token:
            headers["Authorization"] = f"Bearer {token}"
        data = _body(request, answers)
        if data is not None:
            headers["Content-Type"] = request.get("type", _usual_type(request))
        path = _filled(request["path"], answers)
        certificate = request.get("certificate", "")
        try:
            return self._exchange(request, path, data, headers)
        except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError):
            # The server has closed the kept connection, as it may after any answer.
            self._connections.pop(certificate, None)
        try:
            return self._exchange(request, path, data, headers)
        except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError):
            self._connections.pop(certificate, None)
            raise

    def audit_log(self, scenario: Mapping[str, Any]) -> AuditLog | None:
        """Returns the audit log if the scenario's events are compared, or None."""
        if self.log is not None:
            return AuditLog(self.log)
        if not scenario.get("audit"):
            return None
        assert self.credentials is not None, "an audited scenario's area needs a folder"
        return AuditLog(self.credentials.folder / "audit.log")

    def _exchange(self, request: Mapping[str, Any], path: str, data: bytes | None, headers: dict[str, str]) -> Answer:
        certificate = request.get("certificate", "")
        connection = self._connections.get(certificate)
        if connection is None:
            context = ssl._create_unverified_context()
            if certificate:
                context.load_cert_chain(certificate)
            connection = http.client.HTTPSConnection(urlsplit(self.url).netloc, context=context, timeout=120)
            self._connections[certificate] = connection
        connection.request(request["method"], path, data, headers)
        response = connection.getresponse()
        content = response.read()
        return summarized(request, _recorded(response, content), response.headers, content)

    def presenting(
        self, request: Mapping[str, Any], scenario: Mapping[str, Any], answers: Sequence[Answer]
    ) -> Mapping[str, Any]:
        """The request with the tokens and the certificate that it names, signed when they are needed."""

        def token(match: re.Match[str]) -> str:
            assert self.credentials is not None, "this area needs a folder of credentials"
            made = self.credentials.token(json.loads(_filled(json.dumps(scenario["tokens"][match[2]]), answers)))
            return base64.urlsafe_b64encode(made.encode()).rstrip(b"=").decode() if match[1] else made

        if "tokens" in scenario:
            request = json.loads(_TOKEN.sub(token, json.dumps(request)))
        if name := request.get("certificate"):
            assert self.credentials is not None, "this area needs a folder of credentials"
            request = {
                **request,
                "certificate": str(self.credentials.certificate(name, scenario["certificates"][name])),
            }
        return request


def _usual_type(request: Mapping[str, Any]) -> str:
    if "protobuf" in request or "protobufOf" in request:
        return wire.MEDIA_TYPE
    return cbor.MEDIA_TYPE if "cbor" in request else "application/json"


def _body(request: Mapping[str, Any], answers: Sequence[Answer]) -> bytes | None:
    if "protobuf" in request:
        return wire.encoded(request["protobuf"])
    if "protobufOf" in request:
        return wire.encoded(answers[request["protobufOf"]].get("protobuf", []))
    if "cbor" in request:
        return cbor.encoded(json.loads(_filled(json.dumps(request["cbor"]), answers)))
    if "text" in request:
        text = str(request["text"]) * int(request.get("repeat", 1))
        text = text.replace("PADDING", "x" * int(request["pad"])) if "pad" in request else text
        return str(_filled(text, answers)).encode()
    return str(_filled(json.dumps(request["body"]), answers)).encode() if "body" in request else None


def _filled(text: Any, answers: Sequence[Answer]) -> Any:
    """With every `${N.path}` replaced by the value of the Nth answer's body."""

    def value(match: re.Match[str]) -> str:
        parts = match[2].strip(".").split(".")
        answer = answers[int(match[1])]
        found: Any = answer if parts[0] == "headers" else answer.get("body")
        for part in parts:
            found = found.get(part, "") if isinstance(found, dict) else ""
        return str(found)

    return _REFERENCE.sub(value, text) if text else text


def _recorded(response: http.client.HTTPResponse, data: bytes) -> Answer:
    kind = response.headers.get("Content-Type", "")
    answer: Answer = {"status": response.status, "type": kind.partition(";")[0]}
    if warnings := response.headers.get_all("Warning"):
        answer["warnings"] = warnings
    if retry := response.headers.get("Retry-After"):
        answer["retryAfter"] = retry
    answer["headers"] = _told(response)
    if response.headers.get("Content-Encoding") == "gzip":
        data = gzip.decompress(data)
    if answer["type"] == wire.MEDIA_TYPE and "stream=watch" in kind:
        return {**answer, "frames": wire.decoded_frames(data)}
    if answer["type"] == wire.MEDIA_TYPE and data:  # HEAD has none
        return {**answer, "protobuf": wire.decoded(data)}
    if answer["type"] == cbor.MEDIA_TYPE:
        return {**answer, "body": cbor.decoded(data)}
    if answer["type"] == cbor.SEQUENCE:
        return {**answer, "events": cbor.decoded_events(data)}
    text = _PADDING.sub(lambda match: f"({len(match[0])} x)", data.decode(errors="replace"))
    try:
        answer["body"] = json.loads(text)
    except ValueError:
        try:
            answer["events"] = [json.loads(line) for line in text.splitlines()]
        except ValueError:
            answer["text"] = text
    return answer


def _told(response: http.client.HTTPResponse) -> dict[str, str | None]:
    """Headers that differ from the usual ones; null for a usual one that is missing."""
    told: dict[str, str | None] = {}
    for name in _TOLD_HEADERS:
        value = response.headers.get(name)
        if value is not None and name in _FREE_HEADERS:
            value = "*"
        if value != _USUAL_HEADERS.get(name):
            told[name] = value
    return told


def comparing(description: str | None, **presets: int) -> argparse.ArgumentParser:
    """The arguments of a command that compares two servers: where they are, the seed, and whole numbers with their presets."""
    parser = argparse.ArgumentParser(description=description, formatter_class=argparse.RawDescriptionHelpFormatter)
    for name in ("--oracle", "--oracle-token", "--server", "--token"):
        parser.add_argument(name, required=True)
    for name, preset in {"seed": 0, **presets}.items():
        parser.add_argument(f"--{name}", type=int, default=preset)
    return parser


def message_of(answer: Answer) -> str:
    """The beginning of a Status' message; nothing for other answers."""
    body = answer.get("body")
    return str(body.get("message", ""))[:400] if isinstance(body, dict) else ""


def scenarios(areas: Sequence[str] = ()) -> Iterator[tuple[str, Path]]:
    """(area, file) of every scenario, in order."""
    for path in sorted((HERE / "scenarios").glob("*/*.json")):
        if not areas or path.parent.name in areas:
            yield path.parent.name, path


def run(path: Path, client: Client, *, patient: bool = False) -> list[Answer]:
    """Sends a scenario's requests in order; `patient` waits as their `wait` says."""
    scenario = recordings.scenario(path.read_text())
    text = json.dumps(scenario)  # in full: common values have placeholders, too
    if "${aggregated}" in text:
        from conformance.players.aggregated import Aggregated

        with Aggregated() as aggregated:
            answers = _run(json.loads(aggregated.filled(text)), client, aggregated, patient=patient)
            return [json.loads(aggregated.hidden(json.dumps(answer))) for answer in answers]
    if "${webhook}" not in text:
        return _run(scenario, client, None, patient=patient)
    from conformance.players.webhook import Webhook

    with Webhook() as webhook:
        answers = _run(json.loads(webhook.filled(text)), client, webhook, patient=patient)
        return [json.loads(webhook.hidden(json.dumps(answer))) for answer in answers]


def run_requests(requests: Sequence[Mapping[str, Any]], client: Client) -> list[Answer]:
    """Sends the requests as those of a scenario."""
    return _run({"requests": requests}, client, None, patient=False)


def _run(scenario: Mapping[str, Any], client: Client, other: "Other | None", *, patient: bool) -> list[Answer]:
    """`other`: the webhook or aggregated API server that the scenario names."""
    states = client.states or InjectedFaults(client.url, client.token)
    try:
        return _run_in(states, scenario, client, other, patient=patient)
    finally:
        if any(request.get("state") for request in scenario["requests"]):
            states.enter("", ())


def _run_in(
    states: ServerStates, scenario: Mapping[str, Any], client: Client, other: "Other | None", *, patient: bool
) -> list[Answer]:
    answers: list[Answer] = []
    audit = client.audit_log(scenario)
    audit_ids: list[str] = []
    for request in scenario["requests"]:
        if patient:
            time.sleep(request.get("wait", 0))
        if other is not None and "fault" in request:
            other.suffer(request["fault"])
        if "state" in request:
            states.enter(request["state"], request.get("faults", ()))
        presenting = states.presented(client.presenting(request, scenario, answers))
        if audit is not None:
            audit_ids.append(str(uuid.uuid4()))
            presenting = {**presenting, "headers": {**presenting.get("headers", {}), "Audit-Id": audit_ids[-1]}}
        seconds = request.get("lasts", 0)
        with states.lasting(seconds) if seconds else nullcontext():
            answers.append(_awaited(presenting, client, answers, 4.0 * seconds + (40.0 if patient else 20.0)))
    if audit is not None:
        for answer, events in zip(answers, audit.events(audit_ids), strict=True):
            answer["audit"] = events
    return answers


def _awaited(request: Mapping[str, Any], client: Client, answers: list[Answer], seconds: float) -> Answer:
    """The first answer that has what the request's `until` asks for, or the last one in this time. Until then the server may also drop
    connections, as it does by chance at a read's time-out."""
    end = time.monotonic() + seconds
    while True:
        is_last = "until" not in request or time.monotonic() >= end
        try:
            answer = client.send(request, answers)
        except (http.client.RemoteDisconnected, ConnectionError, ssl.SSLEOFError):
            if is_last:
                raise
        else:
            if is_last or request["until"] in json.dumps(answer):
                return answer
        time.sleep(0.02)


def recording_of(path: Path) -> Path:
    return HERE / "exchanges" / path.parent.name / path.name


def recorded(path: Path) -> list[Answer]:
    """Returns the recorded answers to a scenario's requests, in full."""
    return recordings.read(recording_of(path), recordings.scenario(path.read_text())["requests"])


# ---------------------------------------------------------------- comparing


def difference(expected: Answer, got: Answer, *, free: frozenset[str] = FREE_KEYS) -> str:
    """The first place where two answers differ, or an empty text. What servers choose freely is not compared."""
    expected, got = _unordered(expected), _unordered(got)
    for key in sorted(expected.keys() | got.keys()):
        if key == "headers" and key not in expected:
            continue  # recorded before headers were
        if found := _compare(_neutral(expected.get(key), key), _neutral(got.get(key), key), key, free):
            return found
    return ""


def _neutral(value: Any, key: str) -> Any:
    if key == "frames" and isinstance(value, list):
        return [{**frame, "object": wire.plain(frame["object"])} for frame in value]
    return wire.plain(value) if key == "protobuf" else value


def _unordered(answer: Answer) -> Answer:
    """The answer without the orders that a real server leaves to chance: that of Go's maps, and of writes within a second."""
    if "audit" in answer:
        answer = {**answer, "audit": [_unordered_event(event) for event in answer["audit"]]}
    body = answer.get("body")
    if not isinstance(body, dict):
        return answer
    if body.get("kind") == "Status":
        return {**answer, "body": _unordered_status(body)}
    meta = body.get("metadata")
    if not isinstance(meta, dict) or not isinstance(meta.get("managedFields"), list):
        return answer
    keys = ("operation", "manager", "apiVersion", "subresource")
    entries = sorted(meta["managedFields"], key=lambda entry: [str(entry.get(key)) for key in keys])
    return {**answer, "body": {**body, "metadata": {**meta, "managedFields": entries}}}


def _unordered_event(event: Answer) -> Answer:
    """Returns an audit event without what is random: if several bindings allow a request, RBAC names the first that it finds."""
    shown = {**event, **_unordered({"body": event.get("responseObject")})}
    shown["requestURI"] = _CHOSEN.sub(r"\1", event["requestURI"])
    annotations = dict(event.get("annotations") or {})
    if annotations.get(_REASON, "").startswith(_ALLOWED):
        annotations[_REASON] = _ALLOWED
    status = _unordered_status(event["responseStatus"]) if "responseStatus" in event else None
    return {**shown, "responseObject": None, "responseStatus": status, "annotations": annotations}


def _unordered_status(status: Any) -> Any:
    """Conflicts with several managers, and errors about several fields of a map."""
    causes = (status.get("details") or {}).get("causes")
    if causes and causes[0].get("reason") == "FieldManagerConflict":
        ordered = sorted(causes, key=lambda cause: (cause["message"], cause["field"]))
        status = {**status, "details": {**status["details"], "causes": ordered}}
    if "typed patch object" in status.get("message", ""):
        status = {**status, "message": sorted(status["message"].split("\n"))}
    return status


def _compare(expected: Any, got: Any, path: str, free: frozenset[str]) -> str:
    if isinstance(expected, dict) and isinstance(got, dict):
        expected, got = _without_uids(expected), _without_uids(got)
        for key in sorted(expected.keys() | got.keys()):
            if key in free and bool(expected.get(key)) == bool(got.get(key)):
                continue
            if key == "description":
                continue  # prose is not recorded
            if found := _compare(expected.get(key), got.get(key), f"{path}.{key}", free):
                return found
        return ""
    if isinstance(expected, list) and isinstance(got, list):
        if len(expected) != len(got):
            return f"{path}: {len(expected)} items, got {len(got)}: {_short(expected)} != {_short(got)}"
        for i, (left, right) in enumerate(zip(expected, got, strict=True)):
            if found := _compare(left, right, f"{path}[{i}]", free):
                return found
        return ""
    if type(expected) is type(got) and plain(expected) == plain(got):
        return ""
    return f"{path}: {_short(expected)} != {_short(got)}"


def _without_uids(fields: Answer) -> Answer:
    """Owners stand in managed fields by their uid."""
    return {UID.sub("UID", key) if key.startswith("k:") else key: value for key, value in fields.items()}


def _short(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= 300 else text[:300] + "…"
