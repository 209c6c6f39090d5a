"""Label selectors: `app=web,tier in (a,b),!legacy,size>3`, as text and as metav1.LabelSelector.

Upstream: k8s.io/apimachinery/pkg/labels/selector.go (a grammar read by hand, so that errors read the same),
pkg/apis/meta/v1/helpers.go.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final

from msgspec import Struct

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.go.strconv import parse_int
from fakeapiserver.apimachinery.message import joined
from fakeapiserver.apimachinery.sorting import RUN, sorted_in_runs

_KEYWORDS: Final = ("in", "notin")
_BINARY: Final = ("in", "notin", "=", "==", "!=", ">", "<")
_BINARY_SHOWN: Final = "in, notin, =, ==, !=, gt, lt"
# Requirements and values that are looked at faster than looked up.
_FEW: Final = 20
# Operators that hold for a label that isn't there.
_TRUE_OF_ABSENT: Final = ("!=", "notin", "!")
# The pattern matches wherever a token ends, so that each character is read once. Upstream's lexer takes a NUL for the end of a
# token, and one where a token should start for the end of the text.
_TOKEN: Final = re.compile(r"[ \t\r\n]*+(?:(!=|==|[=!(),<>])\0?|([^\0=!(),<> \t\r\n]+)\0?|\0.*|\Z)", re.DOTALL)


class Requirement(Struct, frozen=True):
    """`operator` is one of `in notin = == != > < exists !`. `values` are sorted; exists and ! have none."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def matches(self, labels: Mapping[str, str]) -> bool:
        value = labels.get(self.key)
        match self.operator:
            case "=" | "==" | "in":
                return value is not None and value in self.values
            case "!=" | "notin":
                return value is None or value not in self.values
            case "exists":
                return value is not None
            case "!":
                return value is None
        if value is None or not _is_int64(value):
            return False
        limit = parse_int(self.values[0])
        return parse_int(value) > limit if self.operator == ">" else parse_int(value) < limit

    def __str__(self) -> str:
        if self.operator == "exists":
            return self.key
        if self.operator == "!":
            return f"!{self.key}"
        shown = ",".join(self.values)
        return (
            f"{self.key} {self.operator} ({shown})"
            if self.operator in _KEYWORDS
            else f"{self.key}{self.operator}{shown}"
        )


class Selector(Struct, frozen=True):
    """All requirements must hold; without any, everything is selected, unless `nothing`."""

    requirements: tuple[Requirement, ...] = ()
    nothing: bool = False

    @property
    def empty(self) -> bool:
        """Selects everything."""
        return not self.requirements and not self.nothing

    def matches(self, labels: Mapping[str, str]) -> bool:
        for requirement in self.requirements:  # a plain loop: lists ask this of every object
            if not requirement.matches(labels):
                return False
        return not self.nothing

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


def matcher(selector: Selector) -> Callable[[Mapping[str, str]], bool]:
    """Returns `matches` of the selector; for one with many requirements or values a function that looks up each label instead."""
    size = sum(1 + len(requirement.values) for requirement in selector.requirements)
    return selector.matches if size <= _FEW else Matcher(selector)


class Matcher:
    """Does what `Selector.matches` does, in time that doesn't grow with the number of requirements and values."""

    def __init__(self, selector: Selector) -> None:
        self._nothing = selector.nothing
        self._needed = {each.key for each in selector.requirements if each.operator not in _TRUE_OF_ABSENT}
        self._of_keys: dict[str, _OfKey] = {}
        for requirement in selector.requirements:
            self._of_keys.setdefault(requirement.key, _OfKey()).add(requirement)

    def __call__(self, labels: Mapping[str, str]) -> bool:
        if self._nothing or len(self._needed) > len(labels) or not self._needed <= labels.keys():
            return False
        of_keys = self._of_keys
        return all(key not in of_keys or of_keys[key].matches(value) for key, value in labels.items())


class _OfKey:
    """The requirements of one key: of their values, and those of each other kind, of which only one counts."""

    def __init__(self) -> None:
        self._among: set[str] | None = None
        self._excluded: set[str] = set()
        self._others: dict[str, Requirement] = {}

    def add(self, requirement: Requirement) -> None:
        match requirement.operator:
            case "=" | "==" | "in":
                values = set(requirement.values)
                self._among = values if self._among is None else self._among & values
            case "!=" | "notin":
                self._excluded.update(requirement.values)
            case ">" | "<" as operator:
                known = self._others.get(operator)
                limit = parse_int(requirement.values[0])
                if known is None or (limit > parse_int(known.values[0])) == (operator == ">"):
                    self._others[operator] = requirement
            case operator:
                self._others[operator] = requirement

    def matches(self, value: str) -> bool:
        if value in self._excluded or (self._among is not None and value not in self._among):
            return False
        return all(requirement.matches({requirement.key: value}) for requirement in self._others.values())


EVERYTHING: Final = Selector()
NOTHING: Final = Selector(nothing=True)


def parse(text: str) -> Selector:
    """Parses a label selector. Raises ValueError with upstream's text for an invalid one."""
    return Selector(tuple(_in_order(_Parser(text).requirements())))


def _in_order(requirements: list[Requirement]) -> list[Requirement]:
    """Sorts requirements by key; those of one key stay in their order."""
    if len(requirements) <= RUN:
        return sorted(requirements, key=lambda requirement: requirement.key)
    numbered = [(requirement.key, number, requirement) for number, requirement in enumerate(requirements)]
    return [requirement for _, _, requirement in sorted_in_runs(numbered)]


def from_label_selector(selector: Mapping[str, Any] | None) -> Selector:
    """A metav1.LabelSelector: None selects nothing, an empty one everything. ValueError for unknown operators."""
    if selector is None:
        return NOTHING
    requirements = [Requirement(key, "=", (value,)) for key, value in (selector.get("matchLabels") or {}).items()]
    operators = {"In": "in", "NotIn": "notin", "Exists": "exists", "DoesNotExist": "!"}
    for expression in selector.get("matchExpressions") or ():
        operator = operators.get(expression.get("operator", ""))
        if operator is None:
            raise ValueError(f'"{expression.get("operator", "")}" is not a valid label selector operator')
        requirements.append(
            Requirement(expression["key"], operator, tuple(sorted(set(expression.get("values") or ()))))
        )
    return Selector(tuple(sorted(requirements, key=lambda requirement: requirement.key)))


def go_text(selector: Mapping[str, Any] | None) -> str:
    """A metav1.LabelSelector as Go prints it (LabelSelector.String in generated.pb.go)."""
    if selector is None:
        return "nil"
    own = "".join(f"{key}: {value}," for key, value in sorted((selector.get("matchLabels") or {}).items()))
    required = "".join(
        f"LabelSelectorRequirement{{Key:{each.get('key', '')},Operator:{each.get('operator', '')},"
        f"Values:[{' '.join(each.get('values') or ())}],}},"
        for each in selector.get("matchExpressions") or ()
    )
    return (
        f"&LabelSelector{{MatchLabels:map[string]string{{{own}}},"
        f"MatchExpressions:[]LabelSelectorRequirement{{{required}}},}}"
    )


class _Parser:
    """Recursive descent over tokens: (kind, text), kind being the symbol itself, `identifier`, `end` or `error`."""

    def __init__(self, text: str) -> None:
        self._tokens = _tokens(text)
        self._current = next(self._tokens)

    def requirements(self) -> list[Requirement]:
        requirements: list[Requirement] = []
        while True:
            kind, text = self._peek()
            if kind == "end":
                return requirements
            if kind not in ("identifier", "!"):
                raise ValueError(f"found '{text}', expected: !, identifier, or 'end of string'")
            try:
                requirements.append(self._requirement())
            except ValueError as error:
                raise ValueError(f"unable to parse requirement: {error}") from None
            kind, text = self._next()
            if kind == "end":
                return requirements
            if kind != ",":
                raise ValueError(f"found '{text}', expected: ',' or 'end of string'")
            kind, text = self._peek()
            if kind not in ("identifier", "!"):
                raise ValueError(f"found '{text}', expected: identifier after ','")

    def _requirement(self) -> Requirement:
        kind, text = self._next()
        negated = kind == "!"
        if negated:
            kind, text = self._next()
        if kind != "identifier":
            raise ValueError(f"found '{text}', expected: identifier")
        if problems := names.is_qualified_name(text):
            raise ValueError(str(field.invalid(Path(), text, "; ".join(problems))))
        if negated:
            return Requirement(text, "!")
        if self._peek()[0] in ("end", ","):
            return Requirement(text, "exists")
        operator = self._operator()
        values = self._values() if operator in _KEYWORDS else self._exact_value()
        return _checked(text, operator, sorted(set(values)))

    def _operator(self) -> str:
        kind, text = self._next()
        operator = text if kind == "identifier" else kind
        if operator not in _BINARY:
            raise ValueError(f"found '{text}', expected: {_BINARY_SHOWN}")
        return operator

    def _values(self) -> list[str]:
        kind, text = self._next()
        if kind != "(":
            raise ValueError(f"found '{text}' expected: '('")
        kind, text = self._peek()
        if kind == ")":
            self._next()
            return [""]
        if kind not in ("identifier", ","):
            raise ValueError(f"found '{text}', expected: ',', ')' or identifier")
        values = self._identifiers()
        if self._next()[0] != ")":
            raise ValueError(f"found '{text}', expected: ')'")
        return values

    def _identifiers(self) -> list[str]:
        """Values separated by commas; nothing between two commas is the empty value."""
        values: list[str] = []
        while True:
            kind, text = self._next()
            following, following_text = self._peek()
            if kind == "identifier":
                values.append(text)
                if following == ")":
                    return values
                if following != ",":
                    raise ValueError(f"found '{following_text}', expected: ',' or ')'")
            elif kind == ",":
                if not values or following in (",", ")"):
                    values.append("")
                if following == ")":
                    return values
            else:
                raise ValueError(f"found '{text}', expected: ',', or identifier")

    def _exact_value(self) -> list[str]:
        if self._peek()[0] in ("end", ","):
            return [""]
        kind, text = self._next()
        if kind != "identifier":
            raise ValueError(f"found '{text}', expected: identifier")
        return [text]

    def _peek(self) -> tuple[str, str]:
        return self._current

    def _next(self) -> tuple[str, str]:
        """Returns the token and goes on to the next one; the end is the last."""
        token = self._current
        self._current = next(self._tokens, token)
        return token


def _tokens(text: str) -> Iterator[tuple[str, str]]:
    """Yields each token when it is needed: a list of all of them would be one long call."""
    for match in _TOKEN.finditer(text):
        symbol, identifier = match.groups("")
        if symbol or identifier:
            yield symbol or "identifier", symbol or identifier
    yield "end", ""


def _is_int64(text: str) -> bool:
    try:
        parse_int(text)
    except ValueError:
        return False
    return True


def _checked(key: str, operator: str, values: Sequence[str]) -> Requirement:
    errors: ErrorList = []
    path = Path("values")
    if operator in (">", "<"):
        detail = "for 'Gt', 'Lt' operators, the value must be an integer"
        errors += [field.invalid(path.index(i), v, detail) for i, v in enumerate(values) if not _is_int64(v)]
    for i, value in enumerate(values):
        if problems := names.is_valid_label_value(value):
            errors.append(field.invalid(path.index(i).key(key), value, joined("; ", problems)))
    if errors:
        texts = list(dict.fromkeys(map(str, errors)))
        raise ValueError(texts[0] if len(texts) == 1 else f"[{', '.join(texts)}]")
    return Requirement(key, operator, tuple(values))
