"""Selectors of devices: expressions of the variable `device`.

Upstream: k8s.io/dynamic-resource-allocation/cel/compile.go
"""

from collections.abc import Mapping
from functools import lru_cache
from typing import Any, Final, Protocol

from fakeapiserver.apimachinery.cel import static_cost
from fakeapiserver.apimachinery.cel.schema import Decl
from fakeapiserver.languages.cel import values
from fakeapiserver.languages.cel.checker import Declared
from fakeapiserver.languages.cel.declarations import FUNCTIONS as DECLARATIONS
from fakeapiserver.languages.cel.declarations import Overload
from fakeapiserver.languages.cel.errors import CelError, CompileError
from fakeapiserver.languages.cel.kubernetes.quantity import Quantity
from fakeapiserver.languages.cel.kubernetes.semver import Semver
from fakeapiserver.languages.cel.kubernetes.table import FUNCTIONS
from fakeapiserver.languages.cel.program import Program, compile_expression
from fakeapiserver.languages.cel.types import ANY, BOOL, DYN, INT, STRING, Type, map_of, struct
from fakeapiserver.languages.cel.values import Sparse
from fakeapiserver.languages.cel.versions import NEWEST

MAX_COST: Final = 1_000_000
MAX_LENGTH: Final = 10 * 1024
_MAX_ENTRIES: Final = 32
_DEVICE: Final = struct("kubernetes.DRADevice")
# The types that derived attributes, or the items of their lists, may have.
_ATTRIBUTES: Final = (BOOL, INT, STRING, ANY, DYN, Semver.cel_type)
_FIELDS: Final[Mapping[str, Type]] = {
    "driver": STRING,
    "allowMultipleAllocations": BOOL,
    "attributes": map_of(STRING, map_of(STRING, ANY)),
    "capacity": map_of(STRING, map_of(STRING, Quantity.cel_type)),
}
_INCLUDES: Final = Overload("dra_includes_dyn_dyn", True, (DYN, DYN), BOOL, frozenset())


@lru_cache(maxsize=8)
def _declared(shared: bool, lists: bool, version: str) -> Declared:
    fields = dict(_FIELDS)
    if not shared:
        del fields["allowMultipleAllocations"]
    if not lists:
        return Declared({"device": _DEVICE}, {_DEVICE.name: fields}, binds=True, version=version)
    # With values of any type the functions of lists can be called.
    fields["attributes"] = map_of(STRING, map_of(STRING, DYN))
    functions = {**DECLARATIONS, "includes": (_INCLUDES,)}
    return Declared({"device": _DEVICE}, {_DEVICE.name: fields}, functions, binds=True, version=version)


def _text(longest: int) -> Decl:
    return Decl("string", STRING, 2, longest)


def _map(key: Decl, element: Decl) -> Decl:
    return Decl("map", map_of(key.type, element.type), 2, _MAX_ENTRIES, element=element, key=key)


def _by_domain(element: Decl) -> Decl:
    return _map(_text(63), _map(_text(32), element))


# What the costs of expressions are reckoned by.
_DECL: Final = Decl(
    "object",
    _DEVICE,
    2,
    fields={
        "driver": _text(63),
        "allowMultipleAllocations": Decl("boolean", BOOL, 4, 1),
        "attributes": _by_domain(Decl("any", ANY, 1, 64)),
        "capacity": _by_domain(Decl("object", Quantity.cel_type, 2)),
    },
)


class Compiler(Protocol):
    """Compiles an expression for devices. Raises ValueError with upstream's text."""

    def __call__(
        self, expression: str, *, shared: bool = True, lists: bool = False, version: str = NEWEST
    ) -> Program: ...


class NotInstantiated(ValueError):
    """The expression compiles but can't run: a regular expression in it is invalid."""


@lru_cache(maxsize=1024)
def compile_selector(expression: str, *, shared: bool = True, lists: bool = False, version: str = NEWEST) -> Program:
    """Compiles an expression that selects devices.

    `shared`: devices may be (DRAConsumableCapacity); `lists`: attributes may be (DRAListTypeAttributes); `version`: Kubernetes's.
    Raises ValueError with upstream's text.
    """
    program = _compiled(expression, _declared(shared, lists, version))
    if program.type not in (BOOL, DYN if lists else ANY, ANY):
        raise ValueError(f"must evaluate to bool or the unknown type, not {program.type.declared_name}")
    return program


@lru_cache(maxsize=1024)
def compile_attribute(expression: str, *, shared: bool = True, lists: bool = False, version: str = NEWEST) -> Program:
    """Compiles the expression of a derived attribute (DRADerivedAttributes), with the options of `compile_selector`.

    Raises ValueError with upstream's text.
    """
    program = _compiled(expression, _declared(shared, lists, version))
    given = program.type
    element = given.params[0] if lists and given.kind == "list" else given
    if element not in _ATTRIBUTES:
        or_lists = " or a list of these scalars" if lists else ""
        allowed = f"a primitive scalar (string, integer, boolean, semver){or_lists}"
        raise ValueError(f"must evaluate to {allowed}, not {given.declared_name}")
    return program


def _compiled(expression: str, declared: Declared) -> Program:
    try:
        return compile_expression(expression, declared)
    except CompileError as error:
        raise ValueError(f"compilation failed: {error}") from None
    except CelError as error:
        raise NotInstantiated(f"program instantiation failed: {error}") from None


@lru_cache(maxsize=1024)
def max_cost(program: Program) -> int:
    """The most that it can cost for any device."""
    return static_cost.estimate(program.tree, _DECL)


def matches(program: Program, variables: Mapping[str, Any]) -> bool:
    """Whether a device is selected; `variables` are `variables_of` it. ValueError with upstream's text."""
    result = program.evaluate(variables, MAX_COST)
    if result.error:
        raise ValueError(result.error)
    if not isinstance(result.value, bool):
        shown = type_name(result.value)
        raise ValueError(
            f"CEL result of type {shown} could not be converted to bool: type conversion error from '{shown}' to 'bool'"
        )
    return result.value


def type_name(value: Any) -> str:
    """Returns CEL's name of a value's type."""
    return values.type_of(value).full_name


def variables_of(driver: str, device: Mapping[str, Any]) -> Mapping[str, Any]:
    """Returns the variables for a device. Raises ValueError with upstream's text for an invalid attribute."""
    attributes, capacity = Sparse(), Sparse()
    for name, row in (device.get("attributes") or {}).items():
        domain, identifier = _qualified(name, driver)
        attributes.setdefault(domain, {})[identifier] = _attribute(name, row)
    for name, row in (device.get("capacity") or {}).items():
        domain, identifier = _qualified(name, driver)
        capacity.setdefault(domain, {})[identifier] = FUNCTIONS["string_to_quantity"](str(row["value"]))
    shared = bool(device.get("allowMultipleAllocations"))
    return {
        "device": {
            "driver": driver,
            "allowMultipleAllocations": shared,
            "attributes": attributes,
            "capacity": capacity,
        }
    }


def _qualified(name: str, driver: str) -> tuple[str, str]:
    domain, slash, identifier = name.partition("/")
    return (domain, identifier) if slash else (driver, name)


def _attribute(name: str, row: Mapping[str, Any]) -> int | bool | str | Semver:
    for kind in ("int", "bool", "string"):
        if row.get(kind) is not None:
            attribute: int | bool | str = row[kind]
            return attribute
    if row.get("version") is None:
        raise ValueError(f"attribute {name}: unsupported attribute value")
    try:
        version: Semver = FUNCTIONS["string_to_semver"](row["version"])
    except CelError as error:
        raise ValueError(f"attribute {name}: parse semantic version: {error}") from None
    return version
