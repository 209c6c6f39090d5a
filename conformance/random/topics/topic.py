"""A topic: a stream of random requests about some admission plugins, and what they have in common."""

from collections.abc import Callable, Iterable
from random import Random
from typing import Any, Final

Object = dict[str, Any]
Request = dict[str, Any]

_MERGE: Final = "application/merge-patch+json"
_STRATEGIC: Final = "application/strategic-merge-patch+json"
_APPLY: Final = "application/apply-patch+yaml"
NAMES: Final = ("p1", "p2", "p3", "p4")
COMPUTE: Final = ("cpu", "memory", "ephemeral-storage")
# More than what containers ask for in all.
_LARGE: Final = {"cpu": "20", "memory": "20Gi", "hugepages-2Mi": "64Mi"}
EXTENDED: Final = ("example.com/gpu", "hugepages-2Mi", "deviceclass.resource.kubernetes.io/fast")


class Topic:
    """A round of requests. `pause` is the number of seconds between two requests."""

    pause: float = 0.0

    def __init__(self, random: Random, namespace: str) -> None:
        self.random = random
        self.namespace = namespace

    def setup(self) -> Iterable[Request]:
        yield self.create_namespace({})

    def request(self) -> Request:
        raise NotImplementedError

    def cleanup(self) -> Iterable[Request]:
        return ()

    # ------------------------------------------------------------------ choosing

    def pick(self, *options: Any) -> Any:
        return self.random.choice(options)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def some(self, options: Iterable[str], share: float = 0.5) -> list[str]:
        return [option for option in options if self.chance(share)]

    # ------------------------------------------------------------------ requests

    def create_namespace(self, meta: Object) -> Request:
        return post("/api/v1/namespaces", {"metadata": {"name": self.namespace, **meta}})

    def path(self, resource: str, group: str = "v1") -> str:
        return f"{'/api' if group == 'v1' else '/apis'}/{group}/namespaces/{self.namespace}/{resource}"

    def write(self, path: str, obj: Object, kind: tuple[str, str]) -> Request:
        """The object by any verb that makes one."""
        name = obj["metadata"]["name"]
        verb = self.pick("create", "create", "create", "create", "dry", "put", "apply", "merge")
        if verb in ("create", "dry"):
            return post(path + ("?dryRun=All" if verb == "dry" else ""), obj)
        if verb == "put":
            return {"method": "PUT", "path": f"{path}/{name}", "body": obj}
        if verb == "merge":
            return patch(f"{path}/{name}", obj)
        typed = {"apiVersion": kind[0], "kind": kind[1], **obj}
        return patch(f"{path}/{name}?fieldManager=m&force=true", typed, _APPLY)

    def delete(self, path: str) -> Request:
        return {"method": "DELETE", "path": f"{path}{self.pick('', '', '?dryRun=All', '?gracePeriodSeconds=0')}"}

    # ---------------------------------------------------------------------- pods

    def quantity(self, name: str) -> str:
        return str(self.pick(*_quantities(name)))

    def resources(self, share: float = 0.6, names: Iterable[str] = (*COMPUTE, *EXTENDED)) -> Object:
        """Mostly good ones: no request is more than its limit, and what can't be shared has both."""
        requests: dict[str, str] = {}
        limits: dict[str, str] = {}
        for name in self.some(names, share):
            amounts = _quantities(name)
            low, high = sorted((self.random.randrange(len(amounts)), self.random.randrange(len(amounts))))
            if name in EXTENDED:
                low = high
            has = self.pick("both", "both", "request", "limit") if name in COMPUTE else "both"
            if has != "limit":
                requests[name] = amounts[high if self.chance(0.02) else low]
            if has != "request":
                limits[name] = amounts[high]
        if "hugepages-2Mi" in requests:
            requests.setdefault("cpu", "0.0001")
        return {key: values for key, values in (("requests", requests), ("limits", limits)) if values}

    def container(self, name: str, resources: bool = True) -> Object:
        found: Object = {"name": name, "image": self.pick("i", "i:1", "j:2")}
        if resources and self.chance(0.8):
            found["resources"] = self.resources(
                0.4, self.pick(COMPUTE, COMPUTE, ("cpu", "memory"), (*COMPUTE, *EXTENDED))
            )
        return found

    def pod_spec(self, resources: bool = True) -> Object:
        spec: Object = {"containers": [self.container(f"c{i}", resources) for i in range(self.pick(1, 1, 2))]}
        if self.chance(0.3):
            spec["initContainers"] = [self.container(f"i{i}", resources) for i in range(self.pick(1, 2))]
            for container in spec["initContainers"]:
                if self.chance(0.5):
                    container["restartPolicy"] = "Always"
        if resources and self.chance(0.2):
            names = ("cpu", "memory", *self.some(("hugepages-2Mi",)))
            requests = {name: _LARGE[name] for name in names}
            spec["resources"] = {"requests": requests, "limits": dict(requests)}
        return spec

    def pod(self, resources: bool = True) -> Object:
        return {"metadata": {"name": self.pick(*NAMES)}, "spec": self.pod_spec(resources)}

    def resize(self) -> Request:
        change: Object = {"spec": {"containers": [{"name": "c0", "resources": self.resources(0.5, ("cpu", "memory"))}]}}
        if self.chance(0.2):
            change["spec"] = {"resources": self.resources(0.5, ("cpu", "memory"))}
        return patch(
            f"{self.path('pods')}/{self.pick(*NAMES)}/resize{self.pick('', '?dryRun=All')}", change, _STRATEGIC
        )

    def debug(self) -> Request:
        added = {"name": self.pick("d1", "d2", "d3"), "image": "d"}
        change = {"spec": {"ephemeralContainers": [added]}}
        return patch(f"{self.path('pods')}/{self.pick(*NAMES)}/ephemeralcontainers", change, _STRATEGIC)

    def any_pod_request(self, pod: Callable[[], Object]) -> Request:
        path, name = self.path("pods"), self.pick(*NAMES)
        match self.pick(*"wwwwwwwwdrlsebD"):
            case "w":
                return self.write(path, pod(), ("v1", "Pod"))
            case "d":
                return self.delete(f"{path}/{name}")
            case "r":
                return self.resize()
            case "l":
                return patch(f"{path}/{name}", {"metadata": {"labels": {"a": self.pick("b", "c")}}})
            case "s":
                return patch(
                    f"{path}/{name}/status", {"status": {"phase": self.pick("Running", "Succeeded", "Failed")}}
                )
            case "e":
                return self.debug()
            case "b":
                return post(
                    f"{path}/{name}/binding", {"metadata": {"name": name}, "target": {"kind": "Node", "name": "n"}}
                )
            case _:
                return patch(f"{path}/{name}", {"spec": {"activeDeadlineSeconds": self.pick(5, 100)}})


def _quantities(name: str) -> tuple[str, ...]:
    """In order of size."""
    if name == "cpu":
        return "0", "0.0001", "100m", "0.5", "1", "1500m", "2", "3"
    if name.startswith("hugepages"):
        return "2Mi", "4Mi", "8Mi"
    if "/" in name:
        return "0", "1", "2", "5"
    return "0", "100m", "1000", "64Mi", "128Mi", "0.5Gi", "1e9", "1G", "2Gi"


def post(path: str, body: Object) -> Request:
    return {"method": "POST", "path": path, "body": body}


def patch(path: str, body: Any, kind: str = _MERGE) -> Request:
    return {"method": "PATCH", "path": path, "body": body, "type": kind}


def as_user(request: Request, user: str, *groups: str) -> Request:
    headers = {"Impersonate-User": user}
    if groups:
        headers["Impersonate-Group"] = groups[0]
    return {**request, "headers": headers}
