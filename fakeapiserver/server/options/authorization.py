"""Builds the authorizers that a configuration asks for, from flags or from a file that is read again when it changes.

Upstream: pkg/kubeapiserver/options/authorization.go, pkg/kubeapiserver/authorizer/{config,reload}.go.
"""

import logging
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from msgspec import Struct, field

from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.instruments import Instruments
from fakeapiserver.apimachinery.object_reader import ObjectReader
from fakeapiserver.apis import bootstrap
from fakeapiserver.apis.scheme import Scheme
from fakeapiserver.auth import authorization_config, match_conditions
from fakeapiserver.auth.authorizers import abac, always
from fakeapiserver.auth.authorizers import webhook as webhook_module
from fakeapiserver.auth.authorizers.instrumented import Instrumented
from fakeapiserver.auth.authorizers.node import Node
from fakeapiserver.auth.authorizers.rbac import RBAC
from fakeapiserver.auth.authorizers.union import Union
from fakeapiserver.auth.interfaces import Attributes, Authorizer, Decision, RuleResolver, UserInfo
from fakeapiserver.clock import Clock
from fakeapiserver.server.options import config_reloads, webhook_clients
from fakeapiserver.server.options.config import Config
from fakeapiserver.server.options.watched_file import WatchedFile

if TYPE_CHECKING:
    from fakeapiserver.auth.authorization_config import AuthorizerConfiguration, WebhookConfiguration

log = logging.getLogger(__name__)

MODES: Final = ("AlwaysAllow", "AlwaysDeny", "ABAC", "Webhook", "RBAC", "Node")
_NODE_ROLE: Final = "system:node"
_PRIVILEGED: Final = "kubernetes.io/system-privileged-group"
_WEBHOOK_FLAGS: Final = (
    "authorization-webhook-config-file",
    "authorization-webhook-version",
    "authorization-webhook-cache-authorized-ttl",
    "authorization-webhook-cache-unauthorized-ttl",
)
_CONTRADICTION: Final = (
    "--authorization-config can not be specified when "
    "--authorization-mode or --authorization-webhook-* flags are defined"
)
_Rules = tuple[list[dict[str, list[str]]], list[dict[str, list[str]]], bool, str]


class Reloadable:
    """The authorizers in use now."""

    def __init__(self, current: Union) -> None:
        self.current = current

    async def authorize(self, attributes: Attributes) -> tuple[Decision, str]:
        return await self.current.authorize(attributes)

    async def rules_for(self, user: UserInfo, namespace: str) -> _Rules:
        return await self.current.rules_for(user, namespace)


class Authorization(Struct, frozen=True):
    """`background` runs beside requests, until it is cancelled."""

    authorizer: Union | Reloadable
    background: Sequence[Callable[[], Coroutine[Any, Any, None]]] = ()


def authorization(
    config: Config,
    scheme: Scheme,
    rbac: RBAC,
    objects: ObjectReader,
    clock: Clock,
    instruments: Instruments | None = None,
) -> Authorization:
    """ValueError and OSError in upstream's words for flags and files that can't be used."""
    instruments = instruments or Instruments()
    if config.authorization_config is None:
        _check_flags(config)
        builder = _Builder(config, scheme, rbac, objects, clock, instruments)
        return Authorization(builder.plain() or builder.union(_from_flags(config)))
    if "authorization-mode" in config.given or not config.given.isdisjoint(_WEBHOOK_FLAGS):
        raise ValueError(_CONTRADICTION)

    path = config.authorization_config
    try:
        data = path.read_bytes()
    except OSError as error:
        raise OSError(f"open {path}: {(error.strerror or str(error)).lower()}") from None
    builder = _Builder(config, scheme, rbac, objects, clock, instruments)
    version = scheme.features.version
    rows = authorization_config.read(data, version=version)
    reloadable = Reloadable(builder.union(rows))
    needed = frozenset(row.type for row in rows if row.type != "Webhook")
    reloads = config_reloads.ConfigReloads("authorization", instruments, clock)
    reloads.loaded(data)

    async def reload(content: bytes) -> None:
        """Applies a changed file; an invalid one is logged and ignored."""
        try:
            reloadable.current = builder.union(authorization_config.read(content, needed, version))
            reloads.succeeded(content)
        except (ValueError, OSError) as error:
            reloads.failed()
            log.error("the authorization configuration %s stays as it was: %s", path, error)

    return Authorization(reloadable, (WatchedFile(path, data, reload).run,))


def _check_flags(config: Config) -> None:
    modes, errors = config.authorization_mode, list[str]()
    if not modes:
        errors.append("at least one authorization-mode must be passed")
    for mode in modes:
        if mode not in MODES:
            errors.append(f"authorization-mode {go_quote(mode)} is not a valid mode")
        if mode == "ABAC" and config.authorization_policy_file is None:
            errors.append("authorization-mode ABAC's authorization policy file not passed")
        if mode == "Webhook" and config.authorization_webhook_config_file is None:
            errors.append("authorization-mode Webhook's authorization config file not passed")
    if config.authorization_policy_file is not None and "ABAC" not in modes:
        errors.append("cannot specify --authorization-policy-file without mode ABAC")
    if config.authorization_webhook_config_file is not None and "Webhook" not in modes:
        errors.append("cannot specify --authorization-webhook-config-file without mode Webhook")
    if len(set(modes)) != len(modes):
        shown = " ".join(map(go_quote, modes))
        errors.append(f"authorization-mode [{shown}] has mode specified more than once")
    if errors:
        raise ValueError(errors[0] if len(errors) == 1 else f"[{', '.join(errors)}]")


def _from_flags(config: Config) -> "Sequence[AuthorizerConfiguration]":
    webhook = authorization_config.WebhookConfiguration(
        authorized_ttl=config.authorization_webhook_cache_authorized_ttl,
        unauthorized_ttl=config.authorization_webhook_cache_unauthorized_ttl,
        version=config.authorization_webhook_version,
        kubeconfig=config.authorization_webhook_config_file,
    )
    return authorization_config.from_modes(_modes(config), webhook)


def _modes(config: Config) -> Sequence[str]:
    """Returns the modes of --authorization-mode, behind Node if nodes are simulated: RBAC alone, which envtest asks for, gives kubelets no
    rights."""
    modes = config.authorization_mode
    return ("Node", *modes) if config.nodes and "RBAC" in modes and "Node" not in modes else modes


class _Builder(Struct):
    """Keeps what outlives a reload: the graph of the nodes, the policies."""

    config: Config
    scheme: Scheme
    rbac: RBAC
    objects: ObjectReader
    clock: Clock
    instruments: Instruments
    _kept: dict[str, Authorizer] = field(default_factory=dict)

    def plain(self) -> Union | None:
        """Returns the authorizers if no mode needs a file, without importing the configuration's module:

        enough for most starts.
        """
        modes = _modes(self.config)
        if not {"ABAC", "Webhook"}.isdisjoint(modes):
            return None
        return self._union([(mode, mode.lower(), self._mode(mode)) for mode in modes])

    def union(self, rows: "Sequence[AuthorizerConfiguration]") -> Union:
        """ValueError and OSError."""
        authorizers: list[tuple[str, str, Authorizer]] = []
        for row in rows:
            try:
                mode = self._mode(row.type) if row.webhook is None else self._webhook(row.webhook, row.name)
                authorizers.append((row.type, row.name, mode))
            except (ValueError, OSError) as error:
                raise ValueError(f"invalid authorization config: {error}") from error
        return self._union(authorizers)

    def _union(self, modes: Sequence[tuple[str, str, Authorizer]]) -> Union:
        """Types, names and authorizers, behind system:masters, who may do everything."""
        resolvers = [mode for _, _, mode in modes if isinstance(mode, RuleResolver)]
        counted = [Instrumented(kind, name, mode, self.instruments) for kind, name, mode in modes]
        names = [_PRIVILEGED, *(name for _, name, _ in modes)] if self.scheme.features.at_least("v1.37") else ()
        return Union([always.PrivilegedGroups(), *counted], resolvers, names)

    def _webhook(self, settings: "WebhookConfiguration", name: str) -> Authorizer:
        return _webhook(settings, name, self.clock, self.instruments, self.scheme.features.version)

    def _mode(self, mode: str) -> Authorizer:
        if mode not in self._kept:
            self._kept[mode] = self._make(mode)
        return self._kept[mode]

    def _make(self, mode: str) -> Authorizer:
        match mode:
            case "RBAC":
                return self.rbac
            case "Node":
                return Node(self.objects, partial(_node_rules, self.scheme), self.scheme.features)
            case "ABAC":
                if self.config.authorization_policy_file is None:
                    raise OSError("open : no such file or directory")
                return abac.load_policy_file(self.config.authorization_policy_file)
        return always.AlwaysAllow() if mode == "AlwaysAllow" else always.AlwaysDeny()


def _webhook(
    settings: "WebhookConfiguration", name: str, clock: Clock, instruments: Instruments, kubernetes: str
) -> Authorizer:
    if settings.version not in ("v1", "v1beta1"):
        supported = '"v1", "v1beta1"'
        raise ValueError(
            f"unsupported webhook authorizer version {go_quote(settings.version)}, supported versions are {supported}"
        )
    if settings.kubeconfig is None:
        raise ValueError("connectionInfo of type InClusterConfig needs a cluster around the server")
    webhook = webhook_clients.remote(settings.kubeconfig, settings.timeout, clock)
    asked = webhook_module.Settings(
        version=settings.version,
        authorized_ttl=settings.authorized_ttl,
        unauthorized_ttl=settings.unauthorized_ttl,
        on_error=Decision.DENY if settings.denies_on_failure else Decision.NO_OPINION,
        name=name,
    )
    conditions = (
        match_conditions.MatchConditions(settings.match_conditions, kubernetes) if settings.match_conditions else None
    )
    return webhook_module.Webhook(webhook.post, asked, clock, conditions.match if conditions else None, instruments)


def _node_rules(scheme: Scheme) -> list[dict[str, list[str]]]:
    """Returns the permissions of all nodes: the recorded role has the rules that upstream compiles in."""
    for obj in bootstrap.objects(scheme):
        if obj["kind"] == "ClusterRole" and obj["metadata"]["name"] == _NODE_ROLE:
            rules: list[dict[str, list[str]]] = obj["rules"]
            return rules
    return []
