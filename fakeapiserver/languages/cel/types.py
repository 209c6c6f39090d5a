"""Types of CEL expressions: what the checker assigns, and what `type(x)` returns.

Upstream: github.com/google/cel-go/common/types/types.go, checker/format.go
"""

from typing import Final, NamedTuple


class Type(NamedTuple):
    """`kind` is the name of a simple type, or list, map, type, opaque, struct, param, error; `name` is that of the last four."""

    kind: str
    name: str
    params: tuple["Type", ...] = ()

    def __str__(self) -> str:
        """Returns the type as errors show it: `list(int)`."""
        if not self.params:
            return _SHOWN.get(self.kind, self.name)
        return f"{self.name}({', '.join(map(str, self.params))})"

    @property
    def full_name(self) -> str:
        """The name that `type(x)` has as text."""
        return _FULL_NAMES.get(self.kind, self.name)

    @property
    def declared_name(self) -> str:
        """The type as Go prints it: `list(null_type)`."""
        shown = ", ".join(param.declared_name for param in self.params)
        return f"{self.full_name}({shown})" if shown else self.full_name


def _simple(name: str) -> Type:
    return Type(name, name)


# What Go's google.protobuf.Any is declared as: of any type, and yet nothing that can be gone through.
ANY: Final = Type("any", "google.protobuf.Any")
BOOL: Final = _simple("bool")
BYTES: Final = _simple("bytes")
DOUBLE: Final = _simple("double")
DURATION: Final = _simple("duration")
DYN: Final = _simple("dyn")
ERROR: Final = Type("error", "!error!")
INT: Final = _simple("int")
NULL: Final = _simple("null")
STRING: Final = _simple("string")
TIMESTAMP: Final = _simple("timestamp")
UINT: Final = _simple("uint")
_SHOWN: Final = {"any": "any", "null": "null", "error": "!error!"}
_FULL_NAMES: Final = {
    "null": "null_type",
    "duration": "google.protobuf.Duration",
    "timestamp": "google.protobuf.Timestamp",
}
SIMPLE: Final = {t.name: t for t in (BOOL, BYTES, DOUBLE, DURATION, DYN, INT, NULL, STRING, TIMESTAMP, UINT)}


def list_of(element: Type) -> Type:
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    return Type("map", "map", (key, value))


def type_of(of: Type | None = None) -> Type:
    return Type("type", "type", () if of is None else (of,))


def optional_of(value: Type) -> Type:
    return Type("opaque", "optional_type", (value,))


def struct(name: str) -> Type:
    return Type("struct", name)


def param(name: str) -> Type:
    return Type("param", name)


# What names of types mean in expressions.
TYPE_NAMES: Final[dict[str, Type]] = {
    **{name: type_of(t) for name, t in SIMPLE.items() if name not in ("dyn", "null", "duration", "timestamp")},
    "google.protobuf.Duration": type_of(DURATION),
    "google.protobuf.Timestamp": type_of(TIMESTAMP),
    "list": type_of(list_of(DYN)),
    "map": type_of(map_of(DYN, DYN)),
    "null_type": type_of(NULL),
    "type": type_of(type_of()),
    "optional_type": type_of(optional_of(DYN)),
    **{
        name: type_of(struct(name))
        for name in (
            "kubernetes.URL",
            "kubernetes.Quantity",
            "net.IP",
            "net.CIDR",
            "kubernetes.NamedFormat",
            "kubernetes.Semver",
        )
    },
}


def unwrap_optional(t: Type) -> tuple[Type, bool]:
    """The type inside an optional's, and whether it was one."""
    return (t.params[0], True) if t.name == "optional_type" and t.params else (t, False)
