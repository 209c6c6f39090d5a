"""Modules that are loaded when something in them is first used, however early they are imported.

A file imports such a module at its top, as a module (`from fakeapiserver.transport import certificates`), and the first access to one of
its names loads it. So a server is ready early, and a process holds only what it needs. `LAZY` lists them with the reasons.
`tests/test_start.py` checks that starting loads none of them.
"""

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from threading import RLock
from types import ModuleType
from typing import Final

# why -> the modules
LAZY: Final = {
    "Two modules that need each other: the second is used when both are there.": (
        "fakeapiserver.endpoints.dialect.builtin",
    ),
    "A command's line is read, and its help shown, without what the command needs afterwards.": (
        "fakeapiserver.admission.options",
        "fakeapiserver.apis.feature_gates",
        "fakeapiserver.apis.recorded",
        "fakeapiserver.cli.background",
        "fakeapiserver.cli.complain",
        "fakeapiserver.cli.controller_manager.serving",
        "fakeapiserver.cli.controller_manager.delegated",
        "fakeapiserver.cli.manual.commands",
        "fakeapiserver.cli.manual.overview",
        "fakeapiserver.cli.manual.page",
        "fakeapiserver.cli.manual.topics",
        "fakeapiserver.cli.scaffold",
        "fakeapiserver.cli.serve",
        "fakeapiserver.cli.stop_signals",
        "fakeapiserver.cli.suggestions",
        "fakeapiserver.cli.unheeded_flags",
        "fakeapiserver.cli.version",
        "fakeapiserver.spelling",
        "fakeapiserver.controller_manager.descriptor",
        "fakeapiserver.server.options.authorization",
        "fakeapiserver.server.options.config",
    ),
    "CEL is compiled where objects or configurations contain expressions; its checker and functions are large.": (
        "fakeapiserver.admission.policy.expressions",
        "fakeapiserver.admission.policy.mutator",
        "fakeapiserver.admission.policy.type_checking",
        "fakeapiserver.admission.policy.validator",
        "fakeapiserver.apimachinery.cel.admission",
        "fakeapiserver.apimachinery.cel.definition",
        "fakeapiserver.apimachinery.cel.device",
        "fakeapiserver.apimachinery.cel.field_path",
        "fakeapiserver.apimachinery.cel.static_cost",
        "fakeapiserver.apimachinery.cel.typed",
        "fakeapiserver.apimachinery.cel.validator",
        "fakeapiserver.auth.match_conditions",
        "fakeapiserver.languages.cel.functions.conversions",
        "fakeapiserver.languages.cel.text",
        "fakeapiserver.languages.cel.types",
        "fakeapiserver.languages.cel.values",
    ),
    "Certificates: `cryptography` takes as long to import as half a server takes to start.": (
        "fakeapiserver.auth.client_certificates",
        "fakeapiserver.registry.certificates",
        "fakeapiserver.registry.certificates.certificate_request",
        "fakeapiserver.registry.certificates.podcertificaterequest_validation",
        "fakeapiserver.transport.x509_certificate",
        "fakeapiserver.registry.core.volume.pod_certificate_validation",
        "fakeapiserver.registry.core.volume.trust_bundle_validation",
    ),
    "Custom resources: there are none yet when a server starts.": (
        "fakeapiserver.apimachinery.schema.default_rules",
        "fakeapiserver.apimachinery.schema.cbor.documents",
        "fakeapiserver.apimachinery.schema.cbor.shapes",
        "fakeapiserver.apimachinery.schema.structural",
        "fakeapiserver.apimachinery.schema.unstructured",
        "fakeapiserver.apimachinery.serializer.cbor",
        "fakeapiserver.endpoints.negotiation.cbor",
        "fakeapiserver.endpoints.verbs.custom_patched",
        "fakeapiserver.registry.apiextensions.conversion",
        "fakeapiserver.registry.apiextensions.definition_validation",
        "fakeapiserver.registry.apiextensions.object_meta",
    ),
    "The first request that needs a verb, a subresource, an encoding or a page loads it.": (
        "fakeapiserver.apimachinery.managedfields.scale",
        "fakeapiserver.apimachinery.serializer.protobuf",
        "fakeapiserver.apimachinery.sharding",
        "fakeapiserver.apis.protobuf",
        "fakeapiserver.endpoints.componentstatus",
        "fakeapiserver.endpoints.negotiation.columns",
        "fakeapiserver.endpoints.negotiation.partial",
        "fakeapiserver.endpoints.negotiation.protobuf",
        "fakeapiserver.endpoints.openapi.handler",
        "fakeapiserver.endpoints.streams.websocket",
        "fakeapiserver.endpoints.subresources.binding",
        "fakeapiserver.endpoints.subresources.scale",
        "fakeapiserver.endpoints.subresources.scale_rules",
        "fakeapiserver.endpoints.subresources.subresource",
        "fakeapiserver.endpoints.subresources.token_request",
        "fakeapiserver.endpoints.verbs.builtin_patched",
        "fakeapiserver.server.control.application",
        "fakeapiserver.server.control.docs_page",
        "fakeapiserver.server.control.nodes",
        "fakeapiserver.server.filters.impersonation",
        "fakeapiserver.server.http.freed_memory",
        "fakeapiserver.server.metrics_apis.groups",
        "fakeapiserver.server.exposition",
        "fakeapiserver.server.pages.debug_pages",
        "fakeapiserver.server.pages.flow_control",
        "fakeapiserver.server.proxies.kubelet_client",
        "fakeapiserver.server.proxies.resource_proxy",
    ),
    "Managers and the command serve ports of their own where an option asks for it; uvicorn loads 12 modules of its command line.": (
        "fakeapiserver.controller_runtime.uvicorn_server",
    ),
    "Faults are injected when a test adds some.": (
        "fakeapiserver.faults.files",
        "fakeapiserver.faults.injector",
        "fakeapiserver.faults.readers",
        "fakeapiserver.faults.rule",
    ),
    "States are saved, loaded and compared when a caller asks for it.": (
        "fakeapiserver.cluster.processes.etcd_process",
        "fakeapiserver.server.data_directory",
        "fakeapiserver.server.exported",
        "fakeapiserver.server.adopting",
        "fakeapiserver.state.archives",
        "fakeapiserver.state.diff",
        "fakeapiserver.state.file",
        "fakeapiserver.state.found",
        "fakeapiserver.state.gathering",
        "fakeapiserver.state.manifests",
        "fakeapiserver.state.sources",
    ),
    "Other servers are called when there are some: remote APIServices, webhooks, credentials of kubeconfigs.": (
        "fakeapiserver.server.aggregator.controllers",
        "fakeapiserver.server.aggregator.discovery",
        "fakeapiserver.server.aggregator.proxy",
        "fakeapiserver.server.options.webhook_clients",
        "fakeapiserver.server.projects.local_webhooks",
        "fakeapiserver.transport.client_config",
        "fakeapiserver.transport.webhook_users",
    ),
    "An option or a configuration file asks for it.": (
        "fakeapiserver.auth.authenticators.bootstrap",
        "fakeapiserver.auth.authenticators.oidc",
        "fakeapiserver.auth.authenticators.webhook",
        "fakeapiserver.auth.authorization_config",
        "fakeapiserver.auth.authorizers.abac",
        "fakeapiserver.auth.authorizers.webhook",
        "fakeapiserver.registry.resource",
        "fakeapiserver.server.etcd.backend",
        "fakeapiserver.server.etcd.leadership",
        "fakeapiserver.server.filters.audit.auditor",
        "fakeapiserver.server.filters.audit.backends",
        "fakeapiserver.server.filters.audit.policy",
        "fakeapiserver.server.options.authentication_config",
        "fakeapiserver.server.options.config_reloads",
        "fakeapiserver.storage.encryption.configuration",
    ),
    "Some servers run no controllers, whose clients and managers are large.": (
        "fakeapiserver.component_helpers.controller_context",
        "fakeapiserver.controller_manager.manager",
        "fakeapiserver.controllers.clustertrustbundle_publisher",
        "fakeapiserver.controllers.root_ca_certificate_publisher",
        "fakeapiserver.controllers.serviceaccount",
        "fakeapiserver.server.in_process",
    ),
    "Few servers have a page, for which everything is recorded.": (
        "fakeapiserver.evidence.timeline.embedded",
        "fakeapiserver.evidence.timeline.recorder",
        "fakeapiserver.evidence.timeline.saved",
        "fakeapiserver.server.page_port",
        "fakeapiserver.ui.export",
    ),
    "Nodes are simulated only where a cluster has some.": (
        "fakeapiserver.languages.gotemplate",
        "fakeapiserver.nodes.behaviour",
        "fakeapiserver.nodes.cloud_storage",
        "fakeapiserver.nodes.kubelet",
        "fakeapiserver.nodes.load_balancers",
        "fakeapiserver.nodes.local_storage",
        "fakeapiserver.nodes.runtime",
        "fakeapiserver.nodes.scheduler.controller",
        "fakeapiserver.nodes.simulation",
        "fakeapiserver.nodes.stages.expressions",
        "fakeapiserver.nodes.stages.functions",
        "fakeapiserver.nodes.stages.player",
        "fakeapiserver.nodes.stages.sources",
        "fakeapiserver.nodes.stages.stage",
        "fakeapiserver.server.simulated_nodes.components",
        "fakeapiserver.server.simulated_nodes.kubelet_server",
        "fakeapiserver.server.simulated_nodes.node_readiness",
    ),
    "A verb or an argument of `Cluster` that needs more than starting does.": (
        "fakeapiserver.cluster.arguments",
        "fakeapiserver.cluster.clients",
        "fakeapiserver.cluster.describing",
        "fakeapiserver.cluster.operators",
        "fakeapiserver.cluster.resources",
        "fakeapiserver.cluster.settling",
        "fakeapiserver.cluster.waiting",
    ),
}
_NAMES: Final = frozenset(name for names in LAZY.values() for name in names)


class _LazyModule(ModuleType):
    """A module that has not been loaded yet; it becomes an ordinary one."""

    def __getattribute__(self, name: str) -> object:
        get = ModuleType.__getattribute__
        # The import system asks for __spec__ and its kind, which are there; it asks for __path__ before it imports a part of a package.
        if not name.startswith("__") or name in ("__path__", "__all__"):
            pending: _LazyLoader | None = get(self, "__dict__").get("__pending__")
            if pending is not None:
                pending.load(self)
        return get(self, name)


class _LazyLoader(Loader):
    """Executes a module on demand, once, whichever thread comes first (importlib's own lets two collide before Python 3.12.4)."""

    def __init__(self, loader: Loader) -> None:
        self._loader = loader
        self._lock = RLock()
        self._loading = False

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        """Returns the module without its contents."""
        return _LazyModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Leaves the contents for later."""
        module.__dict__["__pending__"] = self

    def load(self, module: _LazyModule) -> None:
        """Executes the module, unless another thread has done so, or this one is just doing it."""
        with self._lock:
            if self._loading or type(module) is ModuleType:
                return
            self._loading = True
            module.__loader__ = self._loader
            if module.__spec__ is not None:
                module.__spec__.loader = self._loader
            try:
                self._loader.exec_module(module)
            finally:
                self._loading = False
            module.__class__ = ModuleType  # type: ignore[assignment]


class _Finder(MetaPathFinder):
    """Finds the modules of `LAZY`."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname not in _NAMES:
            return None
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _LazyLoader(spec.loader)
        return spec


def install() -> None:
    """Makes the import system leave the modules of `LAZY` for later."""
    sys.meta_path.insert(0, _Finder())
