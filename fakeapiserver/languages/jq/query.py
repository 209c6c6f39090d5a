"""Compiled queries."""

from functools import cache
from typing import Any

from fakeapiserver.languages.jq import filters
from fakeapiserver.languages.jq.builtins.prelude import PRELUDE
from fakeapiserver.languages.jq.errors import Break, JqError, JqSyntaxError
from fakeapiserver.languages.jq.filters import Callee, Env, Filter, Steps, StepsExceeded
from fakeapiserver.languages.jq.lexer import tokens
from fakeapiserver.languages.jq.parser import Parser


class Query:
    """A compiled query."""

    def __init__(self, body: Filter) -> None:
        self._body = body

    def run(self, value: Any, now: float = 0.0) -> list[Any]:
        """Returns all outputs. `now`: seconds since the epoch.

        Raises JqError, also for a query that takes too long or is nested too deep.
        """
        env = Env({}, _prelude(), Steps(now))
        try:
            return [*filters.outputs(self._body, env, value)]
        except Break:
            raise JqError("break") from None
        except StepsExceeded as error:
            raise JqError(str(error)) from None
        except RecursionError:
            raise JqError("the query goes too deep") from None
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise JqError(f"internal error: {error}") from error


def compile_query(source: str) -> Query:
    """JqSyntaxError, in one line."""
    try:
        return Query(Parser(tokens(source), frozenset(_prelude())).whole())
    except RecursionError:
        raise JqSyntaxError("the query is nested too deep") from None


@cache
def _prelude() -> dict[tuple[str, int], Callee]:
    """Functions that are written in the language itself."""
    env = Env({}, {}, Steps(0))
    callees: dict[tuple[str, int], Callee] = {}
    known: frozenset[tuple[str, int]] = frozenset()
    for text in PRELUDE:
        parser = Parser(tokens(text), known)
        name, params, body = parser.definition()
        key = (name, len(params))
        known |= {key}
        callees[key] = filters.Function(params, body, env)
    for key, callee in callees.items():
        assert isinstance(callee, filters.Function)
        # each knows those before it, and itself through the call
        callees[key] = callee._replace(env=Env({}, callees, env.steps))
    return callees
