"""Random lives of services beside a real server: created, updated, patched and deleted, with whatever addresses, families and ports.

    python -m conformance.compare.services --oracle URL --oracle-token T --server URL --token T
        [--seed N] [--lives N] [--steps N] [--ranges N]

Both servers should be fresh, without controllers, and started with the same `--service-cluster-ip-range` (of /24 and /112) and
`--service-node-port-range`. In each of `--lives` a handful of services share a namespace; `--steps` requests change their types,
families, addresses and ports, try numbers that are taken, reserved or out of range, write their status, and look at the IPAddress
objects they hold. Each of `--ranges` fills small ServiceCIDRs of its own. An address or port that a server chose counts as the
first, second, ... that it chose; a request that names it is sent to each server with its own. Prints each kind of difference once.
"""

import http.client
import json
import random
import re
import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from conformance.exchange import Answer, Client, comparing, difference

Request = dict[str, Any]
Object = dict[str, Any]

_TYPES: Final = ("ClusterIP", "ClusterIP", "NodePort", "NodePort", "LoadBalancer", "LoadBalancer", "ExternalName")
_POLICIES: Final = ("SingleStack", "PreferDualStack", "RequireDualStack")
_FAMILIES: Final[tuple[list[str], ...]] = (
    ["IPv4"],
    ["IPv6"],
    ["IPv4", "IPv6"],
    ["IPv6", "IPv4"],
    ["IPv4", "IPv4"],
    ["IPv5"],
    [],
)
_ADDRESSES: Final = (
    "10.0.0.5", "10.0.0.6", "10.0.0.7", "10.0.0.16", "10.0.0.1", "10.0.0.0", "10.0.0.255", "10.0.1.1", "fd00::5", "fd00::6",
    "fd00::1", "fd00::", "fd00::ffff", "fd00::1:0", "FD00::7", "fd00:0::8", "010.0.0.9", "None", "", "none", "1.2.3", "8.8.8.8",
)  # fmt: skip
_NODE_PORTS: Final = (30001, 30002, 30003, 30100, 32767, 29999, 32768, 80, 65536, -1, 0)
_NAMES: Final = ("a", "b", "c")
# In a message, of a service that came to nothing.
_REFUSED_NUMBER: Final = re.compile(
    r"(?<=Duplicate value: )3\d{4}|(?<=\"NodePort\":)3\d{4}|fd00::[0-9a-f]{3,4}(?![\w:])|10\.0\.0\.[1-9]\d+"
)
_CHOICES: Final[dict[str, tuple[Any, ...]]] = {
    "sessionAffinity": ("None", "ClientIP", "ClientIP", "x"),
    "sessionAffinityConfig": (
        {"clientIP": {"timeoutSeconds": 5}}, {"clientIP": {"timeoutSeconds": 0}}, {"clientIP": {"timeoutSeconds": 86401}}, {},
        {"clientIP": {}},
    ),
    "externalTrafficPolicy": ("Local", "Local", "Cluster", "x", ""),
    "internalTrafficPolicy": ("Local", "Cluster", "x", ""),
    "trafficDistribution": ("PreferClose", "PreferSameZone", "PreferSameNode", "x", ""),
    "healthCheckNodePort": (*_NODE_PORTS, 31000, 31001),
    "loadBalancerClass": ("example.com/a", "example.com/b", "a b", ""),
    "loadBalancerIP": ("1.2.3.4", "01.2.3.4", "x"),
    "loadBalancerSourceRanges": (["10.0.0.0/8"], ["10.0.0.1/8", " 1.2.3.4/32 "], ["x"], ["010.0.0.0/8"], ["::/0", "FD00::/8"], []),
    "externalIPs": (["1.2.3.4"], ["127.0.0.1"], ["x", "1.2.3.4"], ["01.2.3.4"], ["FE80::1", "fd00::1"], []),
    "externalName": ("example.com", "example.com.", "a_b", "", "1.2.3.4"),
    "allocateLoadBalancerNodePorts": (True, False, False),
    "publishNotReadyAddresses": (True, False),
    "selector": ({"app": "x"}, {"app": "x"}, {}, {"a b": "c"}),
    "ipFamilyPolicy": (*_POLICIES, "x"),
    "ipFamilies": _FAMILIES,
    "type": (*_TYPES, "x"),
}  # fmt: skip
_SPARSE: Final = (
    "loadBalancerIP",
    "externalIPs",
    "loadBalancerSourceRanges",
    "publishNotReadyAddresses",
    "externalName",
)


_NUMBER: Final = re.compile(r"(?<![\w.:])[0-9a-f]+(?:[.:]+[0-9a-f]+)*(?:::)?(?![\w])")
# Of two addresses a real server takes either first.
_EITHER_ADDRESS: Final = re.compile(r"(Invalid value: \[[^\]]*,[^\]]*\]: failed to allocate IP )[^ ]+( \d+>)?(?=: )")


class Pair:
    """Both servers; what each of them chose stands for `<ip N>` or `<port N>` here."""

    def __init__(self, oracle: Client, server: Client) -> None:
        self._clients = (oracle, server)
        self._told: set[str] = set()
        self.sent = self.equal = 0
        self.forget()

    def forget(self) -> None:
        """Forgets the chosen values: once they are released they can be chosen again."""
        self._names: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self._values: tuple[dict[str, str], dict[str, str]] = ({}, {})
        self._asked: set[str] = set()
        self._count = 0

    def send(self, request: Request, before: list[Request]) -> Answer:
        """Sends a request to both servers and returns the oracle's answer, with names in place of the values that the oracle chose."""
        self._asked |= set(re.findall(r"[0-9a-fA-F:.]+", json.dumps(request.get("body", ""))))
        texts = [_replaced(json.dumps(request), values) for values in self._values]
        answers = [client.send(json.loads(text), []) for client, text in zip(self._clients, texts, strict=True)]
        self._note(*(answer.get("body") for answer in answers))
        answers = [_named(answer, names) for answer, names in zip(answers, self._names, strict=True)]
        self.sent += 1
        expected, got = answers
        if found := difference(_masked(expected), _masked(got)):
            self._tell(request, found, expected, got, before)
        else:
            self.equal += 1
        return expected

    def _note(self, expected: Any, got: Any) -> None:
        """A number that one server had given another name was free again, and chosen again."""
        if any(not isinstance(body, dict) or body.get("kind") != "Service" for body in (expected, got)):
            return
        for what in ("ip", "port"):
            for pair in zip(*(_numbers(body.get("spec") or {}, what) for body in (expected, got)), strict=False):
                known = {names.get(value) for value, names in zip(pair, self._names, strict=True)}
                if self._asked.isdisjoint(pair) and (len(known) > 1 or None in known):
                    self._count += 1
                    name = f"<{what} {self._count}>"
                    for value, names, values in zip(pair, self._names, self._values, strict=True):
                        names[value], values[name] = name, value

    def _tell(self, request: Request, found: str, expected: Answer, got: Answer, before: list[Request]) -> None:
        key = re.sub(r"\d+|\[\w*\]|\"[^\"]*\"", "N", found)[:120]
        if key in self._told:
            return
        self._told.add(key)
        texts = (
            [json.dumps(answer.get("body"))[:900] for answer in (expected, got)]
            if expected["status"] != got["status"]
            else []
        )
        body = json.dumps(request.get("body"))
        print(f"{request['method']} {request['path']} {body}\n    {found[:900]}", flush=True)
        for text in texts:
            print(f"    {text}", flush=True)
        for earlier in before[-3:]:
            print(
                f"      after {earlier['method']} {earlier['path']} {json.dumps(earlier.get('body'))[:300]}", flush=True
            )


def _numbers(spec: Object, what: str) -> list[str]:
    if what == "ip":
        return [ip for ip in spec.get("clusterIPs") or () if ip != "None"]
    ports = [port.get("nodePort", 0) for port in spec.get("ports") or ()]
    return [str(port) for port in (*ports, spec.get("healthCheckNodePort", 0)) if port]


def _named(value: Any, names: dict[str, str]) -> Any:
    """The answer with names for numbers that were chosen."""
    if isinstance(value, dict):
        return {key: _named(item, names) for key, item in value.items()}
    if isinstance(value, list):
        return [_named(item, names) for item in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return names.get(str(value), value)
    return _NUMBER.sub(lambda match: names.get(match[0], match[0]), value) if isinstance(value, str) else value


def _replaced(text: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        text = text.replace(f'"{name}"', value) if name.startswith("<port") else text.replace(name, value)
    return text


def _masked(answer: Answer) -> Answer:
    """`difference` leaves these keys out; what was chosen has a name here, so that they can be compared."""

    def renamed(value: Any) -> Any:
        if isinstance(value, dict):
            return {
                f"own {key}" if key in ("clusterIP", "clusterIPs", "nodePort") else key: renamed(item)
                for key, item in value.items()
            }
        if isinstance(value, str):
            return _EITHER_ADDRESS.sub(r"\1<one of them>", _REFUSED_NUMBER.sub("<a number>", value))
        return [renamed(item) for item in value] if isinstance(value, list) else value

    return {**answer, "body": renamed(answer.get("body"))}


class Life:
    def __init__(self, pair: Pair, rng: random.Random, namespace: str) -> None:
        self._pair, self._random = pair, rng
        self._path = f"/api/v1/namespaces/{namespace}/services"
        self._seen: dict[str, Object] = {}
        self._sent: list[Request] = []

    def live(self, steps: int) -> None:
        with suppress(
            http.client.RemoteDisconnected
        ):  # a real server panics now and then; what it holds then is anyone's guess
            for _ in range(steps):
                self._step()
        for name in _NAMES:
            self._send("DELETE", f"{self._path}/{name}?gracePeriodSeconds=0")
        self._addresses()

    def _step(self) -> None:
        name = self._random.choice(_NAMES)
        known = self._seen.get(name)
        dry_run = "?dryRun=All" if self._random.random() < 0.15 else ""
        if known is None:
            obj = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": name}, "spec": self._spec()}
            self._keep(name, self._send("POST", self._path + dry_run, obj), dry_run)
            return
        match self._random.choice(
            ("put", "put", "put", "patch", "patch", "status", "delete", "again", "look", "addresses")
        ):
            case "put":
                spec = json.loads(json.dumps(known["spec"]))
                self._change(spec)
                obj = {**known, "metadata": {"name": name}, "spec": spec}
                self._keep(name, self._send("PUT", f"{self._path}/{name}{dry_run}", obj), dry_run)
            case "patch":
                spec = self._patch(known["spec"])
                self._keep(name, self._send("PATCH", f"{self._path}/{name}{dry_run}", {"spec": spec}), dry_run)
            case "status":
                answer = self._send("PATCH", f"{self._path}/{name}/status", {"status": self._status()})
                self._keep(name, answer, "")
            case "delete":
                self._send("DELETE", f"{self._path}/{name}{dry_run}")
                if not dry_run:
                    del self._seen[name]
            case "again":
                self._send("POST", self._path + dry_run, {**known, "metadata": {"name": name}})
            case "look":
                self._send("GET", f"{self._path}/{name}")
            case "addresses":
                self._addresses()

    def _keep(self, name: str, answer: Answer, dry_run: str) -> None:
        if answer["status"] < 300 and not dry_run:
            self._seen[name] = answer["body"]

    def _addresses(self) -> None:
        """Each address that the services have."""
        for obj in self._seen.values():
            for ip in obj["spec"].get("clusterIPs") or ():
                if ip != "None":
                    self._send("GET", f"/apis/networking.k8s.io/v1/ipaddresses/{ip.lower()}")

    def _send(self, method: str, path: str, body: Any = None) -> Answer:
        request: Request = {"method": method, "path": path}
        if body is not None:
            request["body"] = body
        if method == "PATCH":
            request["type"] = "application/merge-patch+json"
        answer = self._pair.send(request, self._sent)
        self._sent.append(request)
        return answer

    # ------------------------------------------------------------------- what is sent

    def _spec(self) -> Object:
        spec: Object = {"type": self._random.choice(_TYPES)}
        if spec["type"] == "ExternalName":
            spec["externalName"] = "example.com"
        if self._random.random() < 0.9:
            spec["ports"] = self._ports()
        if self._random.random() < 0.4:
            self._change_addresses(spec)
        for _ in range(self._random.choice((0, 0, 1, 1, 2, 3))):
            self._change_one(spec)
        return spec

    def _ports(self) -> list[Object]:
        return [self._port(i) for i in range(self._random.choice((1, 1, 2, 3)))]

    def _port(self, i: int) -> Object:
        port: Object = {"port": self._random.choice((80, 80, 81, 443)), "name": f"p{i}"}
        if self._random.random() < 0.3:
            port["protocol"] = self._random.choice(("UDP", "TCP", "SCTP", "UDP"))
        if self._random.random() < 0.3:
            port["nodePort"] = self._random.choice(_NODE_PORTS)
        if self._random.random() < 0.1:
            port["appProtocol"] = self._random.choice(("http", "kubernetes.io/h2c", "a b", ""))
        if self._random.random() < 0.1:
            port["targetPort"] = self._random.choice(("web", 8080, 0, "", 70000, "a_b"))
        if self._random.random() < 0.05:
            port["name"] = self._random.choice(("", "p0", "A"))
        return port

    def _change(self, spec: Object) -> None:
        for _ in range(self._random.choice((1, 1, 2, 3))):
            match self._random.choice(
                ("type", "type", "ports", "addresses", "one", "one", "drop", "drop port numbers")
            ):
                case "type":
                    spec["type"] = self._random.choice(_TYPES)
                    if spec["type"] == "ExternalName" and self._random.random() < 0.8:
                        spec["externalName"] = "example.com"
                        if self._random.random() < 0.3:
                            for name in ("clusterIP", "clusterIPs"):
                                spec.pop(name, None)
                case "ports":
                    ports = spec.get("ports") or []
                    if ports and self._random.random() < 0.5:
                        ports[self._random.randrange(len(ports))]["nodePort"] = self._random.choice(_NODE_PORTS)
                    else:
                        spec["ports"] = self._ports()
                case "addresses":
                    self._change_addresses(spec)
                case "one":
                    self._change_one(spec)
                case "drop" if spec:
                    spec.pop(self._random.choice(sorted(spec)))
                case "drop port numbers":
                    for port in spec.get("ports") or ():
                        port.pop("nodePort", None)

    def _change_addresses(self, spec: Object) -> None:
        addresses = [self._random.choice(_ADDRESSES) for _ in range(self._random.choice((0, 1, 1, 1, 2, 3)))]
        if self._random.random() < 0.2:
            addresses = ["None"]
        if self._random.random() < 0.8 and addresses:
            spec["clusterIP"] = addresses[0]
        if self._random.random() < 0.5:
            spec["clusterIPs"] = addresses
        if self._random.random() < 0.3:
            spec["ipFamilyPolicy"] = self._random.choice(_POLICIES)
        if self._random.random() < 0.3:
            spec["ipFamilies"] = self._random.choice(_FAMILIES)

    def _change_one(self, spec: Object) -> None:
        name = self._random.choice(sorted(_CHOICES))
        if name in _SPARSE and self._random.random() < 0.5:
            name = self._random.choice(("ipFamilyPolicy", "externalTrafficPolicy", "type"))
        spec[name] = self._random.choice(_CHOICES[name])

    def _patch(self, spec: Object) -> Object:
        patch: Object = {}
        self._change(patch)
        if self._random.random() < 0.3 and spec:
            patch[self._random.choice(sorted(spec))] = None
        return patch

    def _status(self) -> Object:
        ingress: list[Object] = []
        for _ in range(self._random.choice((0, 1, 2))):
            point: Object = {"ip": self._random.choice(("1.2.3.4", "01.2.3.4", "FD00::1", "x"))}
            if self._random.random() < 0.4:
                point = {"hostname": self._random.choice(("a.example.com", "1.2.3.4", "A_b"))}
            if self._random.random() < 0.3:
                point["ipMode"] = self._random.choice(("VIP", "Proxy", "x"))
            if self._random.random() < 0.3:
                port = self._random.choice((80, 0, 70000))
                point["ports"] = [{"port": port, "protocol": self._random.choice(("TCP", "x")), "error": "a b"}]
            ingress.append(point)
        condition = {
            "type": "A",
            "status": "True",
            "reason": "R",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        conditions = [condition] if self._random.random() < 0.2 else []
        return {"loadBalancer": {"ingress": ingress}, "conditions": conditions}


class Ranges:
    """Small ranges, filled to the last address, and given back. Everything outside them is out of reach meanwhile."""

    def __init__(self, pair: Pair, rng: random.Random, number: int) -> None:
        self._pair, self._random, self._number = pair, rng, number
        self._sent: list[Request] = []

    def run(self) -> None:
        for request in self._requests():
            self._pair.send(request, self._sent)
            self._sent.append(request)
            if "servicecidrs" in request["path"]:
                time.sleep(0.3)  # until who hands out addresses has heard of it

    def _requests(self) -> Iterator[Request]:
        services, ranges = "/api/v1/namespaces/default/services", "/apis/networking.k8s.io/v1/servicecidrs"
        net = f"10.{self._number + 1}.0"
        size = self._random.choice((30, 29, 28))
        name = f"small{self._number}"
        spec = {"cidrs": [f"{net}.0/{size}"]}
        yield {"method": "POST", "path": ranges, "body": {"metadata": {"name": name}, "spec": spec}}
        last = 2 ** (32 - size) - 1
        wanted = [f"{net}.{i}" for i in (0, 1, 2, last - 1, last, last + 1, 1)]
        self._random.shuffle(wanted)
        for i, ip in enumerate(wanted):
            dry_run = "?dryRun=All" if self._random.random() < 0.1 else ""
            body = {"metadata": {"name": f"r{i}"}, "spec": {"clusterIP": ip, "ports": [{"port": 80}]}}
            yield {"method": "POST", "path": services + dry_run, "body": body}
        ready = {"conditions": [{"type": "Ready", "status": self._random.choice(("True", "False")), "reason": "", "message": "",
                                 "lastTransitionTime": "2026-01-01T00:00:00Z"}]}  # fmt: skip
        patch = {"method": "PATCH", "type": "application/merge-patch+json"}
        yield {**patch, "path": f"{ranges}/{name}/status", "body": {"status": ready}}
        body = {"metadata": {"name": "late"}, "spec": {"clusterIP": f"{net}.2", "ports": [{"port": 80}]}}
        yield {"method": "POST", "path": services, "body": body}
        for name_ in [*(f"r{i}" for i in range(len(wanted))), "late"]:
            yield {"method": "DELETE", "path": f"{services}/{name_}"}
        yield {"method": "DELETE", "path": f"{ranges}/{name}"}
        yield {"method": "POST", "path": services, "body": body}


def main() -> int:
    parser = comparing(__doc__, lives=20, steps=60, ranges=4)
    arguments = parser.parse_args()
    pair = Pair(Client(arguments.oracle, arguments.oracle_token), Client(arguments.server, arguments.token))
    for number in range(arguments.lives):
        rng = random.Random(f"{arguments.seed} {number}")
        namespace = f"s{arguments.seed}-{number}"
        pair.send({"method": "POST", "path": "/api/v1/namespaces", "body": {"metadata": {"name": namespace}}}, [])
        pair.forget()
        Life(pair, rng, namespace).live(arguments.steps)
    for number in range(arguments.ranges):
        pair.forget()
        Ranges(pair, random.Random(f"{arguments.seed} ranges {number}"), number).run()
    print(f"{pair.equal} of {pair.sent} answers are equal")
    return 0 if pair.equal == pair.sent else 1


if __name__ == "__main__":
    sys.exit(main())
