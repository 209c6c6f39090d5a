"""Random ways to say how a definition's versions are converted, valid and not, created and changed on both servers.

    python -m conformance.compare.conversions --oracle URL --oracle-token T --server URL --token T [--seed N] [--definitions N]

Each is tried out as a creation, and as a merge patch of a definition that is there already. Prints each kind of difference
once. The group is `conversions.example.com`.
"""

import base64
import copy
import random
import sys
from typing import Any, Final

from conformance.compare.customresources import DEFINITIONS, Differences, Request
from conformance.exchange import Client, comparing

_STRATEGIES: Final = ("None", "Webhook", "Webhook", "Webhook", "Webhook", "webhook", "", None, 5)
_REVIEWS: Final[tuple[Any, ...]] = (
    ["v1"],
    ["v1"],
    ["v1", "v1beta1"],
    ["v1beta1"],
    ["v2", "v1"],
    ["v2"],
    ["v1", "v1"],
    ["V1"],
    ["not a version", "v1"],
    ["", "v1"],
    ["-v1", "v1_1", "v1"],
    [],
    None,
    "v1",
    [1],
)
_URLS: Final = (
    "https://example.com",
    "https://example.com/convert",
    "https://127.0.0.1:9443/convert",
    "https://[::1]:9443/",
    "http://example.com",
    "ftp://example.com",
    "https://",
    "https:///convert",
    "https:example.com",
    "//example.com",
    "example.com",
    "https://user:password@example.com/",
    "https://user@example.com/",
    "https://example.com/?a=b",
    "https://example.com/#part",
    "https://example.com/?a=b#part",
    "https://example.com:port/",
    "https://example.com:99999/",
    "https://exa mple.com/",
    "https://example.com/a b",
    "https://example.com/%zz",
    "http://user@example.com/?a#b",
    "https://\u00e9xample.com/",
    "%",
    " https://example.com",
    "",
    None,
    7,
)
_NAMES: Final = ("hook", "hook", "hook", "Hook", "a.b", "", "-", "x" * 64, None, 3)
_PATHS: Final = (
    "/convert",
    "/",
    "/a/b-c/d",
    "",
    "convert",
    "//",
    "/a//b",
    "/a/",
    "/a b",
    "/A",
    "/a_b/-",
    "/a?b=c",
    "/" + "x" * 64,
    "/a/../b",
    "/\u00e9",
    "a//B/",
    None,
    1,
)
_PORTS: Final = (443, 8443, 1, 65535, 0, -1, 65536, 2**31, "443", 1.5, None)
_CERTIFICATES: Final = (
    "",
    "not base64!",
    base64.b64encode(b"no certificate").decode(),
    base64.b64encode(b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n").decode(),
    base64.b64encode(b"-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n").decode(),
    base64.b64encode(b"-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n").decode(),
    base64.b64encode(b"-----BEGIN CERTIFICATE-----\nnot base64!\n-----END CERTIFICATE-----\n").decode(),
    "Cg==",
    None,
    5,
)


class Conversions:
    """Definitions out of one random source."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, *values: Any) -> Any:
        return copy.deepcopy(self._random.choice(values))

    def chance(self, share: float) -> bool:
        return self._random.random() < share

    def definition(self, plural: str, conversion: Any) -> dict[str, Any]:
        """With versions v1 and v2; `conversion` is left out where it is `...`."""
        schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
        versions = [
            {"name": name, "served": True, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}}
            for name in ("v1", "v2")
        ]
        group, kind = "conversions.example.com", plural.capitalize()
        spec: dict[str, Any] = {"group": group, "scope": "Namespaced", "versions": versions}
        spec["names"] = {"plural": plural, "kind": kind}
        if conversion is not ...:
            spec["conversion"] = conversion
        return {
            "apiVersion": "apiextensions.k8s.io/v1",
            "kind": "CustomResourceDefinition",
            "metadata": {"name": f"{plural}.{group}"},
            "spec": spec,
        }

    def conversion(self) -> Any:
        if self.chance(0.04):
            return self.pick(None, {}, [], "None", ...)
        found = {"strategy": self.pick(*_STRATEGIES)} if self.chance(0.97) else {}
        if self.chance(0.9 if found.get("strategy") == "Webhook" else 0.3):
            found["webhook"] = self._webhook()
        if self.chance(0.05):
            found |= self.pick(
                {"webhookClientConfig": {"url": "https://example.com"}},
                {"conversionReviewVersions": ["v1"]},
                {"noSuchField": 1},
            )
        return found

    def _webhook(self) -> Any:
        if self.chance(0.04):
            return self.pick(None, {}, [], "x")
        found: dict[str, Any] = {}
        if self.chance(0.93):
            found["conversionReviewVersions"] = self.pick(["v1"], self.pick(*_REVIEWS))
        if self.chance(0.95):
            found["clientConfig"] = self._client()
        return found

    def _client(self) -> Any:
        if self.chance(0.04):
            return self.pick(None, {}, [], "x")
        found: dict[str, Any] = {}
        form = self.pick("url", "url", "service", "service", "both", "neither")
        if form in ("url", "both"):
            found["url"] = self.pick(*_URLS)
        if form in ("service", "both"):
            found["service"] = self._service()
        if self.chance(0.3):
            found["caBundle"] = self.pick(*_CERTIFICATES)
        return found

    def _service(self) -> Any:
        if self.chance(0.04):
            return self.pick(None, {}, [], "x")
        values = (("namespace", _NAMES, 0.95), ("name", _NAMES, 0.95), ("path", _PATHS, 0.6), ("port", _PORTS, 0.5))
        return {key: self.pick(*found) for key, found, share in values if self.chance(share)}


def main() -> int:
    arguments = comparing(__doc__, definitions=300).parse_args()
    clients = Client(arguments.oracle, arguments.oracle_token), Client(arguments.server, arguments.token)
    source, differences = Conversions(arguments.seed), Differences()

    def send(label: str, request: Request) -> None:
        expected, got = (client.send(request, []) for client in clients)
        differences.compare(label, request, expected, got)

    places = []
    for plural, conversion in (("olds", {"strategy": "None"}), ("hooks", _valid())):
        body = source.definition(plural, conversion)
        places.append((plural, f"{DEFINITIONS}/{body['metadata']['name']}"))
        for client in clients:
            client.send({"method": "POST", "path": DEFINITIONS, "body": body}, [])
    for number in range(arguments.definitions):
        conversion, strict = source.conversion(), source.pick("", "", "&fieldValidation=Strict")
        created = source.definition("news", conversion)
        send(f"creation {number}", {"method": "POST", "path": f"{DEFINITIONS}?dryRun=All{strict}", "body": created})
        plural, place = source.pick(*places)
        changed = {} if conversion is ... else {"conversion": conversion}
        patch = {"method": "PATCH", "type": "application/merge-patch+json", "body": {"spec": changed}}
        send(f"patch {number}", {**patch, "path": f"{place}?dryRun=All{strict}"})
    for client in clients:
        for _, place in places:
            client.send({"method": "DELETE", "path": place}, [])
    print(differences)
    return 0


def _valid() -> dict[str, Any]:
    client = {"url": "https://127.0.0.1:1/convert"}
    return {"strategy": "Webhook", "webhook": {"conversionReviewVersions": ["v1"], "clientConfig": client}}


if __name__ == "__main__":
    sys.exit(main())
