"""Parses shell scripts into trees. Pure.

Upstream: POSIX.1-2017, Shell Command Language, 2.10 (the grammar). Not understood, and reported as NotFollowed:
pipes, background jobs,
here-documents, functions, `case`, and patterns in expansions (`${NAME%suffix}`).
"""

import re
from functools import lru_cache
from typing import Final

from fakeapiserver.nodes.shell.tree import (
    AndOr,
    Arithmetic,
    For,
    If,
    Literal,
    Loop,
    Node,
    Not,
    NotFollowed,
    Part,
    Redirect,
    Redirected,
    Sequence,
    Simple,
    Subshell,
    Substitution,
    Variable,
    Word,
)

_MAX_DEPTH: Final = 40
_NAME: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_SPECIAL: Final = frozenset("?$#@*0123456789")
_OPERATORS: Final = ("&&", "||", ";;", ";", "\n", "&", "|", "(", ")")
_REDIRECT: Final = re.compile(r"(\d?)(>>|>&|<&|<<|<>|>\||>|<)|(&>)")
_BREAKS: Final = frozenset(" \t\n;&|()<>")
_EXPANSION: Final = re.compile(r"(:?[-=?+])")
_KEYWORDS: Final = frozenset(
    (
        "if",
        "then",
        "elif",
        "else",
        "fi",
        "while",
        "until",
        "for",
        "do",
        "done",
        "case",
        "esac",
        "{",
        "}",
        "!",
        "function",
        "in",
    )
)
_UNSUPPORTED: Final = frozenset(("case", "function", "select"))


@lru_cache(maxsize=512)
def parse(script: str) -> Node:
    """The tree of a script. NotFollowed: it has something that isn't understood."""
    parser = _Parser(script.replace("\\\n", ""))
    node = parser.sequence(())
    if not parser.at_end:
        raise NotFollowed(f"the syntax at {parser.rest!r}")
    return node


class _Parser:
    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._depth = 0

    @property
    def at_end(self) -> bool:
        self._skip_blanks()
        return self._at >= len(self._text)

    @property
    def rest(self) -> str:
        """Returns the next characters, for messages."""
        return self._text[self._at : self._at + 20]

    @property
    def _where(self) -> str:
        return repr(self.rest) if self.rest else "the end"

    # ---------------------------------------------------------------------- commands

    def sequence(self, ends: tuple[str, ...]) -> Sequence:
        """Commands until one of the keywords or closing brackets `ends`, which is left to the caller."""
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise NotFollowed(f"commands nested more than {_MAX_DEPTH} deep")
        items: list[Node] = []
        while True:
            while self._operator() in (";", "\n"):
                self._take(self._operator())
            if self.at_end or self._operator() == ")" or self._keyword() in ends:
                break
            items.append(self._and_or())
            if self._operator() in ("&", "|", "(", ";;"):
                raise NotFollowed(f"{self._operator()!r}")
        self._depth -= 1
        return Sequence(tuple(items))

    def _and_or(self) -> Node:
        first, others = self._negated(), []
        while (operator := self._operator()) in ("&&", "||"):
            self._take(operator)
            while self._operator() == "\n":
                self._take("\n")
            others.append((operator, self._negated()))
        return AndOr(first, tuple(others)) if others else first

    def _negated(self) -> Node:
        is_negated = False
        while self._keyword() == "!":
            self._take("!")
            is_negated = not is_negated
        node = self._command()
        redirects = self._redirects()
        node = Redirected(node, redirects) if redirects else node
        return Not(node) if is_negated else node

    def _command(self) -> Node:
        self._skip_blanks()
        if self._operator() == "(":
            self._take("(")
            body = self.sequence(())
            self._take(")")
            return Subshell(body)
        match self._keyword():
            case "if":
                return self._if()
            case "while" | "until" as kind:
                self._take(kind)
                condition = self.sequence(("do",))
                return Loop(condition, self._do(), kind == "until")
            case "for":
                return self._for()
            case "{":
                self._take("{")
                body = self.sequence(("}",))
                self._take("}")
                return body
            case keyword if keyword in _UNSUPPORTED:
                raise NotFollowed(f"{keyword!r}")
        return self._simple()

    def _if(self) -> Node:
        branches: list[tuple[Node, Node]] = []
        otherwise: Node | None = None
        self._take("if")
        while True:
            condition = self.sequence(("then",))
            self._take("then")
            branches.append((condition, self.sequence(("elif", "else", "fi"))))
            if self._keyword() == "elif":
                self._take("elif")
                continue
            if self._keyword() == "else":
                self._take("else")
                otherwise = self.sequence(("fi",))
            self._take("fi")
            return If(tuple(branches), otherwise)

    def _for(self) -> Node:
        self._take("for")
        self._skip_blanks()
        match = _NAME.match(self._text, self._at)
        if match is None:
            raise NotFollowed(f"the loop at {self.rest!r}")
        self._at = match.end()
        words: list[Word] | None = None
        if self._keyword() == "in":
            self._take("in")
            words = []
            while (word := self._word()) is not None:
                words.append(word)
        while self._operator() in (";", "\n"):
            self._take(self._operator())
        return For(match[0], None if words is None else tuple(words), self._do())

    def _do(self) -> Node:
        self._take("do")
        body = self.sequence(("done",))
        self._take("done")
        return body

    def _simple(self) -> Node:
        assignments: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirects: list[Redirect] = []
        while True:
            self._skip_blanks()
            if leading := self._redirects():
                redirects += leading
            elif not words and (assignment := self._assignment()) is not None:
                assignments.append(assignment)
            elif (word := self._word()) is not None:
                words.append(word)
            else:
                break
        if self._operator() == "(":
            raise NotFollowed("a function")
        if not (assignments or words or redirects) or (words and words[0].plain in _KEYWORDS - {"in", "!"}):
            raise NotFollowed(f"the syntax at {self._where}")
        simple = Simple(tuple(assignments), tuple(words))
        return Redirected(simple, tuple(redirects)) if redirects else simple

    def _assignment(self) -> tuple[str, Word] | None:
        match = _NAME.match(self._text, self._at)
        if match is None or self._text[match.end() : match.end() + 1] != "=":
            return None
        self._at = match.end() + 1
        at_value = self._at < len(self._text) and self._text[self._at] not in _BREAKS
        return match[0], (self._word() if at_value else None) or Word(())

    def _redirects(self) -> tuple[Redirect, ...]:
        redirects: list[Redirect] = []
        while True:
            self._skip_blanks()
            match = _REDIRECT.match(self._text, self._at)
            if match is None:
                return tuple(redirects)
            operator = match[3] or match[2]
            if operator in ("<<", "<>", "<&"):
                raise NotFollowed(f"{operator!r}")
            self._at = match.end()
            target = self._word()
            if target is None:
                raise NotFollowed(f"the redirection at {self.rest!r}")
            descriptor = int(match[1]) if match[1] else 0 if operator == "<" else 1
            redirects.append(Redirect(descriptor, ">" if operator == ">|" else operator, target))

    # ------------------------------------------------------------------------- words

    def _word(self) -> Word | None:
        """The next word; None where an operator or the end is."""
        self._skip_blanks()
        parts: list[Part] = []
        text = self._text
        begin = self._at
        while self._at < len(text) and (char := text[self._at]) not in _BREAKS:
            if char == "'":
                parts.append(Literal(self._until("'"), True))
            elif char == '"':
                self._at += 1
                parts += self._quoted('"') or [Literal("", True)]
            elif char == "\\":
                parts.append(Literal(text[self._at + 1 : self._at + 2], True))
                self._at += 2
            elif char == "$" and (expansion := self._expansion(quoted=False)) is not None:
                parts.append(expansion)
            elif char == "`":
                raise NotFollowed("'`'")
            else:
                begin_text = self._at
                self._at += 1
                while self._at < len(text) and text[self._at] not in _BREAKS and text[self._at] not in "'\"\\$`":
                    self._at += 1
                parts.append(Literal(text[begin_text : self._at]))
        return Word(tuple(parts)) if self._at > begin else None

    def _until(self, end: str) -> str:
        """The text up to `end`, which is passed over."""
        begin = self._at + 1
        position = self._text.find(end, begin)
        if position < 0:
            raise NotFollowed(f"a {end} without its end")
        self._at = position + 1
        return self._text[begin:position]

    def _quoted(self, end: str) -> list[Part]:
        """Parses the parts up to the closing double quote."""
        parts: list[Part] = []
        literal = ""
        while True:
            char = self._text[self._at : self._at + 1]
            if not char:
                raise NotFollowed(f"a {end} without its end")
            if char == end:
                self._at += 1
                return [*parts, Literal(literal, True)] if literal else parts
            if char == "`":
                raise NotFollowed("'`'")
            if char == '"':  # around the operand of `${NAME:-"word"}`
                self._at += 1
                continue
            if char == "$" and (expansion := self._expansion(quoted=True)) is not None:
                parts += [Literal(literal, True), expansion] if literal else [expansion]
                literal = ""
                continue
            if char == "\\" and self._text[self._at + 1 : self._at + 2] in ('"', "\\", "$", "`"):
                self._at += 1
                char = self._text[self._at]
            literal += char
            self._at += 1

    def _expansion(self, *, quoted: bool) -> Part | None:
        """Parses an expansion that begins with `$`; returns None for a mere dollar sign."""
        text, after = self._text, self._at + 1
        if text.startswith("((", after):
            return self._arithmetic(quoted)
        if text.startswith("(", after):
            self._at = after + 1
            body = self.sequence(())
            self._take(")")
            return Substitution(body, quoted)
        if text.startswith("{", after):
            return self._braced(quoted)
        match = _NAME.match(text, after)
        name = match[0] if match else text[after : after + 1] if text[after : after + 1] in _SPECIAL else ""
        if not name:
            if text.startswith("!", after):
                raise NotFollowed("'$!'")
            return None
        self._at = after + len(name)
        return Variable(name, quoted)

    def _arithmetic(self, quoted: bool) -> Part:
        begin, depth = self._at + 3, 0
        for at in range(begin, len(self._text)):
            if self._text[at] == "(":
                depth += 1
            elif self._text[at] == ")" and depth:
                depth -= 1
            elif self._text.startswith("))", at):
                self._at = at + 2
                return Arithmetic(self._text[begin:at], quoted)
            elif self._text[at] == ")":
                break
        raise NotFollowed("an arithmetic expression without its end")

    def _braced(self, quoted: bool) -> Part:
        """`${NAME}`, `${#NAME}` and `${NAME:-word}`"""
        self._at += 2
        is_length = self._text.startswith("#", self._at) and not self._text.startswith("#}", self._at)
        self._at += is_length
        match = _NAME.match(self._text, self._at)
        name = match[0] if match else self._text[self._at : self._at + 1]
        if not match and name not in _SPECIAL:
            raise NotFollowed(f"the expansion at {self.rest!r}")
        self._at += len(name)
        if self._text.startswith("}", self._at):
            self._at += 1
            return Variable(name, quoted, "#" if is_length else "")
        operator = _EXPANSION.match(self._text, self._at)
        if operator is None or is_length:
            raise NotFollowed(f"the expansion of {name} at {self.rest!r}")
        self._at = operator.end()
        self._depth += 1
        if self._depth > _MAX_DEPTH:
            raise NotFollowed(f"expansions nested more than {_MAX_DEPTH} deep")
        operand = Word(tuple(self._quoted("}")))
        self._depth -= 1
        return Variable(name, quoted, operator[1], operand)

    # ------------------------------------------------------------------------ tokens

    def _skip_blanks(self) -> None:
        text = self._text
        while self._at < len(text):
            if text[self._at] in " \t\r":
                self._at += 1
            elif text[self._at] == "#" and (self._at == 0 or text[self._at - 1] in " \t\n;&|()"):
                end = text.find("\n", self._at)
                self._at = len(text) if end < 0 else end
            else:
                return

    def _operator(self) -> str:
        """The operator that comes next, or ""."""
        self._skip_blanks()
        if self._text.startswith("&>", self._at):
            return ""
        return next((operator for operator in _OPERATORS if self._text.startswith(operator, self._at)), "")

    def _keyword(self) -> str:
        """The keyword that comes next, or ""."""
        self._skip_blanks()
        end = self._at
        while end < len(self._text) and self._text[end] not in _BREAKS and end - self._at < 10:
            end += 1
        word = self._text[self._at : end]
        return word if word in _KEYWORDS or word in _UNSUPPORTED else ""

    def _take(self, token: str) -> None:
        self._skip_blanks()
        if not self._text.startswith(token, self._at):
            raise NotFollowed(f"{token!r} is missing at {self._where}")
        self._at += len(token)
