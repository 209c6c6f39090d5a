"""From tokens to a tree (upstream: text/template/parse/parse.go)."""

import re
from collections.abc import Mapping, Sequence
from typing import Final

from fakeapiserver.languages.gotemplate.lexer import Token, lex, unquoted
from fakeapiserver.languages.gotemplate.tree import (
    Action,
    Branch,
    Call,
    Dot,
    Fields,
    Include,
    Leave,
    Literal,
    Node,
    Pipe,
    Term,
    Text,
    Tree,
    Variable,
)
from fakeapiserver.languages.gotemplate.values import Function, TemplateError

_MAX_DEPTH: Final = 100


def parse_tree(text: str, functions: Mapping[str, Function]) -> Tree:
    """TemplateError."""
    try:
        return _Parser(lex(text), functions).tree()
    except RecursionError:
        raise TemplateError("the template is nested too deep") from None


class _Parser:
    def __init__(self, tokens: Sequence[Token], functions: Mapping[str, Function]) -> None:
        self._tokens = tokens
        self._at = 0
        self._functions = functions
        self._variables = ["$"]
        self._ranges = 0
        self._depth = 0
        self._defined: dict[str, Sequence[Node]] = {}

    def tree(self) -> Tree:
        body, stopped = self._list(top=True)
        if stopped:
            raise self._error(f"unexpected {{{{{stopped}}}}}")
        return Tree(body, self._defined)

    def _error(self, message: str) -> TemplateError:
        return TemplateError(f"template: _:{self._tokens[min(self._at, len(self._tokens) - 1)].line}: {message}")

    def _skip_space(self) -> None:
        while self._tokens[self._at].kind == "space":
            self._at += 1

    def _next(self) -> Token:
        self._skip_space()
        token = self._tokens[self._at]
        self._at += 1
        return token

    def _peek(self) -> Token:
        self._skip_space()
        return self._tokens[self._at]

    def _list(self, *, top: bool = False) -> tuple[list[Node], str]:
        """Parses nodes up to `{{end}}`, `{{else}}` or the end; returns them and the keyword that stopped it."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise self._error("the template is nested too deep")
        nodes: list[Node] = []
        while True:
            token = self._tokens[self._at]
            if token.kind == "eof":
                if not top:
                    raise self._error("unexpected EOF")
                self._depth -= 1
                return nodes, ""
            if token.kind == "text":
                self._at += 1
                nodes.append(Text(token.text))
                continue
            word = self._peek().text if self._peek().kind == "name" else ""
            if word in ("end", "else"):
                self._next()
                if word == "end":
                    self._close()
                self._depth -= 1
                return nodes, word
            node = self._action(word, top=top)
            if node is not None:
                nodes.append(node)

    def _close(self) -> None:
        if self._next().kind != "end":
            self._at -= 1
            raise self._error(f"unexpected <{self._tokens[self._at].text}> in end")

    def _action(self, word: str, *, top: bool) -> Node | None:
        if word in ("if", "with", "range"):
            self._next()
            return self._branch(word)
        if word in ("break", "continue"):
            self._next()
            if not self._ranges:
                raise self._error(f"{{{{{word}}}}} outside {{{{range}}}}")
            self._close()
            return Leave(word)
        if word == "template":
            return self._include()
        if word in ("define", "block"):
            return self._definition(word, top=top)
        line = self._peek().line
        pipe = self._pipeline("command", "end")
        self._next()
        return Action(Pipe(pipe.commands, pipe.variables, pipe.assigns, line))

    def _branch(self, word: str) -> Branch:
        known = len(self._variables)
        pipe = self._pipeline(word, "end")
        self._next()
        self._ranges += word == "range"
        body, stopped = self._list()
        self._ranges -= word == "range"
        otherwise: Sequence[Node] = ()
        if stopped == "else":
            following = self._peek()
            if following.kind == "name" and following.text in ("if", "with") and following.text == word:
                self._next()
                otherwise = [self._branch(word)]
            else:
                self._close()
                otherwise, stopped = self._list()
                if stopped != "end":
                    raise self._error("expected end; found {{else}}")
        del self._variables[known:]
        return Branch(word, pipe, body, otherwise)

    def _include(self) -> Include:
        token = self._next()
        name = self._name("template")
        pipe = None
        if self._peek().kind != "end":
            pipe = self._pipeline("template", "end")
        self._next()
        return Include(name, pipe, token.line)

    def _name(self, context: str) -> str:
        token = self._next()
        if token.kind not in ("string", "raw"):
            raise self._error(f"unexpected <{token.text}> in {context} clause")
        return unquoted(token.text) if token.kind == "string" else token.text[1:-1]

    def _definition(self, word: str, *, top: bool) -> Node | None:
        token = self._next()
        if word == "define" and not top:
            raise self._error("unexpected {{define}}")
        name = self._name(f"{word} clause")
        pipe = None
        if word == "block":
            pipe = self._pipeline("block clause", "end")
        self._close()
        variables, self._variables, ranges, self._ranges = self._variables, ["$"], self._ranges, 0
        body, stopped = self._list()
        self._variables, self._ranges = variables, ranges
        if stopped != "end":
            raise self._error(f"unexpected {{{{else}}}} in {word} clause")
        self._defined[name] = body
        return Include(name, pipe, token.line) if word == "block" else None

    # --------------------------------------------------------------- pipelines

    def _pipeline(self, context: str, closing: str) -> Pipe:
        variables, assigns = self._declared(context)
        line = self._peek().line
        commands: list[Sequence[Term]] = []
        while True:
            token = self._peek()
            if token.kind == "end" or (token.kind == "operator" and token.text == ")"):
                wanted = token.kind if token.kind == "end" else ")"
                if wanted != closing:
                    raise self._error(f"unexpected {'right paren' if wanted == ')' else 'end of action'} in {context}")
                break
            if token.kind == "eof":
                raise self._error("unexpected EOF")
            commands.append(self._command(context))
        if not commands:
            raise self._error(f"missing value for {context}")
        for command in commands[1:]:
            if isinstance(command[0], Literal | Dot):
                raise self._error("non executable command in pipeline")
        if not assigns:
            self._variables += variables
        return Pipe(commands, variables, assigns, line)

    def _declared(self, context: str) -> tuple[list[str], bool]:
        """`$x :=`, `$x, $y :=`, `$x =`; nothing where the pipeline doesn't begin so."""
        start = self._at
        names: list[str] = []
        while self._peek().kind == "variable":
            names.append(self._next().text)
            following = self._peek()
            if following.kind == "operator" and following.text in (":=", "="):
                self._next()
                assigns = following.text == "="
                if assigns and (unknown := [name for name in names if name not in self._variables]):
                    raise self._error(f'undefined variable "{unknown[0]}"')
                return names, assigns
            if not (following.kind == "operator" and following.text == "," and context == "range" and len(names) < 2):
                break
            self._next()
        self._at = start
        return [], False

    def _command(self, context: str) -> Sequence[Term]:
        terms: list[Term] = []
        while True:
            self._skip_space()
            terms.append(self._operand(context))
            token = self._tokens[self._at]
            if token.kind == "space":
                token = self._peek()
                if token.kind == "operator" and token.text == "|":
                    self._at += 1
                    self._need_command(context)
                    return terms
                if token.kind == "end" or token.text == ")":
                    return terms
                continue
            if token.kind == "operator" and token.text == "|":
                self._at += 1
                self._need_command(context)
                return terms
            if token.kind == "end" or (token.kind == "operator" and token.text == ")"):
                return terms
            raise self._error(f"unexpected <{token.text}> in operand")

    def _need_command(self, context: str) -> None:
        token = self._peek()
        if token.kind == "end" or token.text == ")":
            raise self._error(f"missing value for {context}")

    def _operand(self, context: str) -> Term:
        term = self._term(context)
        names = []
        while self._tokens[self._at].kind == "chained":
            names.append(self._tokens[self._at].text[1:])
            self._at += 1
        if not names:
            return term
        if isinstance(term, Literal):
            what = "nil" if term.is_nil else repr(term.value)
            raise self._error(f"unexpected . after term {what}")
        if isinstance(term, Fields):
            return Fields(term.of, (*term.names, *names))
        return Fields(term, names)

    def _term(self, context: str) -> Term:
        token = self._next()
        match token.kind:
            case "name":
                return self._word(token)
            case "field":
                return Fields(Dot(), [token.text[1:]])
            case "variable":
                if token.text not in self._variables:
                    raise self._error(f'undefined variable "{token.text}"')
                return Variable(token.text)
            case "string":
                return Literal(unquoted(token.text))
            case "raw":
                return Literal(token.text[1:-1])
            case "number":
                return Literal(self._number(token.text))
            case "char":
                return Literal(ord(unquoted(token.text)[:1] or "\0"))
            case "operator" if token.text == ".":
                return Dot()
            case "operator" if token.text == "(":
                self._depth += 1
                if self._depth > _MAX_DEPTH:
                    raise self._error("the template is nested too deep")
                pipe = self._pipeline("parenthesized pipeline", ")")
                self._next()
                self._depth -= 1
                return pipe
        self._at -= 1
        raise self._error(f"unexpected <{token.text}> in {context}")

    def _word(self, token: Token) -> Term:
        if token.text in ("true", "false"):
            return Literal(token.text == "true")
        if token.text == "nil":
            return Literal(None, is_nil=True)
        function = self._functions.get(token.text)
        if function is None:
            raise self._error(f'function "{token.text}" not defined')
        return Call(function)

    def _number(self, text: str) -> int | float:
        try:
            whole = int(text, 0) if not re.fullmatch(r"[+-]?0\d+", text) else int(text, 8)
        except ValueError:
            return self._fraction(text)
        if not -(1 << 63) <= whole < 1 << 63:
            raise self._error(f"{text} overflows int")
        return whole

    def _fraction(self, text: str) -> float:
        try:
            number = float(text)
        except ValueError:
            raise self._error(f"bad number syntax: {text!r}") from None
        return number
