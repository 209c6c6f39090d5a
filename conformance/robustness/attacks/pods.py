"""Attacks with pods: each list of a pod as long as a body allows."""

from collections.abc import Callable, Iterator
from typing import Any, Final

from conformance.robustness.attacks.attack import BODY, Attack, Call, Object, encoded, filled, named, pairs, posted

PODS: Final = "/api/v1/namespaces/default/pods"
_PORTS: Final = 65535
_OF_CONTAINER: Final[dict[str, Callable[[int], object]]] = {
    "ports": lambda i: {"containerPort": i % _PORTS + 1, "name": f"p{i}"},
    "ports, all the same": lambda i: {"containerPort": 80},
    "env": lambda i: {"name": f"N{i}", "value": "v"},
    "env, all the same": lambda i: {"name": "N"},
    "env that names others": lambda i: {"name": f"N{i}", "value": f"$(N{i - 1})$(N{i // 2})"},
    "envFrom": lambda i: {"configMapRef": {"name": f"c{i}"}},
    "volumeMounts": lambda i: {"name": f"v{i}", "mountPath": f"/m{i}"},
    "volumeDevices": lambda i: {"name": f"v{i}", "devicePath": f"/m{i}"},
    "resizePolicy": lambda i: {"resourceName": f"r{i}", "restartPolicy": "NotRequired"},
    "restartPolicyRules": lambda i: {"action": "Restart", "exitCodes": {"operator": "In", "values": [i]}},
    "args": lambda i: "",
    "args of empty maps": lambda i: {},
}
_OF_SPEC: Final[dict[str, Callable[[int], object]]] = {
    "volumes": lambda i: {"name": f"v{i}"},
    "volumes of all types": lambda i: {"name": f"v{i}", "emptyDir": {}, "hostPath": {"path": "/"}, "secret": {}},
    "containers": lambda i: {"name": f"c{i}", "image": "i"},
    "initContainers": lambda i: {"name": f"i{i}", "image": "i", "restartPolicy": "Always"},
    "tolerations": lambda i: {"key": f"k{i}", "operator": "Exists"},
    "topologySpreadConstraints": lambda i: {"maxSkew": 1, "topologyKey": f"t{i}", "whenUnsatisfiable": "DoNotSchedule"},
    "hostAliases": lambda i: {"ip": f"10.{i >> 16 & 255}.{i >> 8 & 255}.{i & 255}", "hostnames": [f"h{i}"]},
    "imagePullSecrets": lambda i: {"name": f"s{i}"},
    "readinessGates": lambda i: {"conditionType": f"c{i}"},
    "schedulingGates": lambda i: {"name": f"g{i}"},
    "resourceClaims": lambda i: {"name": f"r{i}", "resourceClaimName": "c"},
    "null tolerations": lambda i: None,
}
_OF_SECURITY: Final[dict[str, Callable[[int], object]]] = {
    "sysctls": lambda i: {"name": f"kernel.s{i}", "value": "1"},
    "supplementalGroups": lambda i: i,
}


def pod(name: str, container: Object | None = None, **spec: object) -> Object:
    containers = [{"name": "c", "image": "i", **(container or {})}]
    return named("v1", "Pod", name, spec={"containers": containers, **spec})


def attacks() -> Iterator[Attack]:
    def of_container(name: str, key: str, item: Callable[[int], object]) -> Attack:
        return Attack(f"pod: {name}", posted(PODS, lambda: pod("of-container", {key: filled(item)})))

    def of_spec(name: str, key: str, value: Callable[[], Any]) -> Attack:
        return Attack(f"pod: {name}", posted(PODS, lambda: pod("of-spec", **{key: value()})))

    yield Attack(
        "pod: 5,000 ports",
        posted(PODS, lambda: pod("ports", {"ports": [{"containerPort": i + 1} for i in range(5000)]})),
    )
    for name, item in _OF_CONTAINER.items():
        yield of_container(name, name.partition(",")[0].partition(" ")[0], item)
    for name, item in _OF_SPEC.items():
        key = name.removeprefix("null ").partition(" ")[0]
        yield of_spec(name, key, lambda item=item: filled(item))  # type: ignore[misc]
    for name, item in _OF_SECURITY.items():
        yield of_spec(name, "securityContext", lambda name=name, item=item: {name: filled(item)})  # type: ignore[misc]
    yield of_spec("nodeSelector", "nodeSelector", lambda: pairs(lambda i: (f"k{i}", "v")))
    yield of_spec("overhead", "overhead", lambda: pairs(lambda i: (f"example.com/r{i}", "1")))
    yield of_spec("affinity terms", "affinity", _affinity)
    yield of_spec("anti-affinity terms", "affinity", _anti_affinity)
    yield Attack("pod: resources", posted(PODS, lambda: pod("resources", {"resources": {"limits": pairs(_resource)}})))
    yield Attack("pod: mounts of their volumes", posted(PODS, _mounted))
    yield from _quantities()
    yield from _status()


def _resource(number: int) -> tuple[str, object]:
    return f"example.com/r{number}", "1"


def _affinity() -> Object:
    terms = filled(lambda i: {"matchExpressions": [{"key": f"k{i}", "operator": "In", "values": ["v"]}]})
    return {"nodeAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}


def _anti_affinity() -> Object:
    terms = filled(
        lambda i: {"topologyKey": f"k{i}", "labelSelector": {"matchLabels": {"a": "b"}}, "namespaces": ["n"]}
    )
    return {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": terms}}


def _mounted() -> Object:
    mounts = filled(lambda i: {"name": f"v{i}", "mountPath": f"/m{i}"}, BODY // 2)
    volumes = filled(lambda i: {"name": f"v{i}", "emptyDir": {}}, BODY // 2)
    return pod("mounted", {"volumeMounts": mounts}, volumes=volumes)


def _quantities() -> Iterator[Attack]:
    for name, text in (
        ("digits", "1" * 1_000_000),
        ("zeroes", "0" * 1_000_000 + "1"),
        ("fraction", "0." + "3" * 1_000_000),
        ("exponent", "1e" + "9" * 1_000_000),
        ("sign and suffix", "-" + "7" * 500_000 + "Ki"),
    ):
        limits = {"limits": {"cpu": text}}
        yield Attack(f"quantity: {name}", posted(PODS, lambda limits=limits: pod("quantity", {"resources": limits})))  # type: ignore[misc]


def _status() -> Iterator[Attack]:
    before = [posted(PODS, lambda: pod("status"))]

    def put(name: str, status: Callable[[], Object]) -> Attack:
        obj = lambda: encoded({**pod("status"), "status": status()})  # noqa: E731
        return Attack(f"pod status: {name}", Call("PUT", f"{PODS}/status/status", obj), before)

    yield put("conditions", lambda: {"conditions": filled(lambda i: {"type": f"t{i}", "status": "True"})})
    yield put("containerStatuses", lambda: {"containerStatuses": filled(_container_status)})
    yield put("podIPs", lambda: {"podIPs": filled(lambda i: {"ip": f"10.0.{i >> 8 & 255}.{i & 255}"})})


def _container_status(number: int) -> Object:
    return {"name": f"c{number}", "image": "i", "imageID": "", "ready": True, "restartCount": 0}
