"""Builds the authorizer and the admission chain that a configuration asks for.

Upstream: pkg/kubeapiserver/options/{authorization,admission}.go.
"""

import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Final

from msgspec import structs

from fakeapiserver.admission.chain import Chain
from fakeapiserver.admission.interfaces import Initializer, Versions
from fakeapiserver.admission.options import exactly, new_chain
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.object_reader import ObjectReader
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.auth.authorizers.rbac import RBAC
from fakeapiserver.auth.interfaces import Authorizer
from fakeapiserver.controller_manager.descriptor import selected
from fakeapiserver.registry import certificates as certificates_group
from fakeapiserver.registry import resource as resource_group
from fakeapiserver.registry.admissionregistration.param_access import ParamAccess
from fakeapiserver.registry.core.service.allocation import ServiceAllocation
from fakeapiserver.registry.core.service.ips import family_of
from fakeapiserver.registry.core.service.ports import NodePorts
from fakeapiserver.registry.rbac.policybased import PolicyBased
from fakeapiserver.server.loopback import Loopback
from fakeapiserver.server.options.admission_configuration import read_admission_configuration
from fakeapiserver.server.options.config import Config

if TYPE_CHECKING:
    from fakeapiserver.registry.generic.write_request import Allocation, Guard
    from fakeapiserver.server.filters.access_log import AccessLog

log = logging.getLogger(__name__)


# The plugin that refuses pods without an account, and the controller that makes accounts.
_SERVICE_ACCOUNT: Final = "ServiceAccount"
_ACCOUNTS: Final = "serviceaccount-controller"
_SERVICES: Final = GroupResource("", "services")


_WITH_PARAMS: Final = (
    "mutatingadmissionpolicies",
    "mutatingadmissionpolicybindings",
    "validatingadmissionpolicies",
    "validatingadmissionpolicybindings",
)

_GRANULAR: Final = "DRAResourceClaimGranularStatusAuthorization"


def guards(
    authorizer: Authorizer,
    rbac: RBAC,
    objects: ObjectReader,
    versions: Versions,
    features: FeatureGates,
    log: "AccessLog | None",
) -> Callable[[GroupResource], "Guard | None"]:
    """Returns further checks of writes to a resource, in all authorization modes.

    Users who grant permissions must have them; users who name params must be allowed to read them; claims of
    shared devices must be in a
    namespace for that; writing a claim's devices and answering a request for a pod's certificate need permissions
    of their own. `log` records
    the permissions used.
    """
    asked = log.beside(lambda _: True) if log is not None else authorizer

    def guard(resource: GroupResource) -> "Guard | None":
        if resource.group == "admissionregistration.k8s.io" and resource.resource in _WITH_PARAMS:
            return ParamAccess(resource.resource, asked, objects, versions.resource_of)
        if resource.group == "resource.k8s.io" and resource.resource in ("resourceclaims", "resourceclaimtemplates"):
            return resource_group.ClaimAccess(objects, asked if features.enabled(_GRANULAR) else None, features.version)
        if resource.group == "certificates.k8s.io" and resource.resource == "podcertificaterequests":
            return certificates_group.SignerAccess(asked)
        if resource.group != "rbac.authorization.k8s.io":
            return None

        return PolicyBased(resource.resource, authorizer, rbac, objects, log.granted if log is not None else None)

    return guard


def allocations(config: Config, loopback: Loopback, ports: NodePorts) -> Mapping[GroupResource, "Allocation"]:
    """Returns what hands out the addresses and ports of services."""
    families = [family_of(service_range.partition("/")[0]) for service_range in config.service_ranges]
    scopes = loopback.scopes
    catch_up = scopes.storage.catch_up if ports.is_shared else None
    return {_SERVICES: ServiceAllocation(families, loopback.objects, loopback.writer, ports, scopes.chance, catch_up)}


def admission(config: Config, initializer: Initializer) -> Chain:
    """Returns the plugins in upstream's order: the default ones, changed by --enable- and --disable-admission-plugins.

    `initializer` has their dependencies but the configuration, which is read here. Raises ValueError for unknown names and
    configurations that can't be used. Plugins that are accepted and don't exist here are logged as a warning.
    """
    configuration = read_admission_configuration(config.admission_control_config_file)
    initializer = structs.replace(initializer, configuration=configuration)
    enable, disable = config.enable_admission_plugins, config.disable_admission_plugins
    if "admission-control" in config.given:
        named = {"enable-admission-plugins", "disable-admission-plugins"} & set(config.given)
        enable, disable = exactly(config.admission_control, others_are_named=bool(named))
    elif disable is None:
        accounts = any(controller.name == _ACCOUNTS for controller in selected(config.controllers))
        disable = () if accounts or _SERVICE_ACCOUNT in enable else (_SERVICE_ACCOUNT,)
    chain, warning = new_chain(initializer, enable, disable)
    if warning:
        log.warning(warning)
    return chain
