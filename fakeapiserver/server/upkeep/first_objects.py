"""The objects that the first controllers make in the namespaces of a fresh server: stored as they write them, without their requests.

No pod can be created before they are there, so a start waits for them. The controllers find them when they run, and restore them from
then on.
"""

from collections.abc import Collection, Iterator
from typing import Final

from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.controllers import root_ca_certificate_publisher, serviceaccount
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.upkeep.bootstrap import store_all

# The controllers' names.
ACCOUNTS: Final = "serviceaccount-controller"
PUBLISHER: Final = "root-ca-certificate-publisher-controller"
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
    """Stores what these of the first controllers make in each namespace."""
    namespaces = scopes.store_for(_NAMESPACES)
    assert namespaces is not None
    keys = [stored.key for stored in scopes.storage.list_now(namespaces.prefix).items]
    names = [key.removeprefix(namespaces.prefix) for key in keys]
    await store_all(scopes, _objects(names, controllers, root_ca), scopes.clock.now())


def _objects(namespaces: Collection[str], controllers: Collection[str], root_ca: bytes) -> Iterator[Object]:
    """Yields the objects in the order in which the controllers write them."""
    data = root_ca_certificate_publisher.data_of(root_ca)
    for namespace in namespaces:
        if ACCOUNTS in controllers:
            yield serviceaccount.new_account(namespace)
        if PUBLISHER in controllers:
            config_map = root_ca_certificate_publisher.new_config_map(data)
            config_map["metadata"] |= {"namespace": namespace, "managedFields": [_ownership()]}
            yield config_map


def _ownership() -> Object:
    """Returns the entry of the fields that the publisher owns; its time is set when it is stored."""
    annotations: Object = {".": {}, "f:kubernetes.io/description": {}}
    fields = {"f:data": {".": {}, "f:ca.crt": {}}, "f:metadata": {"f:annotations": annotations}}
    return {
        "manager": "kube-controller-manager",
        "operation": "Update",
        "apiVersion": "v1",
        "fieldsType": "FieldsV1",
        "fieldsV1": fields,
    }
