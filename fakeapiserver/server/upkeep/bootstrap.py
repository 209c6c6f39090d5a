"""The objects of a fresh server: namespaces, roles, priority classes, the service `kubernetes` ..., recorded from the real one.

Upstream: the post-start hooks in pkg/controlplane, pkg/registry/rbac/rest, pkg/registry/flowcontrol/rest.
"""

import ipaddress
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.apis import bootstrap
from fakeapiserver.apis.scheme import Scheme
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.upkeep.stored_forms import DATE, StoredForm, forms, stamp_times, store_forms

# Says since when unused service account tokens are looked for.
_TOKEN_TRACKING: Final = "kube-apiserver-legacy-service-account-token-tracking"
_DEFAULT_PORT: Final = 6443
# Configurations whose default objects are kept.
_KEPT_FORMS: Final = 16
_SERVICE: Final = "kubernetes"
_FAMILY: Final = "ipaddress.kubernetes.io/ip-family"


def wanted(scheme: Scheme, config: Config) -> Iterator[Object]:
    """Yields fresh copies of the objects that a server has from the start.

    The service `kubernetes` leads to its port (0: upstream's default) and has the first address of the first range.
    """
    address = ipaddress.ip_network(config.service_ranges[0])[1]
    family = f"IPv{address.version}"
    for obj in bootstrap.objects(scheme):
        match obj["kind"]:
            case "Service":
                obj["spec"]["ports"][0]["targetPort"] = config.secure_port or _DEFAULT_PORT
                if config.kubernetes_service_node_port:
                    _give_node_port(obj, config.kubernetes_service_node_port)
                obj["spec"] |= {"clusterIP": str(address), "clusterIPs": [str(address)], "ipFamilies": [family]}
            case "ServiceCIDR":
                obj["spec"]["cidrs"] = [*config.service_ranges]
            case "IPAddress":
                obj["metadata"] |= {"name": str(address), "labels": {**obj["metadata"]["labels"], _FAMILY: family}}
        yield obj


def _give_node_port(service: Object, port: int) -> None:
    """Sets a node port, as if the service's creator had asked for it."""
    service["spec"] |= {"type": "NodePort", "externalTrafficPolicy": "Cluster"}
    service["spec"]["ports"][0]["nodePort"] = port
    fields = service["metadata"]["managedFields"][0]["fieldsV1"]
    fields["f:spec"] = dict(sorted({**fields["f:spec"], "f:externalTrafficPolicy": {}}.items()))
    owned = fields["f:spec"]["f:ports"]
    for key in owned.keys() - {"."}:
        owned[key] = dict(sorted({**owned[key], "f:nodePort": {}}.items()))


async def store_objects(scopes: RequestScopes, now: float, config: Config) -> None:
    """Straight into storage: they are as the real server stored them, but for identity, time and where the service is that leads
    to this one. The service has endpoints where an address is advertised."""
    stamp = rfc3339(now)
    await store_forms(scopes, _default_forms(scopes, config), stamp)
    # Endpoints can't have a loopback address: upstream then fails to write them, over and over.
    address = config.advertise_address
    if address and not ipaddress.ip_address(address).is_loopback:
        await store_all(scopes, _endpoints(address, config.secure_port or _DEFAULT_PORT, stamp), now)


# What the default objects depend on -> their forms.
_forms: Final[dict[tuple[object, ...], Sequence[StoredForm]]] = {}


def _default_forms(scopes: RequestScopes, config: Config) -> Sequence[StoredForm]:
    """The forms of the default objects, from an earlier server of this process if there was one with the same configuration."""
    key = (
        config.kubernetes_version,
        tuple(config.feature_gates.items()),
        tuple(config.runtime_config.items()),
        config.service_ranges,
        config.secure_port,
        config.kubernetes_service_node_port,
    )
    found = _forms.get(key)
    if found is None:
        objects = [*wanted(scopes.table.scheme, config)]
        for obj in objects:
            if obj["metadata"]["name"] == _TOKEN_TRACKING:
                obj["data"] = {"since": DATE}
        if len(_forms) >= _KEPT_FORMS:
            _forms.clear()
        found = _forms[key] = [*forms(scopes, objects)]
    return found


def _endpoints(address: str, port: int, stamp: str) -> list[Object]:
    """Returns the endpoints of the service `kubernetes`.

    Upstream: pkg/controlplane/reconcilers/endpointsadapter.go.
    """
    ports = [{"name": "https", "port": port, "protocol": "TCP"}]
    endpoints: Object = {
        "kind": "Endpoints",
        "apiVersion": "v1",
        "metadata": _published("v1", "endpointslice.kubernetes.io/skip-mirror", "true", ("subsets",), stamp),
        "subsets": [{"addresses": [{"ip": address}], "ports": ports}],
    }
    fields = ("addressType", "endpoints", "ports")
    endpoint_slice: Object = {
        "kind": "EndpointSlice",
        "apiVersion": "discovery.k8s.io/v1",
        "metadata": {
            **_published("discovery.k8s.io/v1", "kubernetes.io/service-name", _SERVICE, fields, stamp),
            "generation": 1,
        },
        "addressType": f"IPv{ipaddress.ip_address(address).version}",
        "endpoints": [{"addresses": [address], "conditions": {"ready": True}}],
        "ports": ports,
    }
    return [endpoints, endpoint_slice]


def _published(api_version: str, label: str, value: str, fields: Sequence[str], stamp: str) -> Object:
    """Metadata of an object of these fields, written by the server itself with one label."""
    owned: Object = {f"f:{name}": {} for name in fields}
    owned["f:metadata"] = {"f:labels": {".": {}, f"f:{label}": {}}}
    entry = {
        "manager": "kube-apiserver",
        "operation": "Update",
        "apiVersion": api_version,
        "time": stamp,
        "fieldsType": "FieldsV1",
        "fieldsV1": dict(sorted(owned.items())),
    }
    return {"name": _SERVICE, "namespace": "default", "labels": {label: value}, "managedFields": [entry]}


async def store_all(scopes: RequestScopes, objects: Iterable[Object], now: float) -> None:
    """Each where its kind is stored; kinds that aren't served are left out."""
    await store_forms(scopes, forms(scopes, objects), rfc3339(now))


async def store_object(scope: RequestScope, obj: Object, stamp: str) -> None:
    """Stores an object as it is, with a fresh identity and `stamp` for its times. Raises KeyExists."""
    assert scope.store is not None
    meta = metadata(obj)
    key = scope.store.key(meta.get("namespace", ""), meta["name"])
    meta["uid"] = scope.store.chance.uid(key)
    stamp_times(obj, stamp)
    encoded = scope.store.versions.encode(obj)
    await scope.store.storage.create(key, encoded.value, encoded.offset, scope.store.index(obj))
    scope.store.strategy.on_created(obj)
