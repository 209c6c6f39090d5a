"""Expressions to syntax trees, with cel-go's syntax errors.

Upstream: github.com/google/cel-go/parser/{parser.go,gen/CEL.g4}

Upstream's parser is ANTLR's, which repairs what it can and goes on. Here as there, a token too many or a missing bracket is
reported and the parser goes on; at what can't be repaired that simply, this parser stops.
"""

from typing import Final

from fakeapiserver.languages.cel.ast import Call, Entry, Expr, Ident, ListExpr, Literal, MapExpr, Select, Struct
from fakeapiserver.languages.cel.errors import CompileError, Issue
from fakeapiserver.languages.cel.lexer import END, Token, UnescapeError, tokens, unescape
from fakeapiserver.languages.cel.macros import MacroError, expand
from fakeapiserver.languages.cel.values import UInt

MAX_CODE_POINTS: Final = 100_000
MAX_DEPTH: Final = 250
_RESERVED: Final = frozenset(
    [
        "as",
        "break",
        "const",
        "continue",
        "else",
        "false",
        "for",
        "function",
        "if",
        "import",
        "in",
        "let",
        "loop",
        "package",
        "namespace",
        "null",
        "return",
        "true",
        "var",
        "void",
        "while",
    ]
)
_LITERALS: Final = ("true", "false", "null", "NUM_FLOAT", "NUM_INT", "NUM_UINT", "STRING", "BYTES", "IDENTIFIER")
_EXPR_START: Final = ("[", "{", "(", ".", "-", "!", *_LITERALS)
_OPT_START: Final = ("[", "{", "(", ".", "-", "!", "?", *_LITERALS)
_LIST_START: Final = ("[", "]", "{", "(", ".", ",", "-", "!", "?", *_LITERALS)
_MAP_START: Final = ("[", "{", "}", "(", ".", ",", "-", "!", "?", *_LITERALS)
_NAME_START: Final = ("IDENTIFIER", "ESC_IDENTIFIER")
_FIELDS_START: Final = ("}", ",", "?", *_NAME_START)
_ARGS_START: Final = ("[", "{", "(", ")", ".", "-", "!", *_LITERALS)
_OPERATORS: Final = {
    **dict.fromkeys(("<", "<=", ">=", ">", "==", "!=", "in"), 3),
    **dict.fromkeys(("+", "-"), 4),
    **dict.fromkeys(("*", "/", "%"), 5),
}
_AFTER_MEMBER: Final = frozenset({*_OPERATORS, "&&", "||", "?", ".", "["})
_INT64: Final = 1 << 63
_LIMIT_DIGITS: Final = len(str(2 * _INT64))


class _Stop(Exception):
    """After an error that can't be repaired."""


def parse(source: str, *, binds: bool = False, escapes: bool = False, macros: bool = True) -> Expr:
    """Parses an expression. Raises CompileError for an invalid one.

    `binds`: cel.bind is allowed. `escapes`: names of fields may be in backquotes. Without `macros`, calls of macros stay calls.
    """
    if len(source) > MAX_CODE_POINTS:
        message = f"expression code point size exceeds limit: size: {len(source)}, limit {MAX_CODE_POINTS}"
        raise CompileError(source, [Issue(None, message)])
    lexed, issues = tokens(source)
    parser = _Parser(source, lexed, issues, binds, macros)
    parser.escapes = escapes
    tree: Expr | None = None
    try:
        tree = parser.start()
    except _Stop:
        pass
    except RecursionError:
        issues.append(_too_deep())
    if issues or tree is None:
        raise CompileError(source, issues)
    return tree


def _too_deep() -> Issue:
    return Issue(None, f"Internal error: expression recursion limit exceeded: {MAX_DEPTH}")


def _listed(kinds: tuple[str, ...]) -> str:
    shown = [kind if kind.isupper() or kind == END else f"'{kind}'" for kind in kinds]
    return shown[0] if len(shown) == 1 else "{" + ", ".join(shown) + "}"


class _Parser:
    def __init__(self, source: str, lexed: list[Token], issues: list[Issue], binds: bool, macros: bool) -> None:
        self._source = source
        self._binds = binds
        self._macros = macros
        self.escapes = False
        self._tokens = lexed
        self._issues = issues
        self._next = 0
        self._depth = 0
        # From an error on until a token fits again, nothing is reported.
        self._recovering = False
        self._resynced = -1
        # What may stand behind the expression being read.
        self._follow: list[tuple[str, ...]] = [(END,)]

    # ------------------------------------------------------------ tokens

    @property
    def _token(self) -> Token:
        return self._tokens[self._next]

    @property
    def _kind(self) -> str:
        return self._tokens[self._next].kind

    def _take(self) -> Token:
        token = self._tokens[self._next]
        if token.kind != END:
            self._next += 1
        self._recovering = False
        return token

    def _accept(self, kind: str) -> Token | None:
        return self._take() if self._kind == kind else None

    def _syntax_error(self, message: str) -> None:
        if not self._recovering:
            self._issues.append(Issue(self._token.at, f"Syntax error: {message}"))
        self._recovering = True

    def _resync(self, extra: tuple[str, ...] = ()) -> None:
        """Goes on to a token that may stand behind the expression that failed or behind one around it."""
        if self._resynced == self._next and self._kind != END:
            self._next += 1
        ends = {END, *extra, *(kind for follow in self._follow for kind in follow)}
        if len(self._follow) > 1:
            ends |= {".", "["}
        while self._kind not in ends:
            self._next += 1
        self._resynced = self._next

    def _report(self, at: int, message: str) -> Expr:
        self._issues.append(Issue(at, message))
        return Literal(at, None)

    def _mismatch(self, expected: tuple[str, ...]) -> _Stop:
        self._syntax_error(f"mismatched input '{self._token.text}' expecting {_listed(expected)}")
        return _Stop()

    def _no_viable(self, start: Token) -> None:
        """A beginning that no rule goes on with as the text does."""
        end = self._token.at + (0 if self._kind == END else len(self._token.text))
        shown = self._source[start.at : end].replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
        self._syntax_error(f"no viable alternative at input '{shown}'")

    def _skips_one(self, expected: tuple[str, ...]) -> bool:
        """Drops a token where the next is what was expected."""
        if self._kind == END or self._tokens[self._next + 1].kind not in expected:
            return False
        self._syntax_error(f"extraneous input '{self._token.text}' expecting {_listed(expected)}")
        self._take()
        return True

    def _expect(self, kind: str, shown: tuple[str, ...] = ()) -> Token:
        if self._kind != kind and not (not shown and self._skips_one((kind,))):
            if shown and self._skips_one(shown):
                return self._expect(kind, shown)
            if kind == ":":
                is_missing = self._kind in _EXPR_START
            else:
                is_missing = not shown and (self._kind in _AFTER_MEMBER or self._kind in self._follow[-1])
            if not is_missing or kind not in (")", "]", "}", ":"):
                raise self._mismatch(shown or (kind,))
            self._syntax_error(f"missing '{kind}' at '{self._token.text}'")
            return self._token
        return self._take()

    # ------------------------------------------------------- expressions

    def start(self) -> Expr:
        tree = self._expr()
        if self._kind != END and not self._skips_one((END,)):
            raise self._mismatch((END,))
        return tree

    def _below(self, *follow: str) -> Expr:
        """An expression inside brackets."""
        self._follow.append(follow)
        tree = self._expr()
        self._follow.pop()
        return tree

    def _expr(self, starts: tuple[str, ...] = _EXPR_START) -> Expr:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            self._issues.append(_too_deep())
            raise _Stop
        if starts != _EXPR_START and self._kind not in starts and not self._skips_one(starts):
            raise self._mismatch(starts)
        tree = self._or()
        if mark := self._accept("?"):
            self._follow.append((":",))
            then = self._or()
            self._follow.pop()
            self._expect(":")
            tree = Call(mark.at, "_?_:_", None, [tree, then, self._expr()])
        self._depth -= 1
        return tree

    def _or(self) -> Expr:
        terms = [self._and()]
        at = self._token.at
        while self._accept("||"):
            terms.append(self._and())
        return Call(at, "_||_", None, terms) if len(terms) > 1 else terms[0]

    def _and(self) -> Expr:
        terms = [self._binary(3)]
        at = self._token.at
        while self._accept("&&"):
            terms.append(self._binary(3))
        return Call(at, "_&&_", None, terms) if len(terms) > 1 else terms[0]

    def _binary(self, level: int) -> Expr:
        left = self._unary()
        while (precedence := _OPERATORS.get(self._kind, 0)) >= level:
            operator = self._take()
            right = self._binary(precedence + 1)
            name = "@in" if operator.kind == "in" else f"_{operator.kind}_"
            left = Call(operator.at, name, None, [left, right])
        return left

    def _unary(self) -> Expr:
        at, follow, depth = self._token.at, len(self._follow), self._depth
        try:
            if self._kind not in _EXPR_START and not self._skips_one(_EXPR_START):
                raise self._mismatch(_EXPR_START)
            return self._signed()
        except _Stop:
            if self._depth > MAX_DEPTH:
                raise
            del self._follow[follow:]
            self._depth = depth
            self._resync((*_OPERATORS, "&&", "||", "?"))
            return Literal(at, None)

    def _signed(self) -> Expr:
        if self._kind not in ("!", "-"):
            return self._member(self._primary())
        sign = self._take()
        if sign.kind == "-" and self._kind in ("NUM_INT", "NUM_FLOAT"):
            return self._member(self._number(sign))
        count = 1
        while self._accept(sign.kind):
            count += 1
        lone = (
            sign.kind == "!" and self._kind == "-" and self._tokens[self._next + 1].kind not in ("NUM_INT", "NUM_FLOAT")
        )
        if lone:
            self._take()
        if lone or (sign.kind == "-" and self._kind == "!"):
            # Nothing begins so: the minus is read again, as one that lacks its left side.
            self._no_viable(self._tokens[self._next - 1])
            self._next -= 1
            return Literal(sign.at, None)
        if self._kind not in _EXPR_START:
            skips = sign.kind == "!" or (self._kind != END and self._tokens[self._next + 1].kind in _EXPR_START)
            if sign.kind == "-":
                self._no_viable(sign)
                self._recovering = False
            what = "extraneous" if skips else "mismatched"
            self._syntax_error(f"{what} input '{self._token.text}' expecting {_listed(_EXPR_START)}")
            raise _Stop
        operand = self._member(self._primary())
        return operand if count % 2 == 0 else Call(sign.at, f"{sign.kind}_", None, [operand])

    def _member(self, tree: Expr) -> Expr:
        while True:
            if dot := self._accept("."):
                tree = self._select(tree, dot)
            elif bracket := self._accept("["):
                optional = self._accept("?")
                starts = _EXPR_START if optional else _OPT_START
                self._follow.append(("]",))
                index = self._expr(starts)
                self._follow.pop()
                self._expect("]")
                tree = Call(bracket.at, "_[?_]" if optional else "_[_]", None, [tree, index])
            else:
                return tree

    def _select(self, operand: Expr, dot: Token) -> Expr:
        optional = self._accept("?")
        if self._kind not in ("IDENTIFIER", "ESC_IDENTIFIER"):
            if self._kind in ("true", "false", "null"):
                raise self._mismatch(("IDENTIFIER",))
            if optional:
                raise self._mismatch(("IDENTIFIER", "ESC_IDENTIFIER"))
            self._no_viable(dot)
            raise _Stop
        name = self._take()
        field = self._unescaped(name)
        if optional:
            return Call(dot.at, "_?._", None, [operand, Literal(name.at, field)])
        if self._kind == "(" and name.kind == "IDENTIFIER":
            opened = self._take()
            return self._call(opened.at, name.text, operand, self._args())
        return Select(dot.at, operand, field)

    def _unescaped(self, name: Token) -> str:
        if name.kind != "ESC_IDENTIFIER":
            return name.text
        if not self.escapes:
            self._report(name.at, "unsupported syntax: '`'")
        return name.text.strip("`")

    def _call(self, at: int, function: str, target: Expr | None, args: list[Expr]) -> Expr:
        if not self._macros:
            return Call(at, function, target, args)
        try:
            expanded = expand(at, function, target, args, binds=self._binds)
        except MacroError as error:
            return self._report(error.at, str(error))
        return Call(at, function, target, args) if expanded is None else expanded

    def _args(self) -> list[Expr]:
        if self._accept(")"):
            return []
        if self._kind not in _ARGS_START and self._skips_one(_ARGS_START) and self._accept(")"):
            return []
        args = []
        self._follow.append((")", ","))
        args.append(self._expr(_ARGS_START))
        while self._accept(","):
            args.append(self._expr())
        self._follow.pop()
        self._expect(")")
        return args

    # ----------------------------------------------------------- primary

    def _primary(self) -> Expr:
        token = self._token
        match token.kind:
            case "(":
                self._take()
                tree = self._below(")")
                self._expect(")")
                return tree
            case "[":
                return self._list()
            case "{":
                self._take()
                return MapExpr(token.at, self._entries(is_struct=False))
            case "." | "IDENTIFIER":
                return self._named()
            case "-":
                self._take()
                if self._kind in ("NUM_INT", "NUM_FLOAT"):
                    return self._number(token)
                raise self._mismatch(("NUM_FLOAT", "NUM_INT"))
            case "NUM_INT" | "NUM_FLOAT" | "NUM_UINT":
                return self._number(None)
            case "STRING" | "BYTES":
                self._take()
                is_bytes = token.kind == "BYTES"
                try:
                    return Literal(token.at, unescape(token.text[is_bytes:], is_bytes=is_bytes))
                except UnescapeError as error:
                    return self._report(token.at, str(error))
            case "true" | "false" | "null":
                self._take()
                return Literal(token.at, {"true": True, "false": False, "null": None}[token.kind])
        raise self._mismatch(_EXPR_START)

    def _number(self, sign: Token | None) -> Expr:
        token = self._take()
        at = sign.at if sign else token.at
        minus = "-" if sign else ""
        if token.kind == "NUM_FLOAT":
            value = float(minus + token.text)
            return Literal(at, value) if abs(value) != float("inf") else self._report(at, "invalid double literal")
        text = token.text.rstrip("uU")
        digits = text.removeprefix("0x").lstrip("0")
        is_short = len(digits) <= _LIMIT_DIGITS
        number = int(minus + (digits or "0"), 16 if text.startswith("0x") else 10) if is_short else 2 * _INT64
        if token.kind == "NUM_UINT":
            return Literal(at, UInt(number)) if number < 2 * _INT64 else self._report(at, "invalid uint literal")
        return Literal(at, number) if -_INT64 <= number < _INT64 else self._report(at, "invalid int literal")

    def _named(self) -> Expr:
        dot = self._accept(".")
        if self._kind != "IDENTIFIER":
            if dot is not None:
                self._no_viable(dot)
                raise _Stop
            raise self._mismatch(("IDENTIFIER",))
        token = self._take()
        at = dot.at if dot else token.at
        if (opened := self._struct_brace()) is not None:
            name = "".join(t.text for t in self._tokens[self._next - 1 : opened])
            self._next = opened
            brace = self._take()
            return Struct(brace.at, ("." if dot else "") + name, self._entries(is_struct=True))
        if token.text in _RESERVED:
            tree = self._report(at, f"reserved identifier: {token.text}")
            if self._accept("("):
                self._args()
            return tree
        name = ("." if dot else "") + token.text
        if self._kind == "(":
            bracket = self._take()
            return self._call(bracket.at, name, None, self._args())
        return Ident(token.at, name)

    def _struct_brace(self) -> int | None:
        """Returns the place of the brace of `a.b.C{`, after `a` was read."""
        at = self._next
        while self._tokens[at].kind == "." and self._tokens[at + 1].kind == "IDENTIFIER":
            at += 2
        return at if self._tokens[at].kind == "{" else None

    def _list(self) -> Expr:
        opened = self._take()
        elements: list[Expr] = []
        optionals: set[int] = set()
        self._follow.append(("]", ","))
        while self._kind not in ("]", ","):
            if self._accept("?"):
                optionals.add(len(elements))
                elements.append(self._expr())
            else:
                elements.append(self._expr(_OPT_START if elements else _LIST_START))
            if self._kind != "," or self._tokens[self._next + 1].kind not in _OPT_START:
                break
            self._take()
        self._follow.pop()
        comma = self._accept(",")
        self._expect("]", () if comma or not elements else ("]", ","))
        return ListExpr(opened.at, elements, frozenset(optionals))

    def _field_name(self) -> Expr:
        if self._kind not in _NAME_START and not self._skips_one(_NAME_START):
            raise self._mismatch(_NAME_START)
        name = self._take()
        return Literal(name.at, self._unescaped(name))

    def _entries(self, *, is_struct: bool) -> list[Entry]:
        entries: list[Entry] = []
        more = ("?", *_NAME_START) if is_struct else _OPT_START
        key: Expr
        if is_struct and self._kind not in _FIELDS_START and not self._skips_one(_FIELDS_START):
            raise self._mismatch(_FIELDS_START)
        while self._kind not in ("}", ","):
            optional = self._accept("?") is not None
            if is_struct:
                key = self._field_name()
            else:
                self._follow.append((":",))
                starts = _OPT_START if entries else _MAP_START
                key = self._expr(_EXPR_START if optional else starts)
                self._follow.pop()
            colon = self._expect(":")
            entries.append(Entry(colon.at, key, self._below("}", ","), optional))
            if self._kind != "," or self._tokens[self._next + 1].kind not in more:
                break
            self._take()
        comma = self._accept(",")
        self._expect("}", () if comma or not entries else ("}", ","))
        return entries
