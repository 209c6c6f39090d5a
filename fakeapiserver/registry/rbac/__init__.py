"""The rbac.authorization.k8s.io group."""

from fakeapiserver.apimachinery import names
from fakeapiserver.registry.generic.strategy import Strategy

_ROW = Strategy(validate_name=names.path_segment_name, allow_create_on_update=True, update_meta_checks=("create", "update"))
RESOURCES = {"clusterrolebindings": _ROW, "clusterroles": _ROW, "rolebindings": _ROW, "roles": _ROW}
