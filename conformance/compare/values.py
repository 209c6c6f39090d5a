"""Odd texts against every format and many patterns, odd numbers against what schemas ask of numbers, and odd JSONPaths as columns.

    python -m conformance.compare.values --oracle URL --oracle-token T --server URL --token T [--seed N] [--rounds N]

A definition each has all formats, some random patterns, and the numbers' limits as fields; each of `--rounds` times 50 objects are
tried out, each with one random text or number in all fields. Then columns with random paths show an object as a Table. Prints
each kind of difference once. The group is `values.example.com`.
"""

import json
import random
import sys
import time
from typing import Any, Final

from conformance.compare.customresources import DEFINITIONS, Differences
from conformance.exchange import Answer, Client, comparing

GROUP: Final = "values.example.com"
_TABLE: Final = "application/json;as=Table;v=v1;g=meta.k8s.io"
_FORMATS: Final = (
    "bsonobjectid",
    "uri",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "cidr",
    "mac",
    "uuid",
    "uuid3",
    "uuid4",
    "uuid5",
    "isbn",
    "isbn10",
    "isbn13",
    "creditcard",
    "ssn",
    "hexcolor",
    "rgbcolor",
    "byte",
    "password",
    "date",
    "duration",
    "date-time",
    "datetime",
    "k8s-short-name",
    "k8s-long-name",
)
_TEXTS: Final = (
    "507f1f77bcf86cd799439011",
    "http://a.b/c?d#e",
    "a@b.co",
    "a.b-c.de",
    "10.0.0.1",
    "::ffff:1.2.3.4",
    "fe80::1%eth0",
    "10.0.0.0/8",
    "2001:db8::/32",
    "01:23:45:67:89:ab",
    "0123.4567.89ab",
    "6ba7b810-9dad-11d1-80b4-00c04fd430c8",
    "a987fbc9-4bed-3078-8f07-9141ba07c9f3",
    "57b73598-8764-4ad0-a76a-679bb6640eb1",
    "987fbc97-4bed-5078-af07-9141ba07c9f3",
    "978-3-16-148410-0",
    "0-306-40615-2",
    "4111111111111111",
    "123-45-6789",
    "#fff",
    "rgb(1, 2, 3)",
    "aGk=",
    "2020-02-30",
    "2020-02-29",
    "1h30m",
    "10 days",
    "1.5h",
    "P1D",
    "2020-01-01T00:00:00Z",
    "2020-01-01T23:59:60Z",
    "2020-01-01t00:00:00.123456789+05:30",
    "a-b",
    "x" * 64,
    "a." * 120 + "b",
    "-a",
    "a-",
    "",
    " ",
    "é",
    "日本.jp",
    "a b",
    "\n",
    "0",
    "00:00",
    "1e3",
    "//a/b",
    "/a/b",
    "a:b",
    "?x",
    "mailto:a@b",
    "\u0000",
    "\x7f",
    "%zz",
    "http://[::1]:80/",
    "a@b@c",
    '"a b"@c.d',
    "a@[1.2.3.4]",
    "1.2.3",
    "1.2.3.4.5",
    "256.1.1.1",
    "01.2.3.4",
    ":::",
    "1:2:3:4:5:6:7:8:9",
    "10.0.0.0/33",
    "10.0.0.0/",
    "::/129",
    "0001-01-01",
    "9999-12-31",
    "10000-01-01",
    "1ns1us",
    "-1h",
    "+1h",
    ".5s",
    "1",
    "1 w",
    "5 Minutes",
    "1hh",
    "9223372036854775808ns",
    "½",
)
_PATTERNS: Final = (
    r"^a$",
    r"\d+",
    r"^\s*$",
    r"\bb\b",
    r"^[^a]$",
    r"(?i)É",
    r"^.$",
    r"(?s)^.$",
    r"^\w+$",
    r"\pL",
    r"\p{Greek}",
    r"[[:alpha:]]",
    r"^[\d\-]+$",
    r"a{2,3}",
    r"^(?:a|ab)(?:c|bcd)$",
    r"\x41",
    r"\x{1F600}",
    r"\Qa.b\E",
    r"(?m)^b$",
    r"\A\z",
    r"a*?$",
    r"[]a]",
    r"[a\]]",
    r"^[a-]$",
    r"\.",
    r"x*",
    r"(a)(b)?",
    r"(?P<n>a)",
    r"^[\w.]+$",
    r"\D",
    r"\S+@\S+",
    r"^$",
    r"[^\x00-\x7F]",
    r"\v",
    r"[\b]",
    r"a++",
    r"(?<!a)b",
    r"\1",
    r"\Z",
    r"[z-a]",
    r"(?i:a)B",
    r"\u0041",
    r"\/",
    r"\_",
    r"\-",
    r"$^",
    r"a|",
    r"()",
    r"(|a)+",
    r"\C",
    r"{",
    r"a{",
    r"a{,2}",
    r"a{1",
    r"]",
    r"\p{Lu}\P{Lu}",
    r"\pN",
    r"^\h",
    r"(?U)a+",
    r"(?x)a b",
    r"\G",
    r"a{0}",
    r"[^]",
    r"[[:foo:]]",
    r"[[:^alpha:]]",
    r"[\Qa\E]",
    r"\07",
    r"\8",
    r"\cA",
    r"\N",
    r"\R",
    r"(?#c)",
    r"(?<n>a)",
    r"(?P=n)",
    r"(?>a)",
    r"\X",
    r"[a-\d]",
    r"^\p{L}[\p{L}\p{N}]*$",
)
_CHARACTERS: Final = "abAB019 .-_:/@#%+é日ß\u212a\u00a0\u2028\n\t\"'\\{}[]()"
_NUMBERS: Final = (
    "0",
    "-0",
    "1",
    "-1",
    "1.0",
    "1.5",
    "0.1",
    "0.3",
    "1e0",
    "1e2",
    "1E+2",
    "1e-2",
    "1e21",
    "1e22",
    "1e308",
    "2147483647",
    "2147483648",
    "-2147483649",
    "9007199254740993",
    "9223372036854775807",
    "9223372036854775808",
    "-9223372036854775808",
    "-9223372036854775809",
    "18446744073709551616",
    "1e18",
    "1e19",
    "9.223372036854775807e18",
    "3.4e38",
    "3.5e38",
    "1e-46",
    "1e-400",
    "123456789012345678901234567890",
    "0.30000000000000004",
    "100.0",
    "10",
    "3",
    "7",
    "-0.0",
    "4.35",
    "1e400",
    "01",
    "+1",
    ".5",
    "1.",
    "0x1",
    "NaN",
    "1_0",
    "2.50",
    "1000000",
    "1e6",
    "0.000001",
    "1e-7",
)
_NUMBER_SCHEMAS: Final[dict[str, dict[str, Any]]] = {
    "any": {"x-kubernetes-preserve-unknown-fields": True},
    "number": {"type": "number"},
    "integer": {"type": "integer"},
    "text": {"type": "string"},
    "ios": {"x-kubernetes-int-or-string": True},
    "int32": {"type": "integer", "format": "int32"},
    "int64": {"type": "integer", "format": "int64"},
    "float": {"type": "number", "format": "float"},
    "double": {"type": "number", "format": "double"},
    "numberint32": {"type": "number", "format": "int32"},
    "min": {"type": "number", "minimum": 1},
    "above": {"type": "number", "minimum": 1, "exclusiveMinimum": True},
    "max": {"type": "integer", "maximum": 9007199254740992},
    "below": {"type": "number", "maximum": 1.5, "exclusiveMaximum": True},
    "tenth": {"type": "number", "multipleOf": 0.1},
    "hundredth": {"type": "number", "multipleOf": 0.01},
    "three": {"type": "integer", "multipleOf": 3},
    "half": {"type": "number", "multipleOf": 2.5},
    "enum": {"type": "number", "enum": [1, 1.5, 1e21]},
    "enumint": {"type": "integer", "enum": [1, 9007199254740993]},
    "nullable": {"type": "number", "nullable": True},
    "set": {"type": "array", "x-kubernetes-list-type": "set", "items": {"type": "number"}},
}
_OBJECT: Final[dict[str, Any]] = {
    "a": {
        "b": [{"c": 1, "d": "x"}, {"c": 2.5, "d": "y", "e": [1, 2]}, {"c": None}],
        "s": "text",
        "n": 3,
        "f": 1.25,
        "t": True,
        "z": None,
        "k.l/m": "dotted",
    },
    "l": [1, 2, 3, "4"],
    "m": {"x": {"v": 1}, "y": {"v": 2}},
    "d": "2020-01-01T00:00:00Z",
    "e": [],
    "o": {},
    "big": 9007199254740993,
    "long": "é" * 40,
}
_PATH_PARTS: Final = (
    ".a",
    ".b",
    ".c",
    ".d",
    ".e",
    ".l",
    ".m",
    ".x",
    ".v",
    ".s",
    ".n",
    ".f",
    ".t",
    ".z",
    ".o",
    ".big",
    ".nope",
    "[0]",
    "[1]",
    "[-1]",
    "[5]",
    "[*]",
    ".*",
    "[0:2]",
    "[::2]",
    "[-2:]",
    "[1:]",
    "[?(@.c==1)]",
    "[?(@.d=='x')]",
    '[?(@.d=="y")]',
    "[?(@.c>1)]",
    "[?(@.nope)]",
    "[?(@.e)]",
    "['b']",
    "['a','l']",
    "[0,1]",
    "..c",
    "..",
    ".a.b",
    ".k\\.l/m",
    "['k.l/m']",
    "[?(@.c!=1)]",
    "[?(@.c<=2.5)]",
    "[?(1==1)]",
    "[?(@ == 2)]",
    "[2:1]",
    "[0:3:2]",
    "[]",
    ".",
    "[",
    "[a]",
    "{.a}",
    "[?(@.t==true)]",
)
_TYPES: Final = (
    ("string", None),
    ("integer", None),
    ("number", None),
    ("boolean", None),
    ("date", None),
    ("integer", "int32"),
    ("string", "date-time"),
    ("string", "byte"),
    ("string", "name"),
    ("number", "double"),
    ("string", "password"),
)


def definition(plural: str, schema: dict[str, Any], columns: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    version: dict[str, Any] = {"name": "v1", "served": True, "storage": True}
    version["schema"] = {"openAPIV3Schema": {"type": "object", "properties": {"spec": schema}}}
    if columns:
        version["additionalPrinterColumns"] = columns
    spec = {"group": GROUP, "scope": "Namespaced", "names": {"plural": plural, "kind": plural.capitalize()}}
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**kind, "metadata": {"name": f"{plural}.{GROUP}"}, "spec": {**spec, "versions": [version]}}


class Values:
    """Sends requests to both servers and reports the differences."""

    def __init__(self, clients: tuple[Client, Client], seed: int) -> None:
        self._clients = clients
        self._random = random.Random(seed)
        self._prefix = f"v{seed}t{int(time.time()) % 100_000}"
        self.differences = Differences()

    def send(self, label: str, request: dict[str, Any]) -> tuple[Answer, Answer]:
        expected, got = (client.send(request, []) for client in self._clients)
        self.differences.compare(label, request, expected, got)
        return expected, got

    def _create(self, plural: str, schema: dict[str, Any], columns: list[dict[str, Any]] | None = None) -> bool:
        body = definition(plural, schema, columns)
        return all(a["status"] == 201 for a in self.send(plural, {"method": "POST", "path": DEFINITIONS, "body": body}))

    def _tries(self, label: str, plural: str, texts: list[str]) -> None:
        """Objects whose spec is given as JSON."""
        path = f"/apis/{GROUP}/v1/namespaces/default/{plural}?dryRun=All&fieldValidation=Strict"
        head = f'"apiVersion":"{GROUP}/v1","kind":"{plural.capitalize()}","metadata":{{"name":"a"}}'
        for text in texts:
            request = {"method": "POST", "path": path, "text": f'{{{head},"spec":{text}}}', "type": "application/json"}
            self.send(f"{label} {text[:200]}", request)

    def _remove(self, *plurals: str) -> None:
        for plural in plurals:
            self.send("delete", {"method": "DELETE", "path": f"{DEFINITIONS}/{plural}.{GROUP}"})

    def _text(self) -> str:
        text = self._random.choice(_TEXTS)
        for _ in range(self._random.choice((0, 0, 1, 1, 2))):
            at = self._random.randrange(len(text) + 1)
            character = self._random.choice(_CHARACTERS)
            text = self._random.choice(
                (text[:at] + character + text[at:], text[:at] + text[at + 1 :], text[:at] + character + text[at + 1 :])
            )
        return text if self._random.random() > 0.05 else text + self._random.choice(_TEXTS)

    def round(self, number: int) -> None:
        formats, patterns, numbers, columns = (f"{self._prefix}{number}{kind}s" for kind in "fpnc")
        self._create(
            formats,
            {"type": "object", "properties": {n.replace("-", "_"): {"type": "string", "format": n} for n in _FORMATS}},
        )
        known = [pattern for pattern in self._random.sample(_PATTERNS, 30) if self._compiles(pattern)]
        self._create(
            patterns,
            {"type": "object", "properties": {f"p{i}": {"type": "string", "pattern": p} for i, p in enumerate(known)}},
        )
        self._create(numbers, {"type": "object", "properties": _NUMBER_SCHEMAS})
        shown = [column for i in range(30) if self._is_column(column := self._column(i))]
        self._create(columns, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, shown)
        time.sleep(4)
        texts = [self._text() for _ in range(50)]
        self._tries("formats", formats, [json.dumps({n.replace("-", "_"): text for n in _FORMATS}) for text in texts])
        self._tries("patterns", patterns, [json.dumps({f"p{i}": text for i in range(len(known))}) for text in texts])
        literals = self._random.sample(_NUMBERS, 25)
        self._tries("numbers", numbers, [self._numbered(literal) for literal in literals])
        path = f"/apis/{GROUP}/v1/namespaces/default/{columns}"
        body = {"apiVersion": f"{GROUP}/v1", "kind": columns.capitalize(), "metadata": {"name": "a"}, "spec": _OBJECT}
        self.send("create", {"method": "POST", "path": path, "body": body})
        self._tables(path, shown)
        self._remove(formats, patterns, numbers, columns)

    def _numbered(self, literal: str) -> str:
        fields = [f'"{name}":{f"[{literal},1]" if name == "set" else literal}' for name in _NUMBER_SCHEMAS]
        return f"{{{','.join(fields)}}}"

    def _compiles(self, pattern: str) -> bool:
        body = definition("tries", {"type": "object", "properties": {"p": {"type": "string", "pattern": pattern}}})
        answers = self.send(f"pattern {pattern}", {"method": "POST", "path": f"{DEFINITIONS}?dryRun=All", "body": body})
        return all(answer["status"] == 201 for answer in answers)

    def _column(self, number: int) -> dict[str, Any]:
        kind, form = self._random.choice(_TYPES)
        path = ".spec" + "".join(self._random.choice(_PATH_PARTS) for _ in range(self._random.choice((1, 2, 2, 3, 4))))
        column = {"name": f"c{number}", "type": kind, "jsonPath": path}
        return {**column, "format": form} if form else column

    def _is_column(self, column: dict[str, Any]) -> bool:
        body = definition("tries", {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, [column])
        answers = self.send(f"column {column}", {"method": "POST", "path": f"{DEFINITIONS}?dryRun=All", "body": body})
        return all(answer["status"] == 201 for answer in answers)

    def _tables(self, path: str, columns: list[dict[str, Any]]) -> None:
        """The Table as a whole, and its cells one by one, as one difference hides others."""
        request = {"method": "GET", "path": f"{path}?includeObject=None", "accept": _TABLE}
        answers = [client.send(request, []) for client in self._clients]
        rows = [answer["body"].get("rows", [{}])[0].get("cells", []) for answer in answers]
        for column, expected, got in zip(columns, rows[0][1:], rows[1][1:], strict=False):
            if expected != got or type(expected) is not type(got):
                self.differences.tell(f"cell {column['type']} {column['jsonPath']}", f"{expected!r} != {got!r}")
        self.send("table", request)


def main() -> int:
    arguments = comparing(__doc__, rounds=4).parse_args()
    clients = Client(arguments.oracle, arguments.oracle_token), Client(arguments.server, arguments.token)
    values = Values(clients, arguments.seed)
    for number in range(arguments.rounds):
        values.round(number)
    print(values.differences)
    return 0


if __name__ == "__main__":
    sys.exit(main())
