"""From text to filters (upstream: github.com/itchyny/gojq/parser.go.y, query.go)."""

from collections.abc import Callable, Sequence
from typing import Final

from fakeapiserver.languages.jq import filters, values
from fakeapiserver.languages.jq.builtins.formats import format_of
from fakeapiserver.languages.jq.builtins.functions import FUNCTIONS
from fakeapiserver.languages.jq.builtins.generators import FILTERS
from fakeapiserver.languages.jq.errors import JqSyntaxError
from fakeapiserver.languages.jq.filters import Filter
from fakeapiserver.languages.jq.lexer import Token
from fakeapiserver.languages.jq.patterns import Pattern, array_pattern, object_pattern, unset_before
from fakeapiserver.languages.jq.token_reader import TokenReader

_MAX_DEPTH: Final = 100
_KEYWORDS: Final = frozenset(
    (
        "def",
        "and",
        "or",
        "if",
        "then",
        "elif",
        "else",
        "end",
        "try",
        "catch",
        "reduce",
        "foreach",
        "as",
        "label",
        "import",
    )
)
_COMPARISONS: Final[dict[str, Callable[[int], bool]]] = {
    "==": lambda order: order == 0,
    "!=": lambda order: order != 0,
    "<": lambda order: order < 0,
    "<=": lambda order: order <= 0,
    ">": lambda order: order > 0,
    ">=": lambda order: order >= 0,
}
_ARITHMETIC: Final = {
    "+": values.add,
    "-": values.subtract,
    "*": values.multiply,
    "/": values.divide,
    "%": values.modulo,
}


class Parser(TokenReader):
    """Parses a query or the definitions of a module. `functions`: the name and number of parameters of each that is defined outside."""

    def __init__(self, tokens: Sequence[Token], functions: frozenset[tuple[str, int]]) -> None:
        super().__init__(tokens)
        self._depth = 0
        self._functions = functions
        self._variables: frozenset[str] = frozenset()

    def whole(self) -> Filter:
        query = filters.identity if self._next.kind == "end" else self._query()
        if self._next.kind != "end":
            raise self._unexpected()
        return query

    def _query(self) -> Filter:
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise JqSyntaxError("the query is nested too deep")
        try:
            return self._pipe()
        finally:
            self._depth -= 1

    def _pipe(self) -> Filter:
        if self._is("def"):
            before = self._functions
            name, params, body = self.definition()
            self._functions |= {(name, len(params))}
            rest = self._pipe()
            self._functions = before
            return filters.definition(name, params, body, rest)
        if self._took("label"):
            name = self._variable()
            self._expect("|")
            before_names, self._variables = self._variables, self._variables | {"*" + name}
            body = self._pipe()
            self._variables = before_names
            return filters.label(name, body)
        filter_ = self._comma()
        return filters.pipe(filter_, self._query()) if self._took("|") else filter_

    def _binding(self, source: Filter) -> Filter:
        names: set[str] = set()
        patterns = [self._pattern(names)]
        while self._took("?//"):
            patterns.append(self._pattern(names))
        self._expect("|")
        before, self._variables = self._variables, self._variables | names
        body = self._query()
        self._variables = before
        unset = dict.fromkeys(names)
        wrapped = [unset_before(unset, pattern) for pattern in patterns] if len(patterns) > 1 else patterns
        return filters.bound(source, wrapped, body)

    def definition(self) -> tuple[str, Sequence[str], Filter]:
        """`def name(params): body;`"""
        self._expect("def")
        if self._next.kind != "name":
            raise self._unexpected("a function needs a name")
        name = self._take().text
        params: list[str] = []
        if self._took("("):
            while True:
                if self._next.kind not in ("name", "variable"):
                    raise self._unexpected()
                params.append(self._take().text)
                if not self._took(";"):
                    break
            self._expect(")")
        self._expect(":")
        functions, variables = self._functions, self._variables
        self._functions |= {(name, len(params)), *((param.removeprefix("$"), 0) for param in params)}
        self._variables |= {param for param in params if param.startswith("$")}
        body = self._query()
        self._functions, self._variables = functions, variables
        self._expect(";")
        return name, params, body

    def _comma(self) -> Filter:
        filter_ = self._alternative()
        while self._took(","):
            filter_ = filters.both(filter_, self._alternative())
        return filter_

    def _alternative(self) -> Filter:
        left = self._update()
        return filters.alternative(left, self._alternative()) if self._took("//") else left

    def _update(self) -> Filter:
        left = self._or()
        if not self._is("=", "|=", "+=", "-=", "*=", "/=", "%=", "//="):
            return left
        operator = self._take().text
        right = self._alternative()
        if operator == "|=":
            return filters.updated(left, right)
        if operator == "=":
            return filters.assigned(left, right, lambda old, new: new)
        if operator == "//=":
            return filters.assigned(left, right, lambda old, new: old if values.truthy(old) else new)
        return filters.assigned(left, right, _ARITHMETIC[operator[0]])

    def _or(self) -> Filter:
        filter_ = self._and()
        while self._took("or"):
            filter_ = filters.conjunction(filter_, self._and(), stops_at=True)
        return filter_

    def _and(self) -> Filter:
        filter_ = self._comparison()
        while self._took("and"):
            filter_ = filters.conjunction(filter_, self._comparison(), stops_at=False)
        return filter_

    def _comparison(self) -> Filter:
        left = self._sum()
        if not self._is(*_COMPARISONS):
            return left
        test = _COMPARISONS[self._take().text]
        return filters.binary(lambda a, b: test(values.compare(a, b)), left, self._sum())

    def _sum(self) -> Filter:
        filter_ = self._product()
        while self._is("+", "-"):
            operation = _ARITHMETIC[self._take().text]
            filter_ = filters.binary(operation, filter_, self._product())
        return filter_

    def _product(self) -> Filter:
        filter_ = self._unary()
        while self._is("*", "/", "%"):
            operation = _ARITHMETIC[self._take().text]
            filter_ = filters.binary(operation, filter_, self._unary())
        return filter_

    def _unary(self) -> Filter:
        if self._took("-"):
            return filters.negative(self._unary())
        return self._postfix()

    # ----------------------------------------------------------------- terms

    def _postfix(self, *, binds: bool = True) -> Filter:
        """A term and what follows it. `binds`: also `as $x | body`."""
        filter_ = self._term()
        while True:
            if self._next.kind == "field":
                filter_ = filters.index(filter_, filters.literal(self._take().text[1:]))
            elif self._took("."):
                if self._next.kind == "string":
                    filter_ = filters.index(filter_, self._string(self._take(), ""))
                elif not self._is("["):
                    raise self._unexpected()
            elif self._took("["):
                filter_ = self._bracket(filter_)
            elif self._took("?"):
                filter_ = filters.attempt(filter_, None)
            elif binds and self._took("as"):
                return self._binding(filter_)
            else:
                return filter_

    def _bracket(self, term: Filter) -> Filter:
        if self._took("]"):
            return filters.iterate(term)
        if self._took(":"):
            end = self._query()
            self._expect("]")
            return filters.piece(term, None, end)
        start = self._query()
        if self._took(":"):
            last = None if self._is("]") else self._query()
            self._expect("]")
            return filters.piece(term, start, last)
        self._expect("]")
        return filters.index(term, start)

    def _term(self) -> Filter:
        token = self._take()
        match token.kind:
            case "number":
                return filters.literal(_number(token.text))
            case "string":
                return self._string(token, "")
            case "format":
                if self._next.kind == "string":
                    return self._string(self._take(), token.text)
                return filters.native(format_of(token.text), [])
            case "field":
                return filters.index(filters.identity, filters.literal(token.text[1:]))
            case "variable":
                return self._reference(token)
            case "name":
                return self._word(token)
            case "operator":
                return self._punctuated(token)
        self._at -= 1
        raise self._unexpected()

    def _punctuated(self, token: Token) -> Filter:
        match token.text:
            case ".":
                if self._next.kind == "string":
                    return filters.index(filters.identity, self._string(self._take(), ""))
                return filters.identity
            case "..":
                return filters.call("recurse", [])
            case "(":
                filter_ = self._query()
                self._expect(")")
                return filter_
            case "[":
                if self._took("]"):
                    return filters.literal([])
                body = self._query()
                self._expect("]")
                return filters.array(body)
            case "{":
                return self._object()
            case "-":
                return filters.negative(self._postfix())
        self._at -= 1
        raise self._unexpected()

    def _reference(self, token: Token) -> Filter:
        if token.text == "$ENV":
            return filters.literal({})
        if token.text not in self._variables:
            raise JqSyntaxError(f"variable not defined: {token.text}")
        return filters.variable(token.text)

    def _word(self, token: Token) -> Filter:
        match token.text:
            case "null":
                return filters.literal(None)
            case "true" | "false":
                return filters.literal(token.text == "true")
            case "if":
                return self._if()
            case "try":
                body = self._postfix()
                handler = self._postfix() if self._took("catch") else None
                return filters.attempt(body, handler)
            case "reduce":
                source, pattern, (start, update) = self._loop(2, 2)
                return filters.reduction(source, pattern, start, update)
            case "foreach":
                source, pattern, parts = self._loop(2, 3)
                start, update, extract = (*parts, filters.identity)[:3]
                return filters.running(source, pattern, start, update, extract)
            case "break":
                name = self._variable()
                if "*" + name not in self._variables:
                    raise JqSyntaxError(f"label not defined: {name}")
                return filters.leave(name)
            case "def":
                self._at -= 1
                return self._pipe()
        if token.text in _KEYWORDS:
            self._at -= 1
            raise self._unexpected()
        return self._call(token.text)

    def _call(self, name: str) -> Filter:
        arguments: list[Filter] = []
        if self._took("("):
            arguments.append(self._query())
            while self._took(";"):
                arguments.append(self._query())
            self._expect(")")
        key = (name, len(arguments))
        if key in self._functions:
            return filters.call(name, arguments)
        if key in FILTERS:
            return FILTERS[key](*arguments)
        if key in FUNCTIONS:
            return filters.native(FUNCTIONS[key], arguments)
        raise JqSyntaxError(f"function not defined: {name}/{len(arguments)}")

    def _if(self) -> Filter:
        test = self._query()
        self._expect("then")
        then = self._query()
        otherwise: Filter = filters.identity
        if self._took("elif"):
            otherwise = self._if()
            return filters.condition(test, then, otherwise)
        if self._took("else"):
            otherwise = self._query()
        self._expect("end")
        return filters.condition(test, then, otherwise)

    def _loop(self, least: int, most: int) -> tuple[Filter, Pattern, Sequence[Filter]]:
        source = self._postfix(binds=False)
        self._expect("as")
        names: set[str] = set()
        pattern = self._pattern(names)
        self._expect("(")
        parts = [self._query()]
        before, self._variables = self._variables, self._variables | names
        while self._took(";"):
            parts.append(self._query())
        self._variables = before
        self._expect(")")
        if not least <= len(parts) <= most:
            raise self._unexpected()
        return source, pattern, parts

    def _pattern(self, names: set[str]) -> Pattern:
        if self._next.kind == "variable":
            name = self._take().text
            names.add(name)
            return lambda env, value, output: iter([env.bind({name: output})])
        if self._took("["):
            items = [self._pattern(names)]
            while self._took(","):
                items.append(self._pattern(names))
            self._expect("]")
            return array_pattern(items)
        self._expect("{")
        entries = [self._pattern_entry(names)]
        while self._took(","):
            entries.append(self._pattern_entry(names))
        self._expect("}")
        return object_pattern(entries)

    def _pattern_entry(self, names: set[str]) -> tuple[Filter, str, Pattern | None]:
        """(key, the variable the value is bound to, what the value is taken apart by)."""
        token = self._take()
        if token.kind == "variable":
            names.add(token.text)
            inner = self._pattern(names) if self._took(":") else None
            return filters.literal(token.text[1:]), token.text, inner
        if token.kind == "name":
            key = filters.literal(token.text)
        elif token.kind == "string":
            key = self._string(token, "")
        elif token.text == "(":
            key = self._query()
            self._expect(")")
        else:
            self._at -= 1
            raise self._unexpected()
        self._expect(":")
        return key, "", self._pattern(names)

    def _object(self) -> Filter:
        entries: list[tuple[Filter, Filter]] = []
        while not self._took("}"):
            entries.append(self._entry())
            if not self._took(","):
                self._expect("}")
                break
        return filters.mapping(entries)

    def _entry(self) -> tuple[Filter, Filter]:
        token = self._take()
        short: Filter
        if token.kind == "variable":
            key, short = filters.literal(token.text.removeprefix("$")), self._reference(token)
        elif token.kind in ("name", "number"):
            key = filters.literal(token.text)
            short = filters.index(filters.identity, key)
        elif token.kind in ("string", "format"):
            text = self._take() if token.kind == "format" else token
            if text.kind != "string":
                raise self._unexpected()
            key = self._string(text, token.text if token.kind == "format" else "")
            short = filters.index(filters.identity, key)
        elif token.text == "(":
            key = self._query()
            self._expect(")")
            self._expect(":")
            return key, self._entry_value()
        else:
            self._at -= 1
            raise self._unexpected()
        return (key, self._entry_value()) if self._took(":") else (key, short)

    def _entry_value(self) -> Filter:
        filter_ = self._alternative()
        while self._took("|"):
            filter_ = filters.pipe(filter_, self._alternative())
        return filter_

    def _string(self, token: Token, name: str) -> Filter:
        format_ = format_of(name or "@text")
        filter_: Filter | None = None
        for part in token.parts:
            if isinstance(part, str):
                piece = filters.literal(part)
            else:
                inner = Parser(part, self._functions)
                inner._variables = self._variables
                inner._depth = self._depth
                piece = filters.pipe(inner.whole(), filters.native(format_, []))
            filter_ = piece if filter_ is None else filters.binary(values.add, filter_, piece)
        assert filter_ is not None
        return filter_


def _number(text: str) -> int | float:
    if text.isdigit():
        return int(text) if len(text) < 400 else float("inf")
    return float(text)
