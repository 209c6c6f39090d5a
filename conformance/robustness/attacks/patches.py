"""Attacks with patches and applies of large objects."""

from collections.abc import Callable, Iterator
from typing import Final

from conformance.robustness.attacks.attack import (
    APPLY_PATCH,
    BODY,
    JSON_PATCH,
    MERGE_PATCH,
    STRATEGIC_PATCH,
    Attack,
    Call,
    Object,
    encoded,
    filled,
    named,
    pairs,
    posted,
)
from conformance.robustness.attacks.custom import DEFINED, THINGS, thing
from conformance.robustness.attacks.pods import PODS, pod

_CONFIGMAP: Final = "/api/v1/namespaces/default/configmaps/patched"
_DEPLOYMENTS: Final = "/apis/apps/v1/namespaces/default/deployments"
# Operations of a JSON patch, as many as are allowed.
_OPERATIONS: Final = 10_000
_FORCE: Final = "?fieldManager=other&force=true"
# Bytes of an object that is stored.
_STORED: Final = 400_000


def _deployment(name: str, count: int) -> Object:
    env = [{"name": f"N{i}", "value": "v"} for i in range(count)]
    spec = {"containers": [{"name": "c", "image": "i", "env": env}]}
    template = {"metadata": {"labels": {"a": "b"}}, "spec": spec}
    return named("apps/v1", "Deployment", name, spec={"selector": {"matchLabels": {"a": "b"}}, "template": template})


_LARGE_MAP: Final = posted(THINGS, lambda: thing("map", map=pairs(lambda i: (f"k{i}", "v"), _STORED)))
_LARGE_ROWS: Final = posted(THINGS, lambda: thing("rows", rows=filled(lambda i: {"k": f"k{i}", "v": i}, _STORED)))
_LARGE_SET: Final = posted(THINGS, lambda: thing("set", set=filled(lambda i: f"s{i}", _STORED)))
_LARGE_ATOMS: Final = posted(THINGS, lambda: thing("atoms", atoms=filled(lambda i: {"k": f"k{i}"}, _STORED)))
_LARGE_DEPLOYMENT: Final = posted(_DEPLOYMENTS, lambda: _deployment("patched", 10_000))
_SMALL_CONFIGMAP: Final = posted(
    "/api/v1/namespaces/default/configmaps", lambda: named("v1", "ConfigMap", "patched", data={"a": "b"})
)


def _json_patch(operation: Callable[[int], Object], path: str = f"{THINGS}/atoms") -> Call:
    return Call("PATCH", path, lambda: encoded([operation(i) for i in range(_OPERATIONS)]), JSON_PATCH)


def _json_patches() -> Iterator[tuple[str, Call]]:
    yield (
        "insertions at the front",
        _json_patch(lambda i: {"op": "add", "path": "/spec/atoms/0", "value": {"k": f"n{i}"}}),
    )
    yield (
        "insertions at the end",
        _json_patch(lambda i: {"op": "add", "path": "/spec/atoms/-", "value": {"k": f"n{i}"}}),
    )
    yield "removals at the front", _json_patch(lambda i: {"op": "remove", "path": "/spec/atoms/0"})
    yield "moves", _json_patch(lambda i: {"op": "move", "from": "/spec/atoms/9", "path": "/spec/atoms/0"})
    yield "copies of one item", _json_patch(lambda i: {"op": "copy", "from": "/spec/atoms/9", "path": "/spec/atoms/0"})
    yield "copies of everything", _json_patch(lambda i: {"op": "copy", "from": "/spec", "path": "/spec/free"})
    yield "tests of everything", Call("PATCH", f"{THINGS}/atoms", _tests_of_everything, JSON_PATCH)
    yield "tests of one item", _json_patch(lambda i: {"op": "test", "path": f"/spec/atoms/{i}/k", "value": f"k{i}"})
    yield (
        "a long path",
        Call(
            "PATCH",
            f"{THINGS}/atoms",
            lambda: encoded([{"op": "add", "path": "/a" * (BODY // 2 - 100), "value": 1}]),
            JSON_PATCH,
        ),
    )
    yield (
        "a long index",
        Call(
            "PATCH",
            f"{THINGS}/atoms",
            lambda: encoded([{"op": "add", "path": "/spec/atoms/" + "1" * BODY, "value": 1}]),
            JSON_PATCH,
        ),
    )
    yield (
        "100,000 operations",
        Call("PATCH", f"{THINGS}/atoms", lambda: b"[" + b'{"op":"a"},' * 99_999 + b"{}]", JSON_PATCH),
    )


def _tests_of_everything() -> bytes:
    value = filled(lambda i: {"k": f"k{i}"}, _STORED)
    return encoded(
        [{"op": "test", "path": "/spec/atoms", "value": value}] + [{"op": "test", "path": "/spec", "value": {}}] * 9
    )


def _env(name: str, count: int = 10_000) -> Object:
    env = [{"name": f"{name}{i}", "value": "w"} for i in range(count)]
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "env": env}]}}}}


def _ordered() -> Object:
    patch = _env("N", 10)
    order = [{"name": f"N{i}"} for i in reversed(range(60_000))]
    patch["spec"]["template"]["spec"]["containers"][0]["$setElementOrder/env"] = order
    return patch


def _deleting() -> Object:
    env = [{"name": f"N{i}", "$patch": "delete"} for i in range(10_000)]
    return {"spec": {"template": {"spec": {"containers": [{"name": "c", "env": env}]}}}}


def _strategic(patch: Callable[[], Object], path: str = f"{_DEPLOYMENTS}/patched") -> Call:
    return Call("PATCH", path, lambda: encoded(patch()), STRATEGIC_PATCH)


def _strategic_patches() -> Iterator[tuple[str, Call]]:
    yield "10,000 new variables", _strategic(lambda: _env("M"))
    yield "10,000 known variables", _strategic(lambda: _env("N"))
    yield "10,000 variables in another order", _strategic(_ordered)
    yield "10,000 deletions", _strategic(_deleting)
    yield "finalizers", _strategic(lambda: {"metadata": {"finalizers": filled(lambda i: f"example.com/f{i}", _STORED)}})
    yield (
        "finalizers that are deleted",
        _strategic(
            lambda: {"metadata": {"$deleteFromPrimitiveList/finalizers": filled(lambda i: f"example.com/f{i}")}}
        ),
    )
    yield "400 levels", _strategic(lambda: _levels(400))


def _levels(depth: int) -> Object:
    value: Object = {}
    for _ in range(depth):
        value = {"a": value}
    return value


def _merge(patch: Callable[[], Object], path: str) -> Call:
    return Call("PATCH", path, lambda: encoded(patch()), MERGE_PATCH)


def _applied(name: str, spec: Callable[[], Object], query: str = _FORCE) -> Call:
    return Call("PATCH", f"{THINGS}/{name}{query}", lambda: encoded(thing(name, **spec())), APPLY_PATCH)


def _applies() -> Iterator[tuple[str, Call, tuple[Call, ...]]]:
    yield "a map of 50,000", _applied("applied", lambda: {"map": {f"k{i}": "v" for i in range(50_000)}}), ()
    yield (
        "a map over that of another",
        _applied("map", lambda: {"map": pairs(lambda i: (f"k{i}", "w"), _STORED)}),
        (_LARGE_MAP,),
    )
    yield (
        "a map in conflict with that of another",
        _applied("map", lambda: {"map": pairs(lambda i: (f"k{i}", "x"), _STORED)}, "?fieldManager=third"),
        (_LARGE_MAP,),
    )
    yield (
        "a list by key",
        _applied("rows", lambda: {"rows": filled(lambda i: {"k": f"k{i}", "v": 2 * i}, _STORED)}),
        (_LARGE_ROWS,),
    )
    yield "a list by key in another order", _applied("rows", _reversed_rows), (_LARGE_ROWS,)
    yield (
        "a list by key, all the same",
        _applied("rows", lambda: {"rows": filled(lambda i: {"k": "k"})}),
        (_LARGE_ROWS,),
    )
    yield "a set", _applied("set", lambda: {"set": filled(lambda i: f"s{i}", _STORED)}), (_LARGE_SET,)
    yield "another set", _applied("set", lambda: {"set": filled(lambda i: f"t{i}", _STORED)}), (_LARGE_SET,)
    yield "an empty set", _applied("set", lambda: {"set": []}), (_LARGE_SET,)
    yield "unknown fields", _applied("applied", lambda: pairs(lambda i: (f"unknown{i}", 1))), ()
    yield "fields without a schema", _applied("applied", lambda: {"free": pairs(lambda i: (f"k{i}", {"a": 1}))}), ()


def _reversed_rows() -> Object:
    return {"rows": filled(lambda i: {"k": f"k{i}", "v": i}, _STORED)[::-1]}


def attacks() -> Iterator[Attack]:
    for name, call in _json_patches():
        yield Attack(f"JSON patch: {name}", call, (*DEFINED, _LARGE_ATOMS))
    for name, call in _strategic_patches():
        yield Attack(f"strategic patch: {name}", call, (_LARGE_DEPLOYMENT,))
    yield Attack(
        "merge patch: 200,000 keys",
        _merge(lambda: {"data": {f"k{i}": "v" for i in range(200_000)}}, _CONFIGMAP),
        (_SMALL_CONFIGMAP,),
    )
    yield Attack(
        "merge patch: 200,000 removals",
        _merge(lambda: {"data": {f"k{i}": None for i in range(200_000)}}, _CONFIGMAP),
        (_SMALL_CONFIGMAP,),
    )
    yield Attack(
        "merge patch: 400 levels",
        _merge(lambda: {"spec": {"free": _levels(400)}}, f"{THINGS}/map"),
        (*DEFINED, _LARGE_MAP),
    )
    yield Attack(
        "merge patch: a small one of a large object",
        _merge(lambda: {"spec": {"enum": ["e1"]}}, f"{THINGS}/map"),
        (*DEFINED, _LARGE_MAP),
    )
    for name, call, before in _applies():
        yield Attack(f"apply: {name}", call, (*DEFINED, *before))
    env = Call(
        "PATCH",
        f"{PODS}/applied{_FORCE}",
        lambda: encoded(pod("applied", {"env": [{"name": f"N{i}"} for i in range(20_000)]})),
        APPLY_PATCH,
    )
    yield Attack("apply: a pod with 20,000 variables", env)
