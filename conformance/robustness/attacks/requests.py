"""Attacks with YAML, and with paths, parameters and headers."""

from collections.abc import Callable, Iterator
from typing import Final

from conformance.robustness.attacks.attack import APPLY_PATCH, BODY, YAML, Attack, Call, encoded, filled, named, posted

_CONFIGMAPS: Final = "/api/v1/namespaces/default/configmaps"
_HEAD: Final = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: yaml}\n"
# Bytes of a request's head, less some.
_LINE: Final = 1024 * 1024 - 16 * 1024
_OBJECTS: Final = tuple(
    posted(_CONFIGMAPS, lambda i=i: {**named("v1", "ConfigMap", f"selected-{i}")})  # type: ignore[misc]
    for i in range(50)
)


def _aliases() -> bytes:
    """Each line has the one before nine times."""
    lines = [b"a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [b"a%d: &a%d [%b]" % (i, i, b", ".join([b"*a%d" % (i - 1)] * 9)) for i in range(1, 12)]
    return _HEAD + b"\n".join(lines) + b"\n"


_YAML: Final[dict[str, Callable[[], bytes]]] = {
    "200,000 keys": lambda: _HEAD + b"data:\n" + b"".join(b"  k%d: v\n" % i for i in range(200_000)),
    "aliases of aliases": _aliases,
    "100,000 aliases": lambda: _HEAD + b"a: &a [x]\nb: [" + b"*a, " * 100_000 + b"*a]\n",
    "100,000 anchors": lambda: _HEAD + b"data:\n" + b"".join(b"  k%d: &a%d v\n" % (i, i) for i in range(100_000)),
    "merge keys": lambda: _HEAD + b"a: &a {x: y}\nb:\n" + b"".join(b"  k%d: {<<: *a}\n" % i for i in range(100_000)),
    "3 MB of [": lambda: _HEAD + b"a: " + b"[" * (BODY - 100),
    "3 MB of {": lambda: _HEAD + b"a: " + b"{" * (BODY - 100),
    "3 MB of -": lambda: _HEAD + b"a:\n  " + b"- " * (BODY // 2 - 100) + b"x\n",
    "1,000 levels by indentation": lambda: _HEAD + b"".join(b" " * i + b"a:\n" for i in range(1000)),
    "numbers": lambda: _HEAD + b"data: [" + b"0x1F, 1_000, 1e3, .5, " * 100_000 + b"1]\n",
    "a number of 3 MB": lambda: _HEAD + b"a: " + b"1" * (BODY - 100) + b"\n",
    "base 60": lambda: _HEAD + b"a: " + b"1:" * (BODY // 2 - 100) + b"1\n",
    "a quoted text with escapes": lambda: _HEAD + b'a: "' + rb"\x41" * (BODY // 4 - 100) + b'"\n',
    "a block of empty lines": lambda: _HEAD + b"a: |\n" + b"\n" * (BODY - 100),
    "comments": lambda: _HEAD + b"# a\n" * (BODY // 4 - 100),
    "10,000 open lists": lambda: b"[" * 10_000,
    "short, in the older grammar": lambda: b"[a," * 5_000 + b"?",
    "directives": lambda: b"%YAML 1.1\n" * (BODY // 10),
    "documents": lambda: _HEAD + b"---\na: b\n" * (BODY // 9 - 100),
    "repeated keys": lambda: _HEAD + b"data:\n" + b"  a: b\n" * 200_000,
    "tags": lambda: _HEAD + b"a: [" + b"!!str a, " * 200_000 + b"b]\n",
}
_QUERIES: Final[dict[str, Callable[[], str]]] = {
    "a label selector of many requirements": lambda: (
        "labelSelector=" + ",".join(filled(lambda i: f"a{i}%3Db", _LINE // 2))
    ),
    "a label selector of many values": lambda: (
        "labelSelector=a+in+(" + ",".join(filled(lambda i: f"v{i}", _LINE // 2)) + ")"
    ),
    "a label selector of repetitions": lambda: "labelSelector=" + "a!%3Db," * (_LINE // 9) + "a",
    "a label selector of blanks": lambda: "labelSelector=" + "+" * _LINE,
    "a label selector of exclamation marks": lambda: "labelSelector=" + "!" * _LINE,
    "a label selector of parentheses": lambda: "labelSelector=a+in+" + "(" * _LINE,
    "a label selector with a long name": lambda: "labelSelector=" + "a" * _LINE,
    "a field selector of many requirements": lambda: (
        "fieldSelector=" + "metadata.name!%3Da," * (_LINE // 20) + "metadata.name!%3Db"
    ),
    "a field selector of escapes": lambda: "fieldSelector=metadata.name%3D" + "%5C%5C" * (_LINE // 6),
    "a field selector of commas": lambda: "fieldSelector=" + "," * _LINE,
    "a continue token of 1 MB": lambda: "limit=1&continue=" + "e" * _LINE,
    "a limit of 1 MB": lambda: "limit=" + "1" * _LINE,
    "a revision of 1 MB": lambda: "resourceVersion=" + "1" * _LINE,
    "a time-out of 1 MB": lambda: "timeoutSeconds=" + "1" * _LINE,
    "9,999 parameters": lambda: "&".join(f"p{i}=v" for i in range(9_999)),
    "escapes": lambda: "a=" + "%41" * (_LINE // 3),
    "escapes that are none": lambda: "a=" + "%" * _LINE,
}
_HEADERS: Final[dict[str, dict[str, str]]] = {
    "Accept of many parts": {"Accept": ",".join(f"application/x{i};q=0.1" for i in range(30_000))},
    "Accept of parts that get better": {"Accept": ",".join(f"a/x;q=0.{i:05}" for i in range(60_000))},
    "Accept of semicolons": {"Accept": "application/json" + ";" * (_LINE // 2)},
    "Accept with a Table of 1 MB": {"Accept": "application/json;as=Table;" + "v=v1;" * 150_000},
    "a bearer token of 1 MB": {"Authorization": "Bearer " + "a." * (_LINE // 2)},
    "a user agent of 1 MB": {"User-Agent": "a" * _LINE},
    "If-None-Match of many": {"If-None-Match": '"a",' * 200_000},
    "Range of many": {"Range": "bytes=" + "0-1," * 200_000},
    "Accept-Encoding of many": {"Accept-Encoding": "gzip;q=0," * 100_000},
    "Impersonate-Extra": {"Impersonate-User": "u", "Impersonate-Extra-" + "%41" * 300_000: "v"},
}
_PATHS: Final[dict[str, Callable[[], str]]] = {
    "a name of 1 MB": lambda: f"{_CONFIGMAPS}/" + "a" * _LINE,
    "a name of dots": lambda: f"{_CONFIGMAPS}/" + "." * _LINE,
    "slashes": lambda: "/" * _LINE,
    "escaped slashes": lambda: "/api/v1/" + "%2f" * (_LINE // 3),
    "parents": lambda: "/api" + "/.." * (_LINE // 3),
    "a namespace of 1 MB": lambda: "/api/v1/namespaces/" + "a" * _LINE + "/pods",
    "a group of 1 MB": lambda: "/apis/" + "a." * (_LINE // 2) + "/v1/things",
}


def attacks() -> Iterator[Attack]:
    for name, data in _YAML.items():
        yield Attack(f"YAML: {name}", Call("POST", _CONFIGMAPS, data, YAML))
    applied = Call("PATCH", f"{_CONFIGMAPS}/yaml?fieldManager=m&force=true", _YAML["200,000 keys"], APPLY_PATCH)
    yield Attack("YAML: 200,000 keys in an apply", applied)
    for name, query in _QUERIES.items():
        yield Attack(f"query: {name}", Call("GET", f"{_CONFIGMAPS}?{query()}"), _OBJECTS)
    yield Attack("query: a deadline of 1 MB", Call("DELETE", f"{_CONFIGMAPS}/none?timeout=" + "1h" * (_LINE // 2)))
    yield Attack(
        "query: field validation of 1 MB",
        Call("POST", f"{_CONFIGMAPS}?fieldValidation=" + "S" * _LINE, lambda: encoded({})),
    )
    for name, headers in _HEADERS.items():
        path = "/openapi/v2" if name.startswith(("If-", "Range")) else _CONFIGMAPS
        yield Attack(f"header: {name}", Call("GET", path, headers=headers))
    for name, path_of in _PATHS.items():
        yield Attack(f"path: {name}", Call("GET", path_of()))
    options = lambda: encoded({"kind": "DeleteOptions", "apiVersion": "v1", "dryRun": filled(lambda i: "All")})  # noqa: E731
    yield Attack("DELETE: dryRun of many", Call("DELETE", f"{_CONFIGMAPS}/none", options))
