"""Stages: the objects that they match, their delays, their actions (upstream: sigs.k8s.io/kwok/pkg/utils/lifecycle). Pure."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from random import Random
from typing import Any, Final, NamedTuple

from msgspec import Struct, field

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.serializer import yaml
from fakeapiserver.client.dynamic import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_MERGE_PATCH
from fakeapiserver.languages import gotemplate
from fakeapiserver.languages.gotemplate import Function, Template, TemplateError, parse
from fakeapiserver.nodes.stages.expressions import (
    Condition,
    StageError,
    Subject,
    condition,
    requirement,
    seconds,
    whole_number,
)

Functions = Mapping[str, Function]
_PATCH_TYPES: Final = {"json": JSON_PATCH, "merge": MERGE_PATCH, "strategic": STRATEGIC_MERGE_PATCH}
_APPLY_TYPES: Final = {"merge": MERGE_PATCH, "strategic": STRATEGIC_MERGE_PATCH, "apply": APPLY_PATCH}


class ResourceRef(NamedTuple):
    """The resource of stages. `api_version` is what Stages call apiGroup: `v1`, `apps/v1`."""

    api_version: str
    kind: str


POD: Final = ResourceRef("v1", "Pod")
NODE: Final = ResourceRef("v1", "Node")


# --------------------------------------------------------------------------- steps


class SendEvent(Struct, frozen=True):
    """Records an event about the object."""

    type: str
    reason: str
    message: str


class Delete(Struct, frozen=True):
    """Delete the object, without grace."""


class Patch(Struct, frozen=True):
    """Patch the object. `impersonate`: as that user."""

    body: Any
    type: str
    subresource: str = ""
    impersonate: str = ""


class Apply(Struct, frozen=True):
    """Create an object, or patch it where it is there."""

    body: Any
    type: str
    subresource: str = ""
    impersonate: str = ""


Action = SendEvent | Delete | Patch | Apply


class _Finalizers(Struct, frozen=True):
    add: Sequence[str]
    remove: Sequence[str]
    empty: bool


class _Rendered(Struct, frozen=True):
    """A patch or apply whose body is still a template."""

    template: Template
    root: str
    type: str
    subresource: str
    impersonate: str
    applies: bool


class Step(Struct, frozen=True):
    """A step of a stage; its parts are performed in this order."""

    event: SendEvent | None = None
    finalizers: _Finalizers | None = None
    delete: bool = False
    patch: _Rendered | None = None
    apply: _Rendered | None = None


class Stage(Struct, frozen=True):
    """Made by `read_stage`."""

    name: str
    ref: ResourceRef
    conditions: Sequence[Condition]
    weight: Callable[[Subject], int | None]
    duration: Callable[[Subject], float | None]
    jitter: Callable[[Subject], float | None]
    steps: Sequence[Step]
    immediate: bool
    # The object it was read from, which distinguishes versions.
    source: Object = field(default_factory=dict)

    def matches(self, subject: Subject) -> bool:
        """StageError."""
        return all(holds(subject) for holds in self.conditions)

    def delay(self, subject: Subject, random: Random) -> float:
        """Seconds, negative ones too. StageError."""
        least = self.duration(subject)
        if least is None:
            return 0.0
        most = self.jitter(subject)
        if most is None:
            return least
        return most if most <= least else random.uniform(least, most)

    def actions(self, step: Step, subject: Subject, functions: Functions) -> Iterator[Action]:
        """Yields the actions of a step.

        `functions` replace those of the same names that the templates were read with. Raises StageError if a
        template fails.
        """
        if step.event is not None:
            yield step.event
        if step.finalizers is not None:
            operations = _finalizer_operations(subject.metadata.get("finalizers") or (), step.finalizers)
            if operations:
                yield Patch(operations, JSON_PATCH)
        if step.delete:
            yield Delete()
            return
        for part in (step.patch, step.apply):
            if part is not None:
                body = self._body(part, subject, functions)
                kind = Apply if part.applies else Patch
                yield kind(body, part.type, part.subresource, part.impersonate)

    def _body(self, part: _Rendered, subject: Subject, functions: Functions) -> Any:
        try:
            text = part.template.execute(template_data(subject.obj, self.ref), functions)
        except TemplateError as error:
            raise StageError(f"Stage {self.name}: {error}") from None
        try:
            body = yaml.decode(text.encode())
        except ValueError as error:
            raise StageError(f"Stage {self.name}: what its template writes is no YAML: {error}") from None
        if part.applies:
            if not isinstance(body, dict) or not body.get("apiVersion") or not body.get("kind"):
                raise StageError(f"Stage {self.name}: template must include apiVersion and kind")
            return body
        if part.type == JSON_PATCH:
            return self._rooted(body, part.root)
        if part.root:
            return {part.root: body}
        if not isinstance(body, dict):
            raise StageError(f"Stage {self.name}: its template writes no object")
        return body

    def _rooted(self, body: Any, root: str) -> Any:
        if not isinstance(body, list) or not all(isinstance(operation, dict) for operation in body):
            raise StageError(f"Stage {self.name}: its template writes no list of JSON patch operations")
        return [{**row, "path": f"/{root}{row.get('path', '')}"} for row in body] if root else body


def template_data(obj: Object, ref: ResourceRef) -> Object:
    """Returns the object for templates: nodes and pods without their type, as Go's clients have them."""

    def numbers(value: Any) -> Any:
        if isinstance(value, dict):
            return {key: numbers(item) for key, item in value.items()}
        if isinstance(value, list):
            return [*map(numbers, value)]
        if isinstance(value, int | float) and not isinstance(value, bool):
            return gotemplate.Number(yaml.encode(value).decode().strip())
        return value

    data: Object = numbers(obj)
    if ref in (POD, NODE):
        return {key: value for key, value in data.items() if key not in ("apiVersion", "kind")}
    return {"apiVersion": ref.api_version, "kind": ref.kind, **data}


def _finalizer_operations(known: Sequence[str], wanted: _Finalizers) -> list[Object]:
    """A JSON patch; nothing where nothing is to be done."""
    gone = [at for at, name in enumerate(known) if name in wanted.remove]
    is_empty = wanted.empty or (bool(wanted.remove) and len(gone) == len(known))
    operations: list[Object] = []
    if is_empty:
        operations += [{"op": "remove", "path": "/metadata/finalizers"}] if known else []
        known = ()
    else:
        operations += [{"op": "remove", "path": f"/metadata/finalizers/{at}"} for at in reversed(gone)]
    if not wanted.add:
        return operations
    if not known:
        return [*operations, {"op": "add", "path": "/metadata/finalizers", "value": [*wanted.add]}]
    new = [name for name in wanted.add if name not in known]
    return [*operations, *({"op": "add", "path": "/metadata/finalizers/-", "value": name} for name in new)]


# ------------------------------------------------------------------------ choosing


def choose(stages: Sequence[Stage], subject: Subject, random: Random) -> Stage | None:
    """The one that comes next; None where none matches. StageError."""
    matching = [stage for stage in stages if stage.matches(subject)]
    if len(matching) < 2:
        return matching[0] if matching else None
    weights = [stage.weight(subject) for stage in matching]
    weighed = [stage for stage, weight in zip(matching, weights, strict=True) if weight is not None]
    positive = [max(weight or 0, 0) for weight in weights]
    if sum(positive):
        return random.choices(matching, positive)[0]
    return random.choice(weighed or matching)


# ------------------------------------------------------------------------- reading


def read_stage(obj: Object, functions_of: Callable[[ResourceRef], Functions]) -> Stage | None:
    """Reads a Stage; returns None for one without a selector, which matches nothing.

    `functions_of`: the functions of its templates. Raises StageError, which names the Stage and the place of the error.
    """
    name = (obj.get("metadata") or {}).get("name", "")
    try:
        return _read(name, obj, functions_of)
    except StageError as error:
        raise StageError(f"Stage {name}: {error}") from None
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise StageError(f"Stage {name} isn't one as KWOK has it: {error}") from None


def _read(name: str, obj: Object, functions_of: Callable[[ResourceRef], Functions]) -> Stage | None:
    spec = obj["spec"]
    kind = (spec.get("resourceRef") or {}).get("kind", "")
    if not kind:
        raise StageError("spec.resourceRef.kind is missing")
    ref = ResourceRef(spec["resourceRef"].get("apiGroup") or "v1", kind)
    selector = spec.get("selector")
    if selector is None:
        return None
    delay = spec.get("delay") or {}
    steps = _steps(spec)
    with _At("spec.weightFrom"):
        weight = whole_number(_number(spec.get("weight") or 0), spec.get("weightFrom"))
    with _At("spec.delay.durationFrom"):
        duration = seconds(_number(delay.get("durationMilliseconds") or 0), delay.get("durationFrom"))
    with _At("spec.delay.jitterDurationFrom"):
        given = delay.get("jitterDurationMilliseconds")
        jitter = seconds(None if given is None else _number(given), delay.get("jitterDurationFrom"))
    functions = functions_of(ref)
    read = []
    for at, step in enumerate(steps):
        with _At(f"step {at}"):
            read.append(_step(step, ref, functions))
    conditions = [*_conditions(selector)]
    return Stage(
        name, ref, conditions, weight, duration, jitter, read, bool(spec.get("immediateNextStage")), source=dict(obj)
    )


class _At:
    """Says where an error was."""

    def __init__(self, place: str) -> None:
        self._place = place

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: object, error: BaseException | None, traceback: object) -> None:
        if isinstance(error, StageError):
            raise StageError(f"{self._place}: {error}") from None


def _number(value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int):
        raise StageError(f"{value!r} is no whole number")
    return value


def _conditions(selector: Mapping[str, Any]) -> Iterator[Condition]:
    for place, key in (("matchLabels", "labels"), ("matchAnnotations", "annotations")):
        wanted = selector.get(place)
        if wanted:
            yield _has_all(key, dict(wanted))
    for at, expression in enumerate(selector.get("matchExpressions") or ()):
        with _At(f"spec.selector.matchExpressions[{at}]"):
            yield _expression(expression)


def _has_all(key: str, wanted: Mapping[str, str]) -> Condition:
    def run(subject: Subject) -> bool:
        known = subject.metadata.get(key) or {}
        return all(known.get(name) == value for name, value in wanted.items())

    return run


def _expression(expression: Mapping[str, Any]) -> Condition:
    if expression.get("cel") is not None and expression.get("jq") is None and not expression.get("key"):
        return condition(str(expression["cel"].get("expression", "")))
    given = expression.get("jq") or expression
    if not given.get("key"):
        raise StageError("invalid expression: it needs jq, cel, or key and operator")
    return requirement(str(given["key"]), str(given.get("operator", "")), [*(given.get("values") or ())])


def _steps(spec: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    """`steps`, or what the older `next` says in their words."""
    if spec.get("steps"):
        stage_steps: Sequence[Mapping[str, Any]] = spec["steps"]
        return stage_steps
    following = spec.get("next") or {}
    steps: list[Mapping[str, Any]] = [
        {part: following[part]} for part in ("event", "finalizers") if following.get(part) is not None
    ]
    if following.get("patches"):
        steps += [{"patch": patch} for patch in following["patches"]]
    elif following.get("statusTemplate"):
        subresource = following.get("statusSubresource")
        steps.append(
            {
                "patch": {
                    "subresource": "status" if subresource is None else subresource,
                    "root": "status",
                    "template": following["statusTemplate"],
                    "impersonation": following.get("statusPatchAs"),
                }
            }
        )
    return [*steps, {"delete": True}] if following.get("delete") else steps


def _step(step: Mapping[str, Any], ref: ResourceRef, functions: Functions) -> Step:
    event, finalizers = step.get("event"), step.get("finalizers")
    return Step(
        None if event is None else SendEvent(event.get("type", ""), event.get("reason", ""), event.get("message", "")),
        None
        if finalizers is None
        else _Finalizers(
            [item.get("value", "") for item in finalizers.get("add") or ()],
            [item.get("value", "") for item in finalizers.get("remove") or ()],
            bool(finalizers.get("empty")),
        ),
        bool(step.get("delete")),
        _rendered(step.get("patch"), ref, functions, applies=False),
        _rendered(step.get("apply"), ref, functions, applies=True),
    )


def _rendered(
    given: Mapping[str, Any] | None, ref: ResourceRef, functions: Functions, *, applies: bool
) -> _Rendered | None:
    if given is None:
        return None
    types = _APPLY_TYPES if applies else _PATCH_TYPES
    default = "apply" if applies else "strategic" if ref in (POD, NODE) else "merge"
    wanted = given.get("type") or default
    if wanted not in types:
        raise StageError(f"unknown {'apply' if applies else 'patch'} type {wanted}")
    try:
        template = parse(re.sub(r"\A\s+|\s+\Z", "", given.get("template") or ""), functions)
    except TemplateError as error:
        raise StageError(str(error)) from None
    user = (given.get("impersonation") or {}).get("username", "")
    return _Rendered(template, given.get("root") or "", types[wanted], given.get("subresource") or "", user, applies)
