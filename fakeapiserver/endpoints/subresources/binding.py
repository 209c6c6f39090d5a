"""Bindings: a scheduler assigns a pod to a node, through pods/binding or the older resource `bindings`.

Upstream: pkg/registry/core/pod/storage/storage.go (BindingREST), pkg/apis/core/validation (ValidatePodBinding).
"""

from typing import Final

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.errors import StatusError, aggregated, new_bad_request, new_conflict
from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object, is_terminating, metadata, resource_version, uid
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.apis.feature_gates import FeatureGates
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.scopes import RequestScopes
from fakeapiserver.endpoints.subresources.subresource import decoded, mutated, success
from fakeapiserver.registry.core.pod.status import set_condition
from fakeapiserver.storage.keys import ROOT

_PODS: Final = GroupResource("", "pods")


async def bind(request: Request, scope: RequestScope, scopes: RequestScopes) -> Response:
    """Answers 201 with a Status. `scope` is the one of pods or of bindings. StatusError 400, 404, 409."""
    store = scopes.store_for(_PODS)
    bindings = scopes.lookup("", "v1", "bindings")
    assert store is not None
    assert bindings is not None
    binding, options = await decoded(request, bindings.kind, scope)
    attributes = await mutated(request, scopes, scope, binding, options)
    binding = attributes.object or binding
    meta = metadata(binding)
    name = request.info.name or str(meta.get("name", ""))
    # Upstream ignores the client's uid in an object that is created by its own name.
    expected = meta if request.info.subresource else {key: value for key, value in meta.items() if key != "uid"}
    if meta.get("name", "") != name:
        raise new_bad_request("name in URL does not match name in Binding object")
    if errors := _binding_errors(binding):
        raise new_bad_request(aggregated(errors))
    if not name:
        raise new_bad_request("Name parameter required.")
    await scopes.services.admission.validate(attributes)
    now = rfc3339(scope.clock.now())

    key = store.key(request.info.namespace, name)
    if options.dry_run:  # upstream then looks itself, above the storage that adds the prefix
        key = key.removeprefix(ROOT)

    def assign(pod: Object) -> Object:
        _check_preconditions(pod, key, expected, name)
        _check_assignable(pod, name)
        return _assigned(pod, binding, now, store.strategy.features)

    size = len(request.content)
    await store.amend(request.info.namespace, name, assign, dry_run=options.dry_run, size=size)
    return success(request, scope)


def _binding_errors(binding: Object) -> ErrorList:
    target = binding.get("target") or {}
    errors: ErrorList = []
    if target.get("kind") not in (None, "", "Node"):
        errors.append(field.not_supported_text("target.kind", target["kind"], ["Node", "<empty>"]))
    if not target.get("name"):
        errors.append(field.required("target.name"))
    return errors


def _check_preconditions(pod: Object, key: str, wanted: Object, name: str) -> None:
    """Checks the binding's uid and resourceVersion, which are preconditions on the pod. StatusError 409."""
    for what, expected, actual in (
        ("UID", wanted.get("uid"), uid(pod)),
        ("ResourceVersion", wanted.get("resourceVersion"), resource_version(pod)),
    ):
        if expected and expected != actual:
            reason = (
                f"StorageError: invalid object, Code: 4, Key: {key}, ResourceVersion: 0, AdditionalErrorMsg: "
                f"Precondition failed: {what} in precondition: {expected}, {what} in object meta: {actual}"
            )
            raise new_conflict(_PODS, name, reason)


def _check_assignable(pod: Object, name: str) -> None:
    spec = pod["spec"]
    if is_terminating(pod):
        raise _conflict(name, f"pod {name} is being deleted, cannot be assigned to a host")
    if spec.get("nodeName"):
        raise _conflict(name, f"pod {name} is already assigned to node {go_quote(spec['nodeName'])}")
    if spec.get("schedulingGates"):
        raise _conflict(name, f"pod {name} has non-empty .spec.schedulingGates")


def _conflict(name: str, reason: str) -> StatusError:
    return new_conflict(GroupResource("", "pods/binding"), name, reason)


def _assigned(pod: Object, binding: Object, now: str, features: FeatureGates) -> Object:
    """The pod on its node, with the binding's annotations and, as far as the gates have it, labels."""
    meta, status = dict(metadata(pod)), dict(pod.get("status") or {})
    for key in ("annotations", "labels") if features.enabled("PodTopologyLabelsAdmission") else ("annotations",):
        if added := metadata(binding).get(key):
            meta[key] = {**(meta.get(key) or {}), **added}
    if features.enabled("ClearingNominatedNodeNameAfterBinding"):
        status.pop("nominatedNodeName", None)
    set_condition(status, {"type": "PodScheduled", "status": "True"}, now)
    return {**pod, "metadata": meta, "spec": {**pod["spec"], "nodeName": binding["target"]["name"]}, "status": status}
