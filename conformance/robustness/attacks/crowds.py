"""Attacks with many objects, versions and scopes, with hostile tokens of lists and watches, and with compressed and encoded bodies."""

import base64
import gzip
from collections.abc import Callable, Iterator
from functools import partial
from typing import Final
from urllib.parse import quote

from conformance.robustness.attacks.attack import BODY, Attack, Call, Object, encoded, filled, named, posted

_CONFIGMAPS: Final = "/api/v1/namespaces/default/configmaps"
_EVENTS: Final = "/api/v1/namespaces/default/events"
_DEFINITIONS: Final = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
_CRON_JOBS: Final = "/apis/batch/v1/namespaces/default/cronjobs"
_REVIEWS: Final = "/apis/authentication.k8s.io/v1/tokenreviews"
_REQUESTS: Final = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
# Bytes of a request's head, less some.
_LINE: Final = 1024 * 1024 - 16 * 1024
_VERSIONS: Final = 200
_EVENT_COUNT: Final = 2_000
# Seconds in which a watch that nothing happens to ends.
_WATCH: Final = "watch=1&timeoutSeconds=1"


def _token(text: str) -> str:
    return quote(base64.urlsafe_b64encode(text.encode()).decode().rstrip("="))


_QUERIES: Final[dict[str, Callable[[], str]]] = {
    "a revision below zero": lambda: f"{_WATCH}&resourceVersion=-1",
    "a revision of 2^64": lambda: f"{_WATCH}&resourceVersion={1 << 64}",
    "a revision of the future": lambda: f"{_WATCH}&resourceVersion={1 << 62}",
    "a revision that is no number": lambda: f"{_WATCH}&resourceVersion=%00%ff",
    "a revision of 1 MB": lambda: f"{_WATCH}&resourceVersion=" + "9" * _LINE,
    "a field selector of 10^5 terms": lambda: f"{_WATCH}&fieldSelector=" + "a=b," * (_LINE // 4 // 2) + "a=b",
    "a field selector of 10^5 names": lambda: (
        f"{_WATCH}&fieldSelector=" + "metadata.name!=a," * (_LINE // 17) + "metadata.name!=b"
    ),
    "initial events without a match": lambda: f"{_WATCH}&sendInitialEvents=true",
    "a continue token with a watch": lambda: f"{_WATCH}&continue={_token('{}')}",
    "a token of 10^5 levels": lambda: "limit=1&continue=" + _token("[" * 100_000),
    "a token of another place": lambda: (
        "limit=1&continue=" + _token('{"v":"meta.k8s.io/v1","rv":1,"start":"../../secrets/"}')
    ),
    "a token of revision 2^63": lambda: (
        "limit=1&continue=" + _token(f'{{"v":"meta.k8s.io/v1","rv":{1 << 63},"start":"a"}}')
    ),
    "a token with a start of 500 KB": lambda: (
        "limit=1&continue=" + _token('{"v":"meta.k8s.io/v1","rv":1,"start":"' + "a" * 500_000 + '"}')
    ),
}


def _cron_job(schedule: str) -> Object:
    pod = {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
    return named("batch/v1", "CronJob", "cron", spec={"schedule": schedule, "jobTemplate": {"spec": {"template": pod}}})


_SCHEDULES: Final[dict[str, Callable[[], str]]] = {
    "minutes": lambda: ",".join(filled(lambda i: str(i % 60), BODY // 2)) + " * * * *",
    "ranges": lambda: "0-59/1," * 400_000 + "0 * * * *",
    "a step of 1 MB": lambda: "*/" + "9" * 1_000_000 + " * * * *",
    "stars": lambda: "*" * 2_000_000,
    "fields": lambda: "* " * 1_000_000,
    "a time zone of 1 MB": lambda: "TZ=" + "a/" * 500_000 + " * * * * *",
    "every of 1 MB": lambda: "@every " + "1h" * 500_000,
}


def _definition(number: int, versions: int = 1) -> Object:
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    names = {"plural": f"crowds{number}", "kind": f"Crowd{number}", "singular": f"crowd{number}"}
    served = [{"name": f"v{i}", "served": True, "storage": i == 1, "schema": schema} for i in range(1, versions + 1)]
    spec = {"group": "crowds.example.com", "names": names, "scope": "Namespaced", "versions": served}
    return named("apiextensions.k8s.io/v1", "CustomResourceDefinition", f"crowds{number}.crowds.example.com", spec=spec)


def _event(number: int) -> Object:
    involved = {"kind": "Pod", "namespace": "default", "name": f"p{number}"}
    return {
        **named("v1", "Event", f"flood.{number}"),
        "involvedObject": involved,
        "reason": "R",
        "message": "m" * 1_000,
    }


def _gzipped(count: int) -> bytes:
    return gzip.compress(encoded({**named("v1", "ConfigMap", "bomb"), "data": {"k": "v" * count}}))


def _quota() -> Object:
    terms = filled(lambda i: {"scopeName": "PriorityClass", "operator": "In", "values": [f"v{i}"]})
    return named("v1", "ResourceQuota", "scopes", spec={"scopeSelector": {"matchExpressions": terms}})


def _scheduled(schedule: Callable[[], str]) -> Call:
    return posted(f"{_CRON_JOBS}?dryRun=All", lambda: _cron_job(schedule()))


def attacks() -> Iterator[Attack]:
    for name, query in _QUERIES.items():
        yield Attack(f"crowd: watch and list: {name}", Call("GET", f"{_CONFIGMAPS}?{query()}"))
    for name, schedule in _SCHEDULES.items():
        yield Attack(f"crowd: schedule: {name}", _scheduled(schedule))
    groups = {f"Impersonate-Extra-k{i}": "v" for i in range(3_000)}
    yield Attack(
        "crowd: 3,000 headers of impersonation", Call("GET", _CONFIGMAPS, headers={"Impersonate-User": "u", **groups})
    )
    yield Attack("crowd: a review of a token of 1 MB", posted(_REVIEWS, lambda: _review("a." * 500_000)))
    yield Attack("crowd: a review of a token of dots", posted(_REVIEWS, lambda: _review("." * 1_000_000)))
    request = {
        "request": base64.b64encode(b"-----BEGIN CERTIFICATE REQUEST-----\n" * 50_000).decode(),
        "signerName": "a.b/c",
    }
    yield Attack(
        "crowd: a certificate request of 50,000 beginnings",
        posted(_REQUESTS, lambda: named("certificates.k8s.io/v1", "CertificateSigningRequest", "many", spec=request)),
    )
    yield Attack("crowd: scopes of a quota", posted("/api/v1/namespaces/default/resourcequotas", _quota))
    for size in (1_000_000, 1_000_000_000 // 10):
        yield Attack(
            f"crowd: gzip of {size:,} bytes",
            Call("POST", _CONFIGMAPS, partial(_gzipped, size), headers={"Content-Encoding": "gzip"}),
        )
    versions = posted(_DEFINITIONS, lambda: _definition(0, _VERSIONS))
    yield Attack(f"crowd: a definition of {_VERSIONS} versions", versions, after=2.0)
    definitions = tuple(posted(_DEFINITIONS, partial(_definition, i)) for i in range(1, 301))
    accept = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"}
    yield Attack("crowd: discovery of 300 definitions", Call("GET", "/apis", headers=accept), definitions)
    yield Attack("crowd: OpenAPI of 300 definitions", Call("GET", "/openapi/v2"), definitions)
    yield Attack(
        "crowd: OpenAPI v3 of 300 definitions", Call("GET", "/openapi/v3/apis/crowds.example.com/v1"), definitions
    )
    events = tuple(posted(_EVENTS, partial(_event, i)) for i in range(_EVENT_COUNT))
    yield Attack(f"crowd: a list of {_EVENT_COUNT:,} events", Call("GET", _EVENTS), events)
    yield Attack(f"crowd: deletion of {_EVENT_COUNT:,} events", Call("DELETE", _EVENTS), events, 2.0)


def _review(token: str) -> Object:
    return {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenReview", "spec": {"token": token}}
