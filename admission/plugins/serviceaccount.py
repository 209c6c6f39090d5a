"""Pods run as a service account: its token is mounted, its secrets for pulling are used.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/serviceaccount/admission.go.
"""

import asyncio
from collections.abc import Collection, Iterator
from random import Random
from typing import Final

from fakeapiserver.admission.handler import PODS, Handler, forbidden
from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery.errors import status_error
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apis.pod_references import secrets_and_config_maps

_ENFORCE: Final = "kubernetes.io/enforce-mountable-secrets"
_MIRROR: Final = "kubernetes.io/config.mirror"
_DEFAULT: Final = "default"
_VOLUME: Final = "kube-api-access-"
_MOUNT_PATH: Final = "/var/run/secrets/kubernetes.io/serviceaccount"
# A client that was made for an hour goes on a little longer before it's warned.
_TOKEN_SECONDS: Final = 3607
# The controller that makes a new namespace's default account may be on its way.
_DEFAULT_ATTEMPTS: Final = 10
_SUFFIX_LETTERS: Final = "bcdfghjklmnpqrstvwxz2456789"
_TRUE: Final = frozenset(("1", "t", "T", "true", "TRUE", "True"))


class ServiceAccount(Handler):
    resources = frozenset({PODS})
    subresources = True

    async def admit(self, attributes: Attributes) -> None:
        pod = attributes.object or {}
        if attributes.subresource or attributes.operation != "CREATE":
            return
        if not _is_mirror(pod):
            await self._complete(attributes, pod["spec"])
        await self.validate(attributes)  # before what later plugins may say

    async def _complete(self, attributes: Attributes, spec: Object) -> None:
        name = spec.get("serviceAccountName") or _DEFAULT
        spec["serviceAccountName"] = spec["serviceAccount"] = name  # two names of one field
        account = await self._account(attributes, name)
        if _automounts(account, spec):
            _mount_token(spec, self.initializer.chance.source("volume", attributes.namespace))
        if not spec.get("imagePullSecrets") and account.get("imagePullSecrets"):
            spec["imagePullSecrets"] = [{"name": ref.get("name", "")} for ref in account["imagePullSecrets"]]

    async def validate(self, attributes: Attributes) -> None:
        pod = attributes.object or {}
        if attributes.operation == "UPDATE":
            if attributes.subresource == "ephemeralcontainers":
                await self._check_debuggers(attributes, pod)
        elif not attributes.subresource:
            if _is_mirror(pod):
                _check_mirror(attributes, pod["spec"])
            else:
                await self._check_references(attributes, pod)

    async def _check_references(self, attributes: Attributes, pod: Object) -> None:
        account = await self._own_account(attributes, pod)
        if _is_limited(account):
            for problem in _unmountable(pod["spec"], account):
                raise forbidden(attributes, problem)

    async def _check_debuggers(self, attributes: Attributes, pod: Object) -> None:
        account = await self._own_account(attributes, pod)
        if _is_limited(account):
            containers = pod["spec"].get("ephemeralContainers") or ()
            for problem in _unmountable_in("ephemeral container", containers, account):
                raise status_error(500, "", problem)  # upstream's error carries no status here

    async def _own_account(self, attributes: Attributes, pod: Object) -> Object:
        name = pod["spec"].get("serviceAccountName")
        if not name:
            who = f"{attributes.namespace}/{metadata(pod).get('name', '')}"
            raise forbidden(attributes, f"no service account specified for pod {who}")
        return await self._account(attributes, name)

    async def _account(self, attributes: Attributes, name: str) -> Object:
        namespace = attributes.namespace
        pause = 0.1 + 0.1 * self.initializer.chance.source("account").random()
        for attempt in range(_DEFAULT_ATTEMPTS if name == _DEFAULT else 1):
            if attempt:
                await asyncio.sleep(pause)
            account = await self.look_up("serviceaccounts", namespace, name)
            if account is not None:
                return account
        missing = f'serviceaccount "{name}" not found'
        raise forbidden(attributes, f"error looking up service account {namespace}/{name}: {missing}")


def _is_mirror(pod: Object) -> bool:
    return _MIRROR in (metadata(pod).get("annotations") or {})


def _check_mirror(attributes: Attributes, spec: Object) -> None:
    if spec.get("serviceAccountName"):
        raise forbidden(attributes, "a mirror pod may not reference service accounts")
    if any(kind == "secrets" for kind, _ in secrets_and_config_maps(spec)):
        raise forbidden(attributes, "a mirror pod may not reference secrets")
    for volume in spec.get("volumes") or ():
        for source in (volume.get("projected") or {}).get("sources") or ():
            if source.get("serviceAccountToken") is not None:
                raise forbidden(attributes, "a mirror pod may not use ServiceAccountToken volume projections")


# ---------------------------------------------------------- what may be mounted


def _is_limited(account: Object) -> bool:
    return (metadata(account).get("annotations") or {}).get(_ENFORCE) in _TRUE


def _unmountable(spec: Object, account: Object) -> Iterator[str]:
    known, name = _names(account, "secrets"), metadata(account)["name"]
    for volume in spec.get("volumes") or ():
        secret = (volume.get("secret") or {}).get("secretName", "")
        if volume.get("secret") is not None and secret not in known:
            yield f'volume with secret.secretName="{secret}" is not allowed because {_unknown(name, "secret")}'
    yield from _unmountable_in("init container", spec.get("initContainers") or (), account)
    yield from _unmountable_in("container", spec.get("containers") or (), account)
    pulled_with = _names(account, "imagePullSecrets")
    for i, ref in enumerate(spec.get("imagePullSecrets") or ()):
        if ref.get("name", "") not in pulled_with:
            place = f'imagePullSecrets[{i}].name="{ref.get("name", "")}"'
            yield f"{place} is not allowed because {_unknown(name, 'imagePullSecret')}"


def _unmountable_in(called: str, containers: Collection[Object], account: Object) -> Iterator[str]:
    known, because = _names(account, "secrets"), _unknown(metadata(account)["name"], "secret")
    for container in containers:
        for where, secret in _secrets_of(container):
            if secret not in known:
                text = f'{called} {container["name"]} with {where} referencing secret.secretName="{secret}"'
                yield f"{text} is not allowed because {because}"


def _secrets_of(container: Object) -> Iterator[tuple[str, str]]:
    for variable in container.get("env") or ():
        if (ref := (variable.get("valueFrom") or {}).get("secretKeyRef")) is not None:
            yield f"envVar {variable['name']}", ref.get("name", "")
    for source in container.get("envFrom") or ():
        if (ref := source.get("secretRef")) is not None:
            yield "envFrom", ref.get("name", "")


def _names(account: Object, field: str) -> frozenset[str]:
    return frozenset(ref.get("name", "") for ref in account.get(field) or ())


def _unknown(account: str, what: str) -> str:
    return f"service account {account} does not reference that {what}"


# -------------------------------------------------------------------- the token


def _automounts(account: Object, spec: Object) -> bool:
    for says in (spec, account):
        wanted = says.get("automountServiceAccountToken")
        if wanted is not None:
            return bool(wanted)
    return True


def _mount_token(spec: Object, source: Random) -> None:
    volumes = spec.get("volumes") or []
    own = next((volume["name"] for volume in volumes if volume.get("name", "").startswith(_VOLUME)), None)
    name = own or _VOLUME + "".join(source.choices(_SUFFIX_LETTERS, k=5))
    is_needed = False
    for container in (*(spec.get("initContainers") or ()), *(spec.get("containers") or ())):
        mounts = container.get("volumeMounts") or []
        if all(mount.get("mountPath") != _MOUNT_PATH for mount in mounts):
            container["volumeMounts"] = [*mounts, {"name": name, "readOnly": True, "mountPath": _MOUNT_PATH}]
            is_needed = True
    if is_needed and own is None:
        spec["volumes"] = [*volumes, {"name": name, "projected": _token_source()}]


def _token_source() -> Object:
    own_namespace = {"path": "namespace", "fieldRef": {"apiVersion": "v1", "fieldPath": "metadata.namespace"}}
    return {
        "defaultMode": 0o644,
        "sources": [
            {"serviceAccountToken": {"expirationSeconds": _TOKEN_SECONDS, "path": "token"}},
            {"configMap": {"name": "kube-root-ca.crt", "items": [{"key": "ca.crt", "path": "ca.crt"}]}},
            {"downwardAPI": {"items": [own_namespace]}},
        ],
    }
