"""Deletes tokens that were once created for every account and have not been used for a year.

Upstream: pkg/controller/serviceaccount/legacy_serviceaccount_token_cleaner.go.
"""

import logging
from collections.abc import Mapping, Sequence
from datetime import UTC, date, datetime, timedelta
from typing import Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apimachinery.timestamp import seconds_of
from fakeapiserver.apis.pod_references import secrets_and_config_maps
from fakeapiserver.client.cache.indexer import NAMESPACE_INDEX
from fakeapiserver.client.errors import StatusError, is_conflict, is_not_found
from fakeapiserver.component_helpers.controller_context import ControllerContext, Periodic
from fakeapiserver.component_helpers.objects import (
    CONFIG_MAPS,
    PODS,
    SECRETS,
    SERVICE_ACCOUNTS,
    is_terminating,
    labels_of,
)
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.reconcile import Request, Result

log = logging.getLogger(__name__)

_INTERVAL: Final = 86_400.0
_TYPE: Final = "kubernetes.io/service-account-token"
_NAME: Final = "kubernetes.io/service-account.name"
_UID: Final = "kubernetes.io/service-account.uid"
_LAST_USED: Final = "kubernetes.io/legacy-token-last-used"
_INVALID_SINCE: Final = "kubernetes.io/legacy-token-invalid-since"
_TRACKING: Final = "kube-apiserver-legacy-service-account-token-tracking"


class LegacyTokenCleaner:
    """Looks at all once a day."""

    def __init__(self, context: ControllerContext) -> None:
        self._client = context.client
        self._clock = context.clock
        self._unused_for = context.configuration.legacy_service_account_token_clean_up_period
        self._accounts = context.informer(SERVICE_ACCOUNTS)
        self._secrets = context.informer(SECRETS)
        self._pods = context.informer(PODS)

    async def reconcile(self, request: Request) -> Result:
        try:
            await self._clean()
        except StatusError as error:
            log.error("legacy service account tokens are not cleaned: %s", error)
        return Result(requeue_after=_INTERVAL)

    async def _clean(self) -> None:
        now = self._clock.now()
        tracked_since = await self._tracked_since()
        if tracked_since is None or now < tracked_since + self._unused_for:
            return
        oldest = now - self._unused_for
        oldest_day = _day(oldest)
        mounted: dict[str, frozenset[str]] = {}
        for secret in self._secrets.indexer.list():
            if not self._is_unused(secret, oldest, oldest_day):
                continue
            namespace = secret["metadata"]["namespace"]
            if namespace not in mounted:
                mounted[namespace] = self._mounted(namespace)
            if secret["metadata"]["name"] not in mounted[namespace]:
                await self._invalidate_or_delete(secret, now, oldest_day)

    async def _tracked_since(self) -> float | None:
        """The first midnight since which each use is known."""
        config_map = await self._client.resource(CONFIG_MAPS, "kube-system").get(_TRACKING)
        since = _parsed((config_map.get("data") or {}).get("since", ""))
        if since is None:
            log.error("config map %s doesn't say since when tokens are tracked", _TRACKING)
            return None
        midnight = since + timedelta(days=1)
        return datetime(midnight.year, midnight.month, midnight.day, tzinfo=UTC).timestamp()

    def _is_unused(self, secret: Object, oldest: float, oldest_day: str) -> bool:
        """A token of an account that names it, made long ago, and not used since."""
        if secret.get("type") != _TYPE or is_terminating(secret):
            return False
        created = seconds_of(secret["metadata"]["creationTimestamp"])
        if created is None or created >= oldest:
            return False
        used = labels_of(secret).get(_LAST_USED)
        if used is not None and (_parsed(used) is None or used >= oldest_day):
            return False
        account = self._account(secret)
        named = (account or {}).get("secrets") or ()
        return any(reference.get("name") == secret["metadata"]["name"] for reference in named)

    def _account(self, secret: Object) -> Object | None:
        annotations: Mapping[str, str] = secret["metadata"].get("annotations") or {}
        name, uid = annotations.get(_NAME), annotations.get(_UID)
        if not name:
            return None
        account = self._accounts.indexer.get_by_key(f"{secret['metadata']['namespace']}/{name}")
        return account if account is None or not uid or account["metadata"]["uid"] == uid else None

    def _mounted(self, namespace: str) -> frozenset[str]:
        """The secrets that pods use."""
        return frozenset(
            name
            for pod in self._pods.indexer.by_index(NAMESPACE_INDEX, namespace)
            for kind, name in secrets_and_config_maps(pod["spec"])
            if kind == "secrets"
        )

    async def _invalidate_or_delete(self, secret: Object, now: float, oldest_day: str) -> None:
        metadata = secret["metadata"]
        secrets = self._client.resource(SECRETS, metadata["namespace"])
        since = labels_of(secret).get(_INVALID_SINCE, "")
        try:
            if _parsed(since) is None:
                change = {"name": metadata["name"], "uid": metadata["uid"], "labels": {_INVALID_SINCE: _day(now)}}
                await secrets.patch(metadata["name"], {"metadata": change})
            elif since < oldest_day:
                await secrets.delete(metadata["name"], resource_version=metadata["resourceVersion"])
        except StatusError as error:
            if not (is_conflict(error) or is_not_found(error)):
                log.error("legacy token %s/%s: %s", metadata["namespace"], metadata["name"], error)


def _day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d")


def _parsed(day: str) -> date | None:
    try:
        return date.fromisoformat(day) if len(day) == len("2026-01-01") else None
    except ValueError:
        return None


def new(context: ControllerContext) -> Sequence[Controller]:
    controller = context.controller(LegacyTokenCleaner(context))
    controller.add_source(Periodic())
    return [controller]
