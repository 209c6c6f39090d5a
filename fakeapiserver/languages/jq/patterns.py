"""Patterns of `as`: bind the parts of a value to variables."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from fakeapiserver.languages.jq import filters, values
from fakeapiserver.languages.jq.errors import JqError
from fakeapiserver.languages.jq.filters import Env, Filter

Pattern = Callable[[Env, Any, Any], Iterator[Env]]


def unset_before(unset: dict[str, None], pattern: Pattern) -> Pattern:
    """Sets the names of alternative patterns to null."""
    return lambda env, value, output: pattern(env.bind(unset), value, output)


def array_pattern(items: Sequence[Pattern]) -> Pattern:
    def bind(env: Env, value: Any, output: Any, at: int = 0) -> Iterator[Env]:
        if output is not None and not isinstance(output, list):
            raise JqError(f"expected an array but got: {values.shown(output)}")
        if at == len(items):
            yield env
            return
        for inner in items[at](env, value, values.field(output, at)):
            yield from bind(inner, value, output, at + 1)

    return bind


def object_pattern(entries: Sequence[tuple[Filter, str, Pattern | None]]) -> Pattern:
    def bind(env: Env, value: Any, output: Any, at: int = 0) -> Iterator[Env]:
        if at == len(entries):
            yield env
            return
        key_of, name, pattern = entries[at]
        for key in filters.outputs(key_of, env, value):
            item = values.field(output, key)
            named = env.bind({name: item}) if name else env
            inner = pattern(named, value, item) if pattern is not None else iter([named])
            for one in inner:
                yield from bind(one, value, output, at + 1)

    return bind
