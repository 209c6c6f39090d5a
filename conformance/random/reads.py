"""Random gets, lists, watches and small writes, out of one seed; for `conformance.compare.requests --reads`.

References to earlier answers (`${N.metadata.resourceVersion}`) let requests name revisions and tokens of either server.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Final
from urllib.parse import quote

Request = dict[str, Any]

NAMESPACES: Final = ("reads-1", "reads-2")
_NAMES: Final = ("r1", "r2", "r3", "r4")
_META: Final = "g=meta.k8s.io"
_ACCEPT: Final = (
    "application/json",
    "application/yaml",
    "application/vnd.kubernetes.protobuf,application/json",
    "application/xml",
    "*/*;q=0.1,application/yaml;q=0.2",
    f"application/json;as=Table;v=v1;{_META}",
    f"application/json;as=Table;v=v2;{_META},application/json;as=Table;v=v1beta1;{_META}",
    f"application/json;as=PartialObjectMetadata;v=v1;{_META}",
    f"application/json;as=PartialObjectMetadataList;v=v1;{_META}",
    f"application/json;as=PartialObjectMetadataList;v=v1beta1;{_META},application/json",
    "application/json;stream=watch",
)
_FIELDS: Final = ("metadata.name", "metadata.namespace", "type", "status.phase", "spec.x", "")
_LABELS: Final = ("a", "b", "x/y", "-", "in", "")
_OPERATORS: Final = ("=", "==", "!=", " in ", " notin ", ">", "<", "", "!", ",")
_VALUES: Final = ("1", "2", "r1", "(1,2)", "()", "(1", "-", "reads-1", "a\\,b", "a\\b", "")


def setup() -> Iterator[Request]:
    """Two empty namespaces."""
    for name in NAMESPACES:
        yield {"method": "POST", "path": "/api/v1/namespaces", "body": {"metadata": {"name": name}}}
        yield {"method": "DELETE", "path": f"/api/v1/namespaces/{name}/secrets"}


class Generator:
    """Makes random read requests; it also finds the revisions and tokens in answers."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._revisions: list[int] = []
        self._lists: list[int] = []

    def request(self, number: int) -> Request:
        """The request with this number, whose answer later ones may refer to."""
        kind = self._random.choices((self._write, self._get, self._list, self._watch), (25, 15, 45, 15))[0]
        request = kind()
        if request["method"] in ("POST", "PUT"):
            self._revisions.append(number)
        if "limit=" in request["path"] and "watch" not in request["path"]:
            self._lists.append(number)
        return request

    def _pick(self, options: Sequence[Any]) -> Any:
        return self._random.choice(options)

    def _chance(self, share: float) -> bool:
        return self._random.random() < share

    def _collection(self) -> str:
        return f"/api/v1/namespaces/{self._pick(NAMESPACES)}/secrets"

    def _write(self) -> Request:
        name = self._pick(_NAMES)
        labels = {self._pick("ab"): self._pick("12") for _ in range(self._pick((0, 1, 2)))}
        body = {"metadata": {"name": name, "labels": labels}, "stringData": {"k": self._pick("xyz")}}
        path = self._collection()
        if self._chance(0.2):
            return {"method": "DELETE", "path": f"{path}/{name}"}
        if self._chance(0.4):
            return {"method": "PUT", "path": f"{path}/{name}", "body": body}
        return {"method": "POST", "path": path, "body": body}

    def _get(self) -> Request:
        query = self._query(revision=0.5, match=0.1, include=0.3, pretty=0.2)
        return self._read(f"{self._collection()}/{self._pick(_NAMES)}{query}")

    def _list(self) -> Request:
        where = "/api/v1/secrets" if self._chance(0.2) else self._collection()
        query = self._query(
            revision=0.3,
            match=0.2,
            include=0.2,
            pretty=0.1,
            limit=0.5,
            labels=0.3,
            fields=0.3,
            token=0.25,
            initial=0.05,
        )
        if where == "/api/v1/secrets":
            query += ("&" if query else "?") + "labelSelector=a"
        return self._read(where + query)

    def _watch(self) -> Request:
        query = self._query(revision=0.6, match=0.3, include=0.2, labels=0.4, fields=0.3, initial=0.4, bookmarks=0.4)
        start = "?" if not query else query + "&"
        if self._chance(0.2):
            path = self._collection().replace("/v1/", "/v1/watch/")
            return self._read(f"{path}{self._pick(('', '/r1'))}{start}timeoutSeconds=1")
        return self._read(f"{self._collection()}{start}watch=1&timeoutSeconds=1")

    def _read(self, path: str) -> Request:
        return {"method": "GET", "path": path, "accept": self._pick(_ACCEPT) if self._chance(0.4) else _ACCEPT[0]}

    def _query(self, **shares: float) -> str:
        """`shares` says how likely each part is."""
        makers: dict[str, Callable[[], str]] = {
            "revision": lambda: f"resourceVersion={self._revision()}",
            "match": lambda: f"resourceVersionMatch={self._pick(('Exact', 'NotOlderThan', 'Foo', ''))}",
            "include": lambda: f"includeObject={self._pick(('None', 'Object', 'Metadata', 'Foo', ''))}",
            "pretty": lambda: f"pretty={self._pick(('true', '1', 'no', ''))}",
            "limit": lambda: f"limit={self._pick((1, 1, 2, 3, 0, -1, 'x', ''))}",
            "labels": lambda: f"labelSelector={self._selector(_LABELS)}",
            "fields": lambda: f"fieldSelector={self._selector(_FIELDS)}",
            "token": lambda: f"continue={self._token()}",
            "initial": lambda: f"sendInitialEvents={self._pick(('true', 'false', '1'))}",
            "bookmarks": lambda: "allowWatchBookmarks=true",
        }
        parts = [makers[name]() for name, share in shares.items() if self._chance(share)]
        return "?" + "&".join(parts) if parts else ""

    def _revision(self) -> str:
        if self._revisions and self._chance(0.6):
            return f"${{{self._pick(self._revisions)}.metadata.resourceVersion}}"
        return str(self._pick(("0", "", "99999999", "18446744073709551616")))

    def _token(self) -> str:
        if self._lists and self._chance(0.8):
            return f"${{{self._pick(self._lists)}.metadata.continue}}"
        return str(self._pick(("", "abc", "e30", "@")))

    def _selector(self, keys: Sequence[str]) -> str:
        if self._chance(0.6):
            key, value = self._pick(("a=", "a!=", "b==")), self._pick("12")
            terms = [key + value if keys is _LABELS else f"metadata.name{self._pick(('=', '!='))}{self._pick(_NAMES)}"]
        else:
            count = self._pick((1, 1, 2))
            terms = [self._pick(keys) + self._pick(_OPERATORS) + self._pick(_VALUES) for _ in range(count)]
        return quote(",".join(terms))
