"""serviceaccounts/token: a new token for an account, bound to a pod, secret or node if so wished.

Upstream: pkg/registry/core/serviceaccount/storage/token.go, pkg/serviceaccount/claims.go,
pkg/apis/authentication/{v1/defaults.go,validation}.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.errors import new_bad_request, new_conflict, new_invalid, new_not_found
from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.gvk import GroupKind, GroupResource, GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.meta import Object, metadata, uid
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.effort import offloaded
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.endpoints.services import TokenIssuer
from fakeapiserver.endpoints.subresources.subresource import decoded, mutated
from fakeapiserver.endpoints.verbs.create import owned
from fakeapiserver.registry.generic.kind import BuiltinKind

_GVK: Final = GroupVersionKind("authentication.k8s.io", "v1", "TokenRequest")
_KIND: Final = GroupKind("authentication.k8s.io", "TokenRequest")
_DEFINITION: Final = "io.k8s.api.authentication.v1.TokenRequest"
_CHECKED: Final = "TokenRequestServiceAccountUIDValidation"
_HOUR: Final = 3600
_SHORTEST: Final = 600
# A pod's token of just this age is one that kubelet asks for; it is good for a year, so that clients can be late in reloading it.
_EXTENDED: Final = 3607
_YEAR: Final = 365 * 24 * 3600
_RESOURCES: Final = {"Pod": "pods", "Node": "nodes", "Secret": "secrets"}


async def token(request: Request, scope: RequestScope, scopes: RequestScopes) -> Response:
    """`scope` is that of service accounts. StatusError 400, 404, 409, 422."""
    info, store, issuer = request.info, scope.store, scopes.services.token_issuer
    assert store is not None
    kind = BuiltinKind(_GVK, _DEFINITION, scope.kind.definitions, _default, scope.kind.reword)
    body, options = await decoded(request, kind, scope)
    size = len(request.content)
    wanted = await offloaded(partial(owned, request, scope, kind, options, body), size)
    attributes = await mutated(request, scopes, scope, wanted, options, kind=_GVK)
    wanted = attributes.object or wanted
    meta, spec = metadata(wanted), wanted["spec"]
    if meta.get("name") and meta["name"] != info.name:
        detail = "must match the service account name if specified"
        raise new_invalid(_KIND, info.name, [field.invalid("metadata.name", meta["name"], detail)])
    if meta.get("namespace") and meta["namespace"] != info.namespace:
        detail = "must match the service account namespace if specified"
        raise new_invalid(_KIND, info.name, [field.invalid("metadata.namespace", meta["namespace"], detail)])
    account = store.decode((await store.get(info.namespace, info.name)).value)
    features = scopes.table.scheme.features
    tells_uid = features.at_least("v1.34")
    if not tells_uid:
        meta.pop("uid", None)
    if meta.get("uid") and meta["uid"] != uid(account):
        reason = f"the UID in the token request ({meta['uid']}) does not match the UID of the service account ({uid(account)})"
        if features.enabled(_CHECKED):
            raise new_conflict(GroupResource(*_KIND), info.name, reason)
        request.warnings.append(
            f"{reason} but {_CHECKED} is not enabled. In the future, this will return a conflict error"
        )
    now = scope.clock.now()
    meta |= {"name": info.name, "namespace": info.namespace, "creationTimestamp": rfc3339(now)}
    if tells_uid:
        meta["uid"] = uid(account)
    spec["audiences"] = spec.get("audiences") or list(issuer.audiences)
    if errors := _errors(spec):
        raise new_invalid(_KIND, "", errors)
    await scopes.services.admission.validate(attributes)
    private = {"namespace": info.namespace, "serviceaccount": {"name": info.name, "uid": uid(account)}}
    private |= await _bound(spec.get("boundObjectRef"), info.namespace, info.name, scopes)
    if 0 < issuer.longest < spec["expirationSeconds"]:
        asked, spec["expirationSeconds"] = spec["expirationSeconds"], issuer.longest
        request.warnings.append(f"requested expiration of {asked} seconds shortened to {issuer.longest} seconds")
    lifetime = spec["expirationSeconds"]
    if (
        issuer.extends
        and "pod" in private
        and lifetime == _EXTENDED
        and set(spec["audiences"]) <= set(issuer.audiences)
    ):
        private["warnafter"] = int(now) + lifetime
        lifetime = _YEAR
    claims = token_claims(issuer, private, spec["audiences"], now, lifetime)
    if request.audit is not None:
        request.audit.annotate("authentication.kubernetes.io/issued-credential-id", f"JTI={claims['jti']}")
    signed = await offloaded(partial(issuer.keys.sign, claims), size)
    wanted["status"] = {"token": signed, "expirationTimestamp": rfc3339(now + spec["expirationSeconds"])}
    spec.setdefault("boundObjectRef", None)
    accept = respond.accepted(request, scope)
    return await offloaded(partial(respond.unstored_object, request, replace(scope, kind=kind), wanted, accept), size)


def token_claims(
    issuer: TokenIssuer, private: Mapping[str, Any], audiences: Sequence[str], now: float, lifetime: int
) -> dict[str, Any]:
    """Returns a token's claims:

    `private` has the account and the object that the token is bound to (upstream: serviceaccount.Claims).
    """
    account = private["serviceaccount"]["name"]
    return {
        "aud": list(audiences),
        "exp": int(now) + lifetime,
        "iat": int(now),
        "iss": issuer.issuer,
        "jti": issuer.chance.uid("token", private["namespace"], account),
        "kubernetes.io": private,
        "nbf": int(now),
        "sub": f"system:serviceaccount:{private['namespace']}:{account}",
    }


def _default(obj: Object, version: str) -> None:
    spec = obj.setdefault("spec", {})
    if spec.get("expirationSeconds") is None:
        spec["expirationSeconds"] = _HOUR


def _errors(spec: Object) -> ErrorList:
    seconds = spec["expirationSeconds"]
    if seconds < _SHORTEST:
        return [field.invalid("spec.expirationSeconds", seconds, "may not specify a duration less than 10 minutes")]
    if seconds > 1 << 32:
        return [field.invalid("spec.expirationSeconds", seconds, "may not specify a duration larger than 2^32 seconds")]
    return []


async def _bound(reference: Object | None, namespace: str, account: str, scopes: RequestScopes) -> dict[str, Any]:
    """The claims that name the object which the token is bound to. StatusError 400, 404, 409."""
    if reference is None:
        return {}
    kind = reference.get("kind", "")
    try:
        group_version = GroupVersion.parse(reference.get("apiVersion", ""))
    except ValueError:
        group_version = GroupVersion("", "")  # as upstream's FromAPIVersionAndKind takes it
    if group_version.group or kind not in _RESOURCES:
        group, version = group_version
        raise new_bad_request(f"cannot bind token to object of type {group}/{version}, Kind={kind}")
    if not reference.get("name"):
        raise new_bad_request("Name parameter required.")
    obj = await _get(_RESOURCES[kind], "" if kind == "Node" else namespace, reference.get("name", ""), scopes)
    if obj is None:
        raise new_not_found(GroupResource("", _RESOURCES[kind]), reference.get("name", ""))
    if kind == "Pod" and obj["spec"].get("serviceAccountName", "") != account:
        text = f'cannot bind token for serviceaccount "{account}" to pod running with different serviceaccount name.'
        raise new_bad_request(text)
    if reference.get("uid") and reference["uid"] != uid(obj):
        reason = (
            f"the UID in the bound object reference ({reference['uid']}) does not match the UID in record. "
            "The object might have been deleted and then recreated"
        )
        raise new_conflict(GroupResource(group_version.group, kind), reference.get("name", ""), reason)
    claims: dict[str, Any] = {kind.lower(): {"name": metadata(obj)["name"], "uid": uid(obj)}}
    if kind == "Pod" and (node_name := obj["spec"].get("nodeName")):
        node = await _get("nodes", "", node_name, scopes)
        claims["node"] = {"name": node_name, **({"uid": uid(node)} if node is not None else {})}
    return claims


async def _get(resource: str, namespace: str, name: str, scopes: RequestScopes) -> Object | None:
    store = scopes.store_for(GroupResource("", resource))
    assert store is not None
    item = await store.storage.get(store.key(namespace, name))
    return store.decode(item.value) if item is not None else None
