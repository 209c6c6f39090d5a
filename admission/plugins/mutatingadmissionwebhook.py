"""Webhooks that may change what is written, asked one after the other, and some once more when others have changed it since.

Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/mutating/{dispatcher,reinvocationcontext}.go,
k8s.io/apiserver/pkg/endpoints/handlers/fieldmanager/admission.go.
"""

import msgspec

from fakeapiserver.admission.interfaces import Attributes, Reinvocation, Versions
from fakeapiserver.admission.webhook.configuration import Hook
from fakeapiserver.admission.webhook.generic import CallFailed, Webhook, failed
from fakeapiserver.admission.webhook.matching import in_version, is_exempt
from fakeapiserver.admission.webhook.review import Subject, Verdict
from fakeapiserver.apimachinery.errors import StatusError, new_internal_error, status_error
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupVersion, GroupVersionKind
from fakeapiserver.apimachinery.managedfields import entries
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.apimachinery.patch import json as json_patch
from fakeapiserver.apimachinery.serializer import json, type_meta


class MutatingAdmissionWebhook(Webhook):
    configurations = "mutatingwebhookconfigurations.admissionregistration.k8s.io"
    mutating = True
    annotation = "mutation.webhook.admission.k8s.io/"

    async def admit(self, attributes: Attributes) -> None:
        hooks = self.hooks()
        if not hooks or is_exempt(attributes):
            return
        owners = metadata(attributes.object or {}).get("managedFields")
        state = attributes.reinvocation = attributes.reinvocation or Reinvocation()
        if state.running and state.output != json.encode(attributes.object):
            state.require()  # other plugins have changed it meanwhile
        for index, hook in enumerate(hooks):
            subject = await self.subject(hook, attributes)
            if subject is None or (state.running and hook.uid not in state.again):
                continue
            await self._ask(hook, attributes, subject, state, f"round_{int(state.running)}_index_{index}")
        state.output = json.encode(attributes.object)
        _restore_owners(attributes, owners)

    async def _ask(self, hook: Hook, attributes: Attributes, subject: Subject, state: Reinvocation, place: str) -> None:
        problem: StatusError | None = None
        changed = False
        try:
            changed = await self.counted(hook, attributes, self._changes(hook, attributes, subject, place))
            if changed:
                state.require()
                state.needed = True
        except CallFailed as error:
            problem = self.answer_to(hook, error, attributes, place)
        finally:
            if attributes.annotations is not None:
                attributes.annotate(f"{self.annotation}{place}", _annotation(hook, mutated=changed))
        if hook.spec.get("reinvocationPolicy") == "IfNeeded":
            state.called.add(hook.uid)
        if problem is not None:
            raise problem

    async def _changes(self, hook: Hook, attributes: Attributes, subject: Subject, place: str) -> bool:
        """Reports whether what the webhook has said has changed the object. CallFailed, StatusError."""
        return await self._apply(hook, attributes, subject, await self.call(hook, attributes, subject), place)

    async def _apply(self, hook: Hook, attributes: Attributes, subject: Subject, verdict: Verdict, place: str) -> bool:
        """Reports whether the webhook's patch has changed the object. CallFailed, StatusError 500."""
        if not verdict.patch:
            return False
        try:
            operations = json_patch.decode(verdict.patch, field_validation="Ignore")
        except StatusError as error:
            raise failed(hook, f"received undecodable patch in webhook response: {error.message}") from None
        if not operations:
            return False
        if subject.object is None:
            what = f"admission webhook {go_quote(hook.name)} attempted to modify the object"
            raise new_internal_error(f"{what}, which is not supported for this operation")
        if verdict.patch_type != "JSONPatch":
            raise failed(hook, f"unsupported patch type {go_quote(verdict.patch_type)}")
        patched = self._settled(_patched(subject.object, operations), subject)
        if attributes.annotations is not None:
            told = _annotation(hook, patch=json.decode(verdict.patch), patchType="JSONPatch")
            attributes.annotate(f"patch.webhook.admission.k8s.io/{place}", told, with_request=True)
        if patched == subject.object:
            return False
        attributes.object = await in_version(patched, attributes.kind, self.initializer.versions)
        return True

    def _settled(self, patched: Object, subject: Subject) -> Object:
        """In its kind's form and with its defaults. StatusError 500."""
        kind, versions = subject.kind, self.initializer.versions
        patched["kind"] = patched.get("kind") or kind.kind
        patched["apiVersion"] = patched.get("apiVersion") or str(kind.group_version)
        gvk = GroupVersionKind(*GroupVersion.parse(patched["apiVersion"]), patched["kind"])
        try:
            if gvk != kind:
                versions.recognize(patched, gvk)
                what = f"converting ({gvk.version}.{gvk.kind}) to ({kind.group or 'core'}.{kind.kind})"
                raise status_error(500, "", f"{what}: unknown conversion")
            _settle(patched, kind, versions)
        except ValueError as error:
            raise new_internal_error(str(error)) from None
        return patched


def _settle(obj: Object, kind: GroupVersionKind, versions: Versions) -> None:
    """ValueError with the mistake that Go comes upon first: patches leave an object's members in the order of their names."""
    try:
        versions.settle(obj, kind)
    except ValueError:
        versions.settle(json.decode(msgspec.json.encode(obj, order="sorted")), kind)
        raise


def _annotation(hook: Hook, **told: object) -> str:
    return json.encode({"configuration": hook.configuration, "webhook": hook.name, **told}).decode()


def _patched(obj: Object, operations: list[json_patch.Operation]) -> Object:
    """A new object; nothing in it is shared with the old one. StatusError 500 in the words of upstream's library."""
    try:
        patched = json_patch.applied(obj, operations)
    except json_patch.Inapplicable as error:
        raise new_internal_error(str(error)) from None
    try:
        return type_meta.read(json.encode(patched)).content
    except ValueError as error:
        raise new_internal_error(str(error)) from None


def _restore_owners(attributes: Attributes, owners: list[Object] | None) -> None:
    """Webhooks written before there were managedFields garble them: what they were stays, with a warning."""
    obj = attributes.object
    if obj is None or metadata(obj).get("managedFields") == owners:
        return

    try:
        entries.decode(metadata(obj).get("managedFields"), trusted=False)
    except ValueError as error:
        metadata(obj)["managedFields"] = owners
        attributes.warnings.append(
            ".metadata.managedFields was in an invalid state after admission; this could be caused by an outdated mutating "
            f"admission controller; please fix your requests: {error}"
        )
