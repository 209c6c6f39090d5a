"""Functions that take filters and return any number of outputs."""

from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from fakeapiserver.languages.jq import values
from fakeapiserver.languages.jq.builtins.arguments import array_of, number_of
from fakeapiserver.languages.jq.errors import JqError
from fakeapiserver.languages.jq.filters import Env, Filter, Path, made, outputs, paths_of


def _soft_path(value: Any, path: Any) -> Any:
    return values.get_path(value, array_of("getpath", path))


def _empty() -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        return iter(())

    return run


def _now() -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        yield env.steps.now, made(path)

    return run


def _path(body: Filter) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for place in paths_of(body, env, value):
            yield [*place], made(path)

    return run


def _getpath(keys: Filter) -> Filter:
    """Can stand in a path, which a native function can't."""

    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for keys_output in outputs(keys, env, value):
            place = path
            if isinstance(path, tuple):
                place = (*path, *array_of("getpath", keys_output))
            yield _soft_path(value, keys_output), place

    return run


def _range(*bounds: Filter) -> Filter:
    def numbers(env: Env, value: Any) -> Iterator[tuple[float, float, float]]:
        if len(bounds) == 1:
            for end in outputs(bounds[0], env, value):
                yield 0, number_of("range", end), 1
            return
        for start in outputs(bounds[0], env, value):
            for end in outputs(bounds[1], env, value):
                for step in outputs(bounds[2], env, value) if len(bounds) == 3 else (1,):
                    yield number_of("range", start), number_of("range", end), number_of("range", step)

    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for start, end, step in numbers(env, value):
            at = start
            while step and (at < end if step > 0 else at > end):
                env.steps.take()
                yield at, made(path)
                at += step

    return run


def _limit(count: Filter, body: Filter) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for number in outputs(count, env, value):
            left = number_of("limit", number)
            if left < 0:
                raise JqError(f"limit doesn't support negative count: {values.to_json(number)}")
            if left == 0:
                continue
            for output in body(env, value, path):
                yield output
                left -= 1
                if left <= 0:
                    break

    return run


def _first(body: Filter) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        for output in body(env, value, path):
            yield output
            return

    return run


def _last(body: Filter) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        last = deque(body(env, value, path), maxlen=1)
        yield from last

    return run


def _is_empty(body: Filter) -> Filter:
    def run(env: Env, value: Any, path: Path) -> Iterator[tuple[Any, Path]]:
        yield next(outputs(body, env, value), _NONE) is _NONE, made(path)

    return run


_NONE: Final = object()
FILTERS: Final[Mapping[tuple[str, int], Callable[..., Filter]]] = {
    ("empty", 0): _empty,
    ("now", 0): _now,
    ("path", 1): _path,
    ("getpath", 1): _getpath,
    ("range", 1): _range,
    ("range", 2): _range,
    ("range", 3): _range,
    ("limit", 2): _limit,
    ("first", 1): _first,
    ("last", 1): _last,
    ("isempty", 1): _is_empty,
}
