"""Random CEL rules over a schema: typed mostly, wrong now and then."""

import random
from collections.abc import Callable
from typing import Any, Final

Schema = dict[str, Any]

_STRING: Final = {"type": "string", "maxLength": 20}
_ITEM: Final = {
    "type": "object",
    "required": ["k"],
    "properties": {"k": _STRING, "v": {"type": "integer"}, "w": {"type": "array", "maxItems": 4, "items": _STRING}},
}
SCHEMA: Final[Schema] = {
    "type": "object",
    "properties": {
        "i": {"type": "integer"},
        "j": {"type": "integer"},
        "n": {"type": "number"},
        "b": {"type": "boolean"},
        "s": _STRING,
        "t": {"type": "string", "maxLength": 8},
        "e": {"type": "string", "enum": ["abc", "x", "10.0.0.1"]},
        "d": {"type": "string", "format": "duration"},
        "at": {"type": "string", "format": "date-time"},
        "raw": {"type": "string", "format": "byte", "maxLength": 12},
        "nul": {"type": "string", "nullable": True, "maxLength": 5},
        "any": {"x-kubernetes-int-or-string": True},
        "is": {"type": "array", "maxItems": 5, "items": {"type": "integer"}},
        "ss": {"type": "array", "maxItems": 5, "items": _STRING},
        "set": {"type": "array", "maxItems": 5, "x-kubernetes-list-type": "set", "items": _STRING},
        "os": {
            "type": "array",
            "maxItems": 4,
            "x-kubernetes-list-type": "map",
            "x-kubernetes-list-map-keys": ["k"],
            "items": _ITEM,
        },
        "m": {"type": "object", "maxProperties": 4, "additionalProperties": _STRING},
        "mi": {"type": "object", "maxProperties": 4, "additionalProperties": {"type": "integer"}},
        "o": {"type": "object", "properties": {"x": {"type": "integer"}, "y": _STRING, "a-b": {"type": "integer"}}},
    },
}
TEXTS: Final = (
    "", "a", "b", "abc", "x", "aXb", "é", "a,b", "1", "10.0.0.1", "::1", "10.0.0.0/8", "1Gi", "100m", "1.2.3", "https://a.b:8/c?d=e",
    "1h", "2020-01-01T00:00:00Z", "true", " a ", "a-b", "ABC",
)  # fmt: skip
_PATTERNS: Final = ("a", "^a", "[a-c]+", "b$", "^$", "(a|b)*", ".", "[", "\\\\d+")


class Generator:
    """Expressions by their type, out of one random source."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)
        self._locals: list[tuple[str, str]] = []

    def pick(self, *options: Any) -> Any:
        return self._random.choice(options)

    def rule(self) -> str:
        return self.expression("bool")

    def expression(self, kind: str) -> str:
        self._locals = []
        return self.make(kind, self._random.randint(1, 4))

    def make(self, kind: str, depth: int) -> str:
        if self._random.random() < 0.01:
            kind = self.pick(*_KINDS)
        if depth <= 0 or self._random.random() < 0.1:
            return self._leaf(kind)
        makers: dict[str, Callable[[int], str]] = {
            "bool": self._bool,
            "int": self._int,
            "double": self._double,
            "string": self._text,
            "list(string)": self._texts,
            "list(int)": self._ints,
        }
        return makers[kind](depth - 1) if kind in makers else self._leaf(kind)

    def _leaf(self, kind: str) -> str:
        found = [name for name, of in self._locals if of == kind]
        if found and self._random.random() < 0.6:
            return str(self.pick(*found))
        if self._random.random() < 0.55:
            return str(self.pick(*_FIELDS[kind]))
        return self._literal(kind)

    def _literal(self, kind: str) -> str:
        match kind:
            case "bool":
                return str(self.pick("true", "false"))
            case "int":
                return str(self.pick(0, 1, 2, 3, -1, 5, 10, 9223372036854775807))
            case "double":
                return str(self.pick("0.0", "1.0", "1.5", "-2.5", "1e3"))
            case "string":
                text = str(self.pick(*TEXTS))
                return f"'{text}'"
            case "list(int)":
                return f"[{self.make('int', 0)}, {self.make('int', 0)}]"
        return f"[{self.make('string', 0)}, {self.make('string', 0)}]"

    def _loop(self, depth: int, result: str) -> tuple[str, str, str]:
        """A range, a variable, and an expression that may use it."""
        over, kind = self.pick(
            ("self.is", "int"),
            ("self.ss", "string"),
            ("self.set", "string"),
            ("self.m", "string"),
            ("self.os.map(q, q.k)", "string"),
        )
        if self._random.random() < 0.2:
            kind = self.pick("int", "string")
            over = self.make(f"list({kind})", depth)
        name = f"v{len(self._locals)}"
        self._locals.append((name, kind))
        body = self.make(result, depth)
        self._locals.pop()
        return over, name, body

    def _bool(self, depth: int) -> str:
        make = self.make
        match self._random.randint(0, 17):
            case 0 | 1:
                return f"({make('bool', depth)} {self.pick('&&', '||')} {make('bool', depth)})"
            case 2:
                return f"!({make('bool', depth)})"
            case 3 | 4:
                return f"{make('int', depth)} {self.pick('<', '<=', '>', '>=', '==', '!=')} {make('int', depth)}"
            case 5:
                return f"{make('string', depth)} {self.pick('<', '==', '!=', '>=')} {make('string', depth)}"
            case 6:
                return f"{make('double', depth)} {self.pick('<', '==', '>')} {make('double', depth)}"
            case 7:
                method = self.pick("startsWith", "endsWith", "contains")
                return f"{make('string', depth)}.{method}({make('string', depth)})"
            case 8:
                return f"{make('string', depth)}.matches('{self.pick(*_PATTERNS)}')"
            case 9 | 10:
                over, name, body = self._loop(depth, "bool")
                return f"{over}.{self.pick('all', 'exists', 'exists_one')}({name}, {body})"
            case 11:
                return f"has({self.pick('self.i', 'self.s', 'self.nul', 'self.o.x', 'self.m.a', 'self.o.a__dash__b', 'self.is')})"
            case 12:
                kind = self.pick("int", "string")
                return f"{make(kind, depth)} in {make(f'list({kind})', depth)}"
            case 13:
                kind = self.pick("list(int)", "list(string)")
                return f"{make(kind, depth)} == {make(kind, depth)}"
            case 14:
                kind = self.pick("int", "string")
                function = self.pick("contains", "intersects", "equivalent")
                return f"sets.{function}({make(f'list({kind})', depth)}, {make(f'list({kind})', depth)})"
            case 15:
                return str(self.pick(*_TESTS)).replace("$S", make("string", depth)).replace("$I", make("int", depth))
            case 16:
                return f"self.any {self.pick('==', '<', '>', '!=')} {make(self.pick('int', 'string'), depth)}"
        return f"({make('bool', depth)} ? {make('bool', depth)} : {make('bool', depth)})"

    def _int(self, depth: int) -> str:
        make = self.make
        match self._random.randint(0, 10):
            case 0 | 1:
                return f"({make('int', depth)} {self.pick('+', '-', '*', '/', '%')} {make('int', depth)})"
            case 2:
                return f"size({make(self.pick('string', 'list(int)', 'list(string)'), depth)})"
            case 3:
                return f"{make('string', depth)}.{self.pick('indexOf', 'lastIndexOf')}({make('string', depth)})"
            case 4:
                return f"{make('list(int)', depth)}.{self.pick('sum', 'min', 'max')}()"
            case 5:
                return f"{make('list(int)', depth)}[{make('int', depth)}]"
            case 6:
                return f"int({make(self.pick('string', 'double'), depth)})"
            case 7:
                return str(
                    self.pick(
                        "self.mi['a']",
                        "self.mi.b",
                        "self.?i.orValue(4)",
                        "self.o.?x.orValue(1)",
                        "self.is[?1].orValue(9)",
                    )
                )
            case 8:
                return str(
                    self.pick("self.d.getMinutes()", "self.at.getFullYear()", "self.at.getDayOfWeek()", "int(self.at)")
                )
            case 9:
                return f"-{make('int', 0)}"
        return f"({make('bool', depth)} ? {make('int', depth)} : {make('int', depth)})"

    def _double(self, depth: int) -> str:
        match self._random.randint(0, 2):
            case 0:
                return f"({self.make('double', depth)} {self.pick('+', '-', '*', '/')} {self.make('double', depth)})"
            case 1:
                return f"double({self.make(self.pick('int', 'string'), depth)})"
        return self._leaf("double")

    def _text(self, depth: int) -> str:
        make = self.make
        match self._random.randint(0, 9):
            case 0 | 1:
                return f"({make('string', depth)} + {make('string', depth)})"
            case 2:
                return f"{make('string', depth)}.{self.pick('lowerAscii', 'upperAscii', 'trim')}()"
            case 3:
                return f"{make('string', depth)}.replace({make('string', depth)}, {make('string', depth)})"
            case 4:
                return f"{make('string', depth)}.substring({make('int', depth)})"
            case 5:
                return f"{make('list(string)', depth)}.join({make('string', depth)})"
            case 6:
                return f"string({make(self.pick('int', 'double', 'bool'), depth)})"
            case 7:
                return f"{make('list(string)', depth)}[{make('int', depth)}]"
            case 8:
                return str(
                    self.pick(
                        "self.m['a']",
                        "self.m.b",
                        "self.?s.orValue('q')",
                        "self.m[?'a'].orValue('z')",
                        "string(self.raw)",
                    )
                )
        return f"{make('string', depth)}.find('{self.pick(*_PATTERNS)}')"

    def _texts(self, depth: int) -> str:
        match self._random.randint(0, 5):
            case 0:
                over, name, body = self._loop(depth, "string")
                return f"{over}.map({name}, {body})"
            case 1:
                return f"{self.make('string', depth)}.split({self.make('string', depth)})"
            case 2:
                return f"({self.make('list(string)', depth)} + {self.make('list(string)', depth)})"
            case 3:
                return f"{self.make('list(string)', depth)}.{self.pick('sort', 'distinct', 'reverse')}()"
            case 4:
                return "self.os.filter(e, has(e.v)).map(e, e.k)"
        return f"self.m.transformList(k, v, {self.pick('k', 'v', 'k + v')})"

    def _ints(self, depth: int) -> str:
        match self._random.randint(0, 3):
            case 0:
                over, name, body = self._loop(depth, "int")
                return f"{over}.map({name}, {body})"
            case 1:
                return f"({self.make('list(int)', depth)} + {self.make('list(int)', depth)})"
            case 2:
                return (
                    f"{self.make('list(int)', depth)}.{self.pick('sort()', 'distinct()', 'reverse()', 'slice(0, 2)')}"
                )

        return f"self.is.filter(f, f > {self.make('int', depth)})"

    def _some_text(self) -> str:
        return str(self.pick(*TEXTS))[:20]

    def _some_number(self) -> int:
        return int(self.pick(0, 1, 2, 3, 7, -1, 100))

    def _some(self, make: Callable[[], Any]) -> list[Any]:
        return [make() for _ in range(self._random.randint(0, 3))]

    def value(self) -> dict[str, Any]:
        """An object for the schema, with some fields missing."""
        text, number, some = self._some_text, self._some_number, self._some
        names = ("a", "b", "c")
        full: dict[str, Any] = {
            "i": number(),
            "j": number(),
            "n": self.pick(0, 1, 1.5, -2.25, 1e3),
            "b": self.pick(True, False),
            "s": text(),
            "t": text()[:8],
            "e": self.pick("abc", "x", "10.0.0.1"),
            "d": self.pick("1h", "90s", "1h30m", "0s"),
            "at": self.pick("2020-01-01T00:00:00Z", "1999-12-31T23:59:59+02:00"),
            "raw": self.pick("aGk=", "", "YWJj"),
            "nul": self.pick(None, "x"),
            "any": self.pick(1, 3, "a", "5%"),
            "is": some(number),
            "ss": some(text),
            "set": sorted(set(some(text))),
            "os": [
                {"k": name, **self.pick({}, {"v": number()}, {"w": some(text)})}
                for name in names[: self._random.randint(0, 3)]
            ],
            "m": {name: text() for name in names if self.pick(True, False)},
            "mi": {name: number() for name in names if self.pick(True, False)},
            "o": self.pick({}, {"x": number()}, {"x": number(), "y": text(), "a-b": 1}),
        }
        return {key: value for key, value in full.items() if self._random.random() < 0.85}


_KINDS: Final = ("bool", "int", "double", "string", "list(int)", "list(string)")
_FIELDS: Final = {
    "bool": ("self.b", "has(self.i)", "self.i > 1"),
    "int": ("self.i", "self.j", "self.o.x", "self.o.a__dash__b", "self.is[0]", "self.is.size()", "self.os[0].v"),
    "double": ("self.n", "double(self.i)"),
    "string": ("self.s", "self.t", "self.e", "self.nul", "self.o.y", "self.ss[0]", "self.os[0].k", "self.m.a"),
    "list(int)": ("self.is", "[self.i, self.j]", "self.is.filter(g, g > 0)"),
    "list(string)": ("self.ss", "self.set", "[self.s]", "self.os.map(h, h.k)", "self.os[0].w"),
}
_TESTS: Final = (
    "isIP($S)", "isCIDR($S)", "isURL($S)", "isQuantity($S)", "isSemver($S)",
    "ip($S).family() == 4", "quantity($S).isLessThan(quantity('2Gi'))",
    "cidr('10.0.0.0/8').containsIP($S)", "url($S).getHost() == $S", "semver($S).major() == $I",
    "format.dns1123Label().validate($S).hasValue()",
    "self.d < duration($S)", "self.at > timestamp($S)", "type(self.any) == int", "type(self.any) == string && self.any.size() > $I",
    "self.o == self.o", "self.m == {'a': $S}", "self.mi.all(k, v, v > $I && k != $S)", "self.raw == b'hi'", "self == self",
    "'%s-%d'.format([$S, $I]) != $S", "self.os.exists_one(e, e.k == $S)", "self.os.all(e, !has(e.w) || e.w.size() < $I)",
    "quantity($S).add($I).isInteger()", "self.is.isSorted()", "optional.of($I).value() == $I", "self.s.charAt($I) == $S",
    "self.ss.indexOf($S) == $I", "self.?nul.hasValue()", "bool($S)", "$S.findAll('a').size() == $I", "cidr($S).prefixLength() == $I",
)  # fmt: skip
