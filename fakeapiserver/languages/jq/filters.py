"""The parts of a query: functions of an environment and an input, which yield outputs.

A filter yields pairs (value, path). If paths are not needed they are None; `NOWHERE` is the path of a computed value.
"""

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, NamedTuple

from fakeapiserver.languages.jq import values
from fakeapiserver.languages.jq.errors import Break, JqError

NOWHERE: Final = object()
MAX_STEPS: Final = 1_000_000
Path = Any
Filter = Callable[["Env", Any, Path], Iterator[tuple[Any, Path]]]


class Steps:
    """The steps that are left, and the time (seconds since the epoch)."""

    __slots__ = ("left", "now")

    def __init__(self, now: float) -> None:
        self.left = MAX_STEPS
        self.now = now

    def take(self) -> None:
        self.left -= 1
        if self.left < 0:
            raise StepsExceeded(f"the query takes more than {MAX_STEPS} steps")


class StepsExceeded(Exception):
    """No `try` catches it."""


class Function(NamedTuple):
    """A function `def name(params): body;`. `env`: where it was defined; None: a body that doesn't call itself."""

    params: Sequence[str]
    body: Filter
    env: "Env"


class Closure(NamedTuple):
    """A filter given to a function, and where its names mean something."""

    body: Filter
    env: "Env"


Callee = Function | Closure


class Env:
    """The meaning of names. Immutable; `bind` and `define` return another."""

    __slots__ = ("functions", "steps", "variables")

    def __init__(self, variables: Mapping[str, Any], functions: Mapping[tuple[str, int], Callee], steps: Steps) -> None:
        self.variables = variables
        self.functions = functions
        self.steps = steps

    def bind(self, variables: Mapping[str, Any]) -> "Env":
        return Env({**self.variables, **variables}, self.functions, self.steps)

    def define(self, functions: Mapping[tuple[str, int], Callee]) -> "Env":
        return Env(self.variables, {**self.functions, **functions}, self.steps)


def outputs(body: Filter, env: Env, value: Any) -> Iterator[Any]:
    """Without paths."""
    for output, _ in body(env, value, None):
        yield output


def made(path: Path) -> Path:
    """The path of a new value."""
    return None if path is None else NOWHERE


def further(path: Path, key: Any) -> Path:
    """Returns the path of the value at `key`."""
    if path is None:
        return None
    if path is NOWHERE:
        raise JqError("invalid path expression")
    return (*path, key)


def identity(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
    yield value, path


def nothing(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
    return iter(())


def literal(constant: Any) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        yield constant, made(path)

    return run


def variable(name: str) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        yield env.variables[name], made(path)

    return run


def pipe(first: Filter, second: Filter) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for output, place in first(env, value, path):
            yield from second(env, output, place)

    return run


def both(first: Filter, second: Filter) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        yield from first(env, value, path)
        yield from second(env, value, path)

    return run


def index(term: Filter, key: Filter) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for container, place in term(env, value, path):
            for name in outputs(key, env, value):
                env.steps.take()
                yield values.field(container, name), further(place, name)

    return run


def piece(term: Filter, start: Filter | None, end: Filter | None) -> Filter:
    none = literal(None)

    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for container, place in term(env, value, path):
            for last in outputs(end or none, env, value):
                for first in outputs(start or none, env, value):
                    yield values.piece(container, first, last), further(place, {"start": first, "end": last})

    return run


def iterate(term: Filter) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for container, place in term(env, value, path):
            items = values.elements(container)
            keys = sorted(container) if isinstance(container, dict) else range(len(items))
            for key, item in zip(keys, items, strict=True):
                env.steps.take()
                yield item, further(place, key)

    return run


def attempt(body: Filter, handler: Filter | None) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        try:
            yield from body(env, value, path)
        except JqError as error:
            if handler is not None:
                caught = error.value
                yield from handler(env, caught, made(path))

    return run


def array(body: Filter) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        yield [*outputs(body, env, value)], made(path)

    return run


def mapping(entries: Sequence[tuple[Filter, Filter]]) -> Filter:
    def objects(env: Env, value: Any, at: int, known: dict[str, Any]) -> Iterator[dict[str, Any]]:
        if at == len(entries):
            yield known
            return
        key_of, value_of = entries[at]
        for key in outputs(key_of, env, value):
            if not isinstance(key, str):
                raise JqError(f"expected a string for object key but got: {values.shown(key)}")
            for output in outputs(value_of, env, value):
                yield from objects(env, value, at + 1, {**known, key: output})

    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for output in objects(env, value, 0, {}):
            yield output, made(path)

    return run


def binary(operation: Callable[[Any, Any], Any], left: Filter, right: Filter) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for second in outputs(right, env, value):
            for first in outputs(left, env, value):
                env.steps.take()
                yield operation(first, second), made(path)

    return run


def negative(body: Filter) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for output in outputs(body, env, value):
            if values.kind(output) != "number":
                raise JqError(f"cannot negate: {values.shown(output)}")
            yield -output, made(path)

    return run


def conjunction(left: Filter, right: Filter, *, stops_at: bool) -> Filter:
    """`and` stops at false, `or` at true."""

    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for first in outputs(left, env, value):
            if values.truthy(first) == stops_at:
                yield stops_at, made(path)
            else:
                for second in outputs(right, env, value):
                    yield values.truthy(second), made(path)

    return run


def alternative(left: Filter, right: Filter) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        any_found = False
        try:
            for output, place in left(env, value, path):
                if values.truthy(output):
                    any_found = True
                    yield output, place
        except JqError:
            pass
        if not any_found:
            yield from right(env, value, path)

    return run


def condition(test: Filter, then: Filter, otherwise: Filter) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for output in outputs(test, env, value):
            yield from (then if values.truthy(output) else otherwise)(env, value, path)

    return run


def bound(source: Filter, patterns: Sequence[Callable[[Env, Any, Any], Iterator[Env]]], body: Filter) -> Filter:
    """`source as $x ?// $y | body`."""

    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for output in outputs(source, env, value):
            for number, pattern in enumerate(patterns):
                try:
                    for inner in pattern(env, value, output):
                        yield from body(inner, value, path)
                    break
                except JqError:
                    if number == len(patterns) - 1:
                        raise

    return run


def reduction(
    source: Filter, pattern: Callable[[Env, Any, Any], Iterator[Env]], start: Filter, update: Filter
) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for state in start(env, value, path):
            reached = state
            for output in outputs(source, env, value):
                for inner in pattern(env, value, output):
                    env.steps.take()
                    last = deque(update(inner, *reached), maxlen=1)
                    reached = last[0] if last else (None, made(path))
            yield reached

    return run


def running(
    source: Filter,
    pattern: Callable[[Env, Any, Any], Iterator[Env]],
    start: Filter,
    update: Filter,
    extract: Filter,
) -> Filter:
    """`foreach`."""

    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for state in start(env, value, path):
            reached = state
            for output in outputs(source, env, value):
                for inner in pattern(env, value, output):
                    env.steps.take()
                    for following in update(inner, *reached):
                        reached = following
                        yield from extract(inner, *following)

    return run


def label(name: str, body: Filter) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        mark = object()
        try:
            yield from body(env.bind({"*" + name: mark}), value, path)
        except Break as stop:
            if stop.mark is not mark:
                raise

    return run


def leave(name: str) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        raise Break(env.variables["*" + name])
        yield

    return run


def definition(name: str, params: Sequence[str], body: Filter, rest: Filter) -> Filter:
    """`def name(params): body; rest`. A parameter `$x` is a variable too."""

    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        yield from rest(env.define({(name, len(params)): Function(params, body, env)}), value, path)

    return run


def call(name: str, arguments: Sequence[Filter]) -> Filter:
    key = (name, len(arguments))

    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        env.steps.take()
        callee = env.functions[key]
        if isinstance(callee, Closure):
            yield from callee.body(callee.env, value, path)
            return
        given: dict[tuple[str, int], Callee] = {key: callee}
        given |= {
            (param.removeprefix("$"), 0): Closure(argument, env)
            for param, argument in zip(callee.params, arguments, strict=True)
        }
        inner = callee.env.define(given)
        as_values = [at for at, param in enumerate(callee.params) if param.startswith("$")]
        yield from _with_values(inner, env, callee, arguments, as_values, value, path)

    return run


def _with_values(
    inner: Env,
    env: Env,
    callee: Function,
    arguments: Sequence[Filter],
    as_values: Sequence[int],
    value: Any,
    path: Path,
) -> Iterator[tuple[Any, Path]]:
    if not as_values:
        yield from callee.body(inner, value, path)
        return
    for output in outputs(arguments[as_values[0]], env, value):
        param = callee.params[as_values[0]]
        named = inner.bind({param: output}).define({(param[1:], 0): Closure(literal(output), inner)})
        yield from _with_values(named, env, callee, arguments, as_values[1:], value, path)


def native(function: Callable[..., Any], arguments: Sequence[Filter]) -> Filter:
    """A function of the input and every combination of the arguments' values."""

    def combined(env: Env, value: Any, at: int, known: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
        if at < 0:
            yield known
            return
        for output in outputs(arguments[at], env, value):
            yield from combined(env, value, at - 1, (output, *known))

    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for given in combined(env, value, len(arguments) - 1, ()):
            env.steps.take()
            yield function(value, *given), made(path)

    return run


def paths_of(body: Filter, env: Env, value: Any) -> Iterator[tuple[Any, ...]]:
    """`path(body)`."""
    for _, place in body(env, value, ()):
        if place is NOWHERE:
            raise JqError("invalid path expression")
        yield place


def updated(target: Filter, update: Filter) -> Filter:
    """`target |= update`; what update has no output for is deleted."""

    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        updated, gone = value, []
        for place in [*paths_of(target, env, value)]:
            env.steps.take()
            for new in outputs(update, env, values.get_path(updated, place)):
                updated = values.set_path(updated, place, new)
                break
            else:
                gone.append([*place])
        yield values.delete_paths(updated, gone) if gone else updated, made(path)

    return run


def assigned(target: Filter, source: Filter, operation: Callable[[Any, Any], Any]) -> Filter:
    """`target = source`, `target += source` …: once for each output of source."""

    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for new in outputs(source, env, value):
            result = value
            for place in paths_of(target, env, value):
                env.steps.take()
                result = values.set_path(result, place, operation(values.get_path(result, place), new))
            yield result, made(path)

    return run
