"""The objects that controllers make in every fresh server: stored as they write them, without their requests.

No pod can be created before they are there, so a start waits for them. The controllers find them when they run, and restore them from
then on.
"""

from collections.abc import Collection, Iterator
from typing import Final

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.controllers import clustertrustbundle_publisher, root_ca_certificate_publisher, serviceaccount
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.upkeep.bootstrap import store_all

# The controllers' names.
ACCOUNTS: Final = "serviceaccount-controller"
PUBLISHER: Final = "root-ca-certificate-publisher-controller"
BUNDLES: Final = "kube-apiserver-serving-clustertrustbundle-publisher-controller"
_DESCRIPTION: Final[Object] = {".": {}, "f:kubernetes.io/description": {}}
WRITERS: Final = (ACCOUNTS, PUBLISHER, BUNDLES)
# The fields that publishers own.
_OF_CONFIG_MAPS: Final[Object] = {"f:data": {".": {}, "f:ca.crt": {}}, "f:metadata": {"f:annotations": _DESCRIPTION}}
_OF_BUNDLES: Final[Object] = {"f:spec": {"f:signerName": {}, "f:trustBundle": {}}}
_NAMESPACES: Final = GroupResource("", "namespaces")
# With another value of one of these, the controllers' requests may be refused, changed or recorded.
_PLAIN: Final = (
    "admission_control",
    "admission_control_config_file",
    "audit",
    "authorization_config",
    "authorization_mode",
    "data_dir",
    "enable_admission_plugins",
    "etcd",
    "faults",
    "load",
    "records",
    "ui",
    "webhooks",
)


def may_store(config: Config) -> bool:
    """Reports whether the controllers' requests would be allowed, unchanged and unseen, so that they needn't be sent."""
    plain = Config()
    return all(getattr(config, name) == getattr(plain, name) for name in _PLAIN)


async def store(scopes: RequestScopes, controllers: Collection[str], root_ca: bytes) -> None:
    """Stores what these controllers make, most of it in each namespace."""
    namespaces = scopes.store_for(_NAMESPACES)
    assert namespaces is not None
    keys = [stored.key for stored in scopes.storage.list_now(namespaces.prefix).items]
    names = [key.removeprefix(namespaces.prefix) for key in keys]
    await store_all(scopes, _objects(names, controllers, root_ca), scopes.clock.now())
    features = namespaces.strategy.features
    if BUNDLES in controllers and features.enabled("ClusterTrustBundle") and features.at_least("v1.37"):
        await store_all(scopes, [_bundle(root_ca)], scopes.clock.now())


def _objects(namespaces: Collection[str], controllers: Collection[str], root_ca: bytes) -> Iterator[Object]:
    """Yields the objects in the order in which the controllers write them."""
    data = root_ca_certificate_publisher.data_of(root_ca)
    for namespace in namespaces:
        if ACCOUNTS in controllers:
            yield serviceaccount.new_account(namespace)
        if PUBLISHER in controllers:
            config_map = root_ca_certificate_publisher.new_config_map(data)
            config_map["metadata"] |= {"namespace": namespace, "managedFields": [_ownership("v1", _OF_CONFIG_MAPS)]}
            yield config_map


def _bundle(root_ca: bytes) -> Object:
    bundle = clustertrustbundle_publisher.new_bundle(root_ca, "v1")
    bundle["metadata"]["managedFields"] = [_ownership(bundle["apiVersion"], _OF_BUNDLES)]
    return bundle


def _ownership(version: str, fields: Object) -> Object:
    """Returns the entry of the fields that a controller owns; its time is set when it is stored."""
    return {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": version,
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
