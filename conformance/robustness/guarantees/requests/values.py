"""Values for fields and parameters: some that fit a schema, and some that break parsers."""

import random
from collections.abc import Mapping
from typing import Any, Final

# Texts with which programs have had trouble: ends of strings, quotes, numbers beyond every type, other writing systems, marks that change
# the direction, combining and invisible characters, commands of shells, templates, SQL, HTML, formats and paths.
NAUGHTY: Final = (
    *("", " ", "\t", "\n", "\r\n", "\0", "\x7f", "\x1b[31m", "\ufeff", "\u200b", "\u202e", "\u2028", "\ufffe", "\U0001f4a9"),
    *("null", "None", "nil", "undefined", "true", "false", "NaN", "Infinity", "-Infinity", "~", "yes", "no", "on", "off", "0x10"),
    *("0", "-0", "-1", "1e999", "1e-999", "0.1e1", "1_000", "1,000", "٣", "½", "9" * 400, f"-{'9' * 400}", "2147483648"),
    *("9223372036854775807", "9223372036854775808", "-9223372036854775809", "18446744073709551616", "0777", "08", "1.", ".1"),
    *("'", '"', "`", "\\", "\\u0000", "%", "%s%n%x", "%00", "%zz", "${a}", "$(a)", "{{.}}", "{{7*7}}", "#{a}", "<a b='c'>", "&amp;"),
    *("' or 1=1 --", "; rm -r x", "| cat", "a\nb: c", "a\r\nX: y", "]]>", "<!--", "-->", "*", "?", "[", "]", "(", ")", "{", "}"),
    *("..", "../..", "../../etc/passwd", "/", "//", "a/", "/a", "a//b", "a/b/c", ".", "...", "-", "--", "-a", "a-", "a.", ".a", "a..b"),
    *("ä", "ﬁ", "ß", "İ", "ı", "K", "Å", "e\u0301", "日本語", "العربية", "עברית", "ไทย", "𝒜", "\U000e0041", "👩\u200d👩\u200d👧"),
    *("a" * 63, "a" * 64, "a" * 253, "a" * 254, "a" * 5000, "A", "a_b", "a b", "a=b", "a,b", "a!=b", "a in (b)", "!a", "a notin ()"),
    *("a.example.com/b", "example.com/", "/b", "v1", "v1beta1", "apps/v1", "10.0.0.1", "::1", "::ffff:1.2.3.4", "10.0.0.0/33", "1.2.3"),
    *("5m", "1Gi", "-1Gi", "1E", "1e3", "0.5", "100%", "101%", "-1%", "2026-01-01T00:00:00Z", "0000-00-00T00:00:00Z", "2026-13-45"),
    *("999999-01-01T00:00:00Z", "* * * * *", "61 * * * *", "@every 1h", "TZ=x * * * * *", "1h", "1h1", "-1h", "99999999999h", "http://"),
    *("https://a", "https://[::1", "https://u:p@a/?b#c", "javascript:a", "file:///", "(a+)+$", "(?=a)", "(a)\\1", "[a-", "a{9999}", "\\p{"),
    *("self", "self.a", "object.b", "has(self.a)", "self.all(x, x)", "1/0", "'a' + 1", "[1][2]", "size(self) > 0", "oldSelf == self"),
)  # fmt: skip
_INTEGERS: Final = (
    0,
    1,
    -1,
    2,
    80,
    443,
    65535,
    65536,
    2**31 - 1,
    2**31,
    -(2**31) - 1,
    2**53 + 1,
    2**63 - 1,
    2**63,
    -(2**63) - 1,
    10**30,
)
_TIMES: Final = ("2026-01-01T00:00:00Z", "1970-01-01T00:00:00.000000Z", "9999-12-31T23:59:59+14:00")
_OTHERS: Final[tuple[Any, ...]] = (None, True, 0, 1.5, "x", [], {}, [None], {"a": None}, [[]])
_DEEPEST: Final = 7

Schemas = Mapping[str, Mapping[str, Any]]


class Values:
    """Makes values by the schemas of an OpenAPI document. `wrong` is the share of values that don't fit."""

    def __init__(self, chance: random.Random, wrong: float = 0.03) -> None:
        self.chance = chance
        self._wrong = wrong

    def text(self) -> str:
        return self.chance.choice(NAUGHTY)

    def of(self, schema: Mapping[str, Any], schemas: Schemas, depth: int = 0) -> Any:
        """Returns a value of the schema, or another one."""
        chance = self.chance
        if chance.random() < self._wrong:
            return chance.choice(_OTHERS)
        for part in schema.get("allOf", ())[:1]:
            return self.of(part, schemas, depth)
        for choices in ("oneOf", "anyOf"):
            if choices in schema:
                return self.of(chance.choice(schema[choices]), schemas, depth)
        if "$ref" in schema:
            return self.of(schemas.get(schema["$ref"].rpartition("/")[2], {}), schemas, depth)
        match schema.get("type"):
            case "object":
                return self._object(schema, schemas, depth)
            case "array":
                count = 0 if depth > _DEEPEST else chance.choice((0, 1, 1, 2, 3))
                return [self.of(schema.get("items", {}), schemas, depth + 1) for _ in range(count)]
            case "integer":
                return chance.choice(_INTEGERS[:6] if chance.random() < 0.7 else _INTEGERS)
            case "number":
                return chance.choice((0, 1.5, -1, 1e308, 2**63))
            case "boolean":
                return chance.random() < 0.5
            case "string":
                return self._text(schema)
        return chance.choice(_OTHERS)

    def _object(self, schema: Mapping[str, Any], schemas: Schemas, depth: int) -> Any:
        chance, needed = self.chance, schema.get("required", ())
        if "additionalProperties" in schema:
            keys = [chance.choice(("a", "b", self.text())) for _ in range(chance.choice((0, 1, 1, 2)))]
            more = schema["additionalProperties"]
            return {key: self.of(more if isinstance(more, Mapping) else {}, schemas, depth + 1) for key in keys}
        share = 0.0 if depth > _DEEPEST else 0.5 if depth < 3 else 0.25
        return {
            name: self.of(field, schemas, depth + 1)
            for name, field in schema.get("properties", {}).items()
            if chance.random() < (0.97 if name in needed else share)
        }

    def _text(self, schema: Mapping[str, Any]) -> str:
        chance = self.chance
        if "enum" in schema and chance.random() < 0.9:
            return str(chance.choice(schema["enum"]))
        match schema.get("format"):
            case "date-time" if chance.random() < 0.8:
                return chance.choice(_TIMES)
            case "byte" if chance.random() < 0.8:
                return chance.choice(("", "YQ==", "AAECAw=="))
            case "int-or-string":
                return chance.choice(("80", "http", "50%"))
        return chance.choice(("a", "b", "a.example.com", "a/b")) if chance.random() < 0.6 else self.text()
