"""The LimitRanges of a namespace: defaults for containers that ask for nothing, bounds for pods, containers and claims.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/limitranger/admission.go.
"""

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any, Final

from fakeapiserver.admission.handler import PODS, Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.allowance import spend
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object, is_terminating, metadata
from fakeapiserver.apimachinery.quantity import Quantity, milli_value, parse
from fakeapiserver.apis.pod_resources import ResourceList, pod_resources, resource_list
from fakeapiserver.effort import computed, offloaded

_CLAIMS: Final = GroupResource("", "persistentvolumeclaims")
_ANNOTATION: Final = "kubernetes.io/limit-ranger"
_CONTAINERS: Final = (("containers", "container"), ("initContainers", "init container"))
# As how many bytes the defaults of one LimitRange for one container count, and what its bounds cost (effort.py).
_SIZE: Final = 8
_COST: Final = 100
_Check = Callable[[Object, Object], Iterator[str]]


class LimitRanger(Handler):
    resources = frozenset({PODS, _CLAIMS})
    subresources = True

    async def admit(self, attributes: Attributes) -> None:
        if attributes.resource.group_resource == PODS:
            limits, pod = await self._limits(attributes), attributes.object or {}
            if limits:
                await offloaded(partial(_complete, pod, limits), _SIZE * len(limits) * _containers(pod))

    async def validate(self, attributes: Attributes) -> None:
        spec: Object = (attributes.object or {}).get("spec") or {}
        check = _pod_problems if attributes.resource.group_resource == PODS else _claim_problems
        if (limits := await self._limits(attributes)) and (
            problems := await computed(partial(_first_problems, limits, spec, check))
        ):
            raise forbidden(attributes, problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]")

    async def _limits(self, attributes: Attributes) -> list[list[Object]]:
        """Returns the limits of each LimitRange for the write. A running pod's resources change only by its resize."""
        is_pod = attributes.resource.group_resource == PODS
        if attributes.subresource not in (("", "resize") if is_pod else ("",)):
            return []
        if attributes.operation == "UPDATE":
            unchanging = is_pod and not attributes.subresource
            if unchanging or (attributes.old_object is not None and is_terminating(attributes.old_object)):
                return []
        limit_ranges = await self.look_for("limitranges", attributes.namespace)
        return [limit_range["spec"].get("limits") or [] for limit_range in limit_ranges]


# ---------------------------------------------------------------- defaults


def _containers(pod: Object) -> int:
    spec = pod["spec"]
    return sum(len(spec.get(field) or ()) for field, _ in _CONTAINERS)


def _complete(pod: Object, limits: list[list[Object]]) -> None:
    for limits_of_one in limits:
        _complete_by(pod, limits_of_one)


def _complete_by(pod: Object, limits: list[Object]) -> None:
    """Sets the defaults of one LimitRange."""
    defaults: dict[str, dict[str, Any]] = {"requests": {}, "limits": {}}
    for limit in limits:
        if limit["type"] == "Container":
            defaults["requests"] |= limit.get("defaultRequest") or {}
            defaults["limits"] |= limit.get("default") or {}
    done = []
    for field, called in _CONTAINERS:
        for container in pod["spec"].get(field) or ():
            for which in ("requests", "limits"):
                if missing := _give(container, which, defaults[which]):
                    done.append(f"{', '.join(missing)} {which[:-1]} for {called} {container['name']}")
    if done:
        annotations = metadata(pod).get("annotations") or {}
        metadata(pod)["annotations"] = {**annotations, _ANNOTATION: f"LimitRanger plugin set: {'; '.join(done)}"}


def _give(container: Object, which: str, defaults: dict[str, Any]) -> list[str]:
    """Adds the missing defaults to the container and returns their names."""
    own = (container.get("resources") or {}).get(which) or {}
    missing = sorted(defaults.keys() - own.keys())
    if missing:
        container["resources"] = {**(container.get("resources") or {}), which: {**defaults, **own}}
    return missing


# ------------------------------------------------------------------ bounds


def _first_problems(limits: list[list[Object]], spec: Object, check: _Check) -> list[str]:
    """The problems with the first LimitRange that the object doesn't keep to, each once."""
    for limits_of_one in limits:
        if problems := list(dict.fromkeys(problem for limit in limits_of_one for problem in check(limit, spec))):
            return problems
    return []


def _pod_problems(limit: Object, spec: Object) -> Iterator[str]:
    if limit["type"] == "Container":
        for field, _ in _CONTAINERS:
            for container in spec.get(field) or ():
                spend(_COST)
                resources = container.get("resources") or {}
                yield from _problems(
                    limit, resource_list(resources.get("requests")), resource_list(resources.get("limits"))
                )
    elif limit["type"] == "Pod":
        yield from _problems(limit, pod_resources(spec, "requests"), pod_resources(spec, "limits"))


def _claim_problems(limit: Object, spec: Object) -> Iterator[str]:
    """A claim's limits mean nothing."""
    if limit["type"] != "PersistentVolumeClaim":
        return
    requests = resource_list((spec.get("resources") or {}).get("requests"))
    yield from _too_little(limit, requests, {})
    for name, most in _bounds(limit, "max"):
        asked, what = requests.get(name), f"maximum {name} usage per {limit['type']} is {most}"
        if asked is None:
            yield f"{what}.  No request is specified"
        elif asked > most:
            yield f"{what}, but request is {asked}"


def _bounds(limit: Object, field: str) -> Iterator[tuple[str, Quantity]]:
    for name, text in sorted((limit.get(field) or {}).items()):
        yield name, parse(str(text))


def _problems(limit: Object, requests: ResourceList, limits: ResourceList) -> Iterator[str]:
    yield from _too_little(limit, requests, limits)
    yield from _too_much(limit, requests, limits)
    for name, most in _bounds(limit, "maxLimitRequestRatio"):
        asked, used = requests.get(name), limits.get(name)
        what = f"{name} max limit to request ratio per {limit['type']} is {most}"
        if asked is None or not asked.amount:
            yield f"{what}, but no request is specified or request is 0"
        elif used is None or not used.amount:
            yield f"{what}, but no limit is specified or limit is 0"
        elif (ratio := milli_value(used) / milli_value(asked)) * 1000 > milli_value(most):
            yield f"{what}, but provided ratio is {ratio:f}"  # in floats, as upstream


def _too_little(limit: Object, requests: ResourceList, limits: ResourceList) -> Iterator[str]:
    for name, least in _bounds(limit, "min"):
        asked, used, what = requests.get(name), limits.get(name), f"minimum {name} usage per {limit['type']} is {least}"
        if asked is None:
            yield f"{what}.  No request is specified"
        elif asked < least:
            yield f"{what}, but request is {asked}"
        elif used is not None and used < least:
            yield f"{what}, but limit is {used}"


def _too_much(limit: Object, requests: ResourceList, limits: ResourceList) -> Iterator[str]:
    for name, most in _bounds(limit, "max"):
        asked, used, what = requests.get(name), limits.get(name), f"maximum {name} usage per {limit['type']} is {most}"
        if used is None:
            yield f"{what}.  No limit is specified"
        elif used > most:
            yield f"{what}, but limit is {used}"
        elif asked is not None and asked > most:
            yield f"{what}, but request is {asked}"
