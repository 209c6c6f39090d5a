"""Secrets of type kubernetes.io/service-account-token hold a token of their account, and go with it.

Upstream: pkg/controller/serviceaccount/tokens_controller.go, pkg/serviceaccount/legacy.go.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.client.cache.indexer import NAMESPACE_INDEX
from fakeapiserver.client.errors import StatusError, is_conflict, is_not_found
from fakeapiserver.component_helpers.controller_context import ControllerContext
from fakeapiserver.component_helpers.objects import SECRETS, SERVICE_ACCOUNTS
from fakeapiserver.component_helpers.secret_data import encoded, secret_bytes
from fakeapiserver.controller_runtime.controller import Controller
from fakeapiserver.controller_runtime.event import Event, object_of
from fakeapiserver.controller_runtime.handler import Queue, request_for
from fakeapiserver.controller_runtime.reconcile import Request
from fakeapiserver.controller_runtime.source import Informer

_TYPE: Final = "kubernetes.io/service-account-token"
_NAME: Final = "kubernetes.io/service-account.name"
_UID: Final = "kubernetes.io/service-account.uid"
_CLAIM: Final = "kubernetes.io/serviceaccount"
_MAX_RETRIES: Final = 10
_REFERENCE_TRIES: Final = 10

SignToken = Callable[[Mapping[str, Any]], str]


class TokensController:
    """Requests are secrets."""

    def __init__(self, context: ControllerContext, sign_token: SignToken) -> None:
        self._client = context.client
        self._sign_token = sign_token
        self._ca = context.root_ca
        self.accounts = context.informer(SERVICE_ACCOUNTS)
        self.secrets = context.informer(SECRETS)
        # The account, and its uid if known, whose token a secret was when it was last seen.
        self._account_of: dict[Request, tuple[str, str]] = {}

    def secret_changed(self, event: Event, queue: Queue) -> None:
        obj = object_of(event)
        annotations = obj["metadata"].get("annotations") or {}
        if obj.get("type") == _TYPE and annotations.get(_NAME):
            self._account_of[request_for(obj)] = annotations[_NAME], annotations.get(_UID, "")
            queue.add(request_for(obj))

    async def reconcile(self, request: Request) -> None:
        name, uid = self._account_of[request]
        secret = self.secrets.indexer.get_by_key(str(request))
        if secret is None or secret.get("type") != _TYPE:
            del self._account_of[request]
            if self._cached_account(request.namespace, name, uid) is not None:
                await self._remove_reference(request, name, uid)
            return
        account = self._cached_account(request.namespace, name, uid)
        if account is None:
            account = await self._live_account(request.namespace, name, uid)
        if account is None:
            await self.delete_token(secret)
        elif self._missing(secret):
            await self._fill(account, secret)

    def _cached_account(self, namespace: str, name: str, uid: str) -> Object | None:
        return _with_uid(self.accounts.indexer.get_by_key(f"{namespace}/{name}"), uid)

    async def _live_account(self, namespace: str, name: str, uid: str) -> Object | None:
        try:
            return _with_uid(await self._client.resource(SERVICE_ACCOUNTS, namespace).get(name), uid)
        except StatusError as error:
            if is_not_found(error):
                return None
            raise

    def _missing(self, secret: Object) -> Sequence[str]:
        """The keys that have to be written."""
        wrong = {
            "ca.crt": bool(self._ca) and secret_bytes(secret, "ca.crt") != self._ca,
            "namespace": not secret_bytes(secret, "namespace"),
            "token": not secret_bytes(secret, "token"),
        }
        return [key for key, is_wrong in wrong.items() if is_wrong]

    async def _fill(self, account: Object, cached: Object) -> None:
        """Fills a token secret. A change by another client in between is left to its event."""
        metadata = cached["metadata"]
        secrets = self._client.resource(SECRETS, metadata["namespace"])
        try:
            live = await secrets.get(metadata["name"])
            if live["metadata"]["resourceVersion"] != metadata["resourceVersion"]:
                return
            values = {"ca.crt": self._ca, "namespace": metadata["namespace"].encode()}
            missing = self._missing(live)
            if "token" in missing:
                values["token"] = self._sign_token(_claims(account, live)).encode()
            data = {**(live.get("data") or {}), **{key: encoded(values[key]) for key in missing}}
            owner = account["metadata"]
            annotations = {**(live["metadata"].get("annotations") or {}), _NAME: owner["name"], _UID: owner["uid"]}
            live["metadata"]["annotations"] = annotations
            await secrets.update({**live, "data": data})
        except StatusError as error:
            if not (is_conflict(error) or is_not_found(error)):
                raise

    async def delete_token(self, secret: Object) -> None:
        """This very one."""
        metadata = secret["metadata"]
        try:
            await self._client.resource(SECRETS, metadata["namespace"]).delete(metadata["name"], uid=metadata["uid"])
        except StatusError as error:
            if not (is_not_found(error) or is_conflict(error)):
                raise

    async def _remove_reference(self, request: Request, name: str, uid: str) -> None:
        """The account doesn't name the secret any more."""
        accounts = self._client.resource(SERVICE_ACCOUNTS, request.namespace)
        for _ in range(_REFERENCE_TRIES):
            account = await self._live_account(request.namespace, name, uid)
            named = (account or {}).get("secrets") or []
            if account is None or all(reference.get("name") != request.name for reference in named):
                return
            kept = [reference for reference in named if reference.get("name") != request.name]
            try:
                await accounts.update({**account, "secrets": kept})
            except StatusError as error:
                if is_conflict(error):
                    continue
                if not is_not_found(error):
                    raise
            return


class _DeletedAccounts:
    """Deletes the tokens of deleted service accounts. Requests are service accounts."""

    def __init__(self, tokens: TokensController) -> None:
        self._tokens = tokens
        # The uids that accounts of a name had.
        self._uids: dict[Request, set[str]] = {}

    def account_changed(self, event: Event, queue: Queue) -> None:
        obj = object_of(event)
        self._uids.setdefault(request_for(obj), set()).add(obj["metadata"]["uid"])
        queue.add(request_for(obj))

    async def reconcile(self, request: Request) -> None:
        account = self._tokens.accounts.indexer.get_by_key(str(request))
        current = {account["metadata"]["uid"]} if account is not None else set()
        gone = self._uids.pop(request, set()) - current
        if not gone:
            return
        try:
            for secret in self._tokens.secrets.indexer.by_index(NAMESPACE_INDEX, request.namespace):
                if any(_is_token_of(secret, request.name, uid) for uid in gone):
                    await self._tokens.delete_token(secret)
        except Exception:
            self._uids.setdefault(request, set()).update(gone)
            raise


def _with_uid(account: Object | None, uid: str) -> Object | None:
    return account if account is not None and uid in ("", account["metadata"]["uid"]) else None


def _is_token_of(secret: Object, name: str, uid: str) -> bool:
    annotations = secret["metadata"].get("annotations") or {}
    return secret.get("type") == _TYPE and annotations.get(_NAME) == name and annotations.get(_UID, "") in ("", uid)


def _claims(account: Object, secret: Object) -> Mapping[str, str]:
    """Returns the claims of a token that is valid as long as its secret exists."""
    namespace, name = account["metadata"]["namespace"], account["metadata"]["name"]
    return {
        "iss": "kubernetes/serviceaccount",
        "sub": f"system:serviceaccount:{namespace}:{name}",
        f"{_CLAIM}/namespace": namespace,
        f"{_CLAIM}/secret.name": secret["metadata"]["name"],
        f"{_CLAIM}/service-account.name": name,
        f"{_CLAIM}/service-account.uid": account["metadata"]["uid"],
    }


def new(context: ControllerContext) -> Sequence[Controller]:
    """Returns the controllers; none without a signing key."""
    if context.signing.sign_token is None:
        return []
    workers = context.configuration.concurrent_serviceaccount_token_syncs
    tokens = TokensController(context, context.signing.sign_token)
    deleted = _DeletedAccounts(tokens)
    secrets = context.controller(tokens, workers=workers, max_retries=_MAX_RETRIES)
    secrets.add_source(Informer(tokens.secrets, tokens.secret_changed))
    accounts = context.controller(deleted, workers=workers, name=f"{context.name}-accounts", max_retries=_MAX_RETRIES)
    accounts.add_source(Informer(tokens.accounts, deleted.account_changed))
    return [secrets, accounts]
