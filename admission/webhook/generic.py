"""What mutating and validating webhooks have in common: finding those that a write concerns, and calling one.

Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go, predicates/{namespace,object}/matcher.go.
"""

import logging
import uuid
from typing import TYPE_CHECKING, ClassVar

from fakeapiserver.admission.handler import Handler
from fakeapiserver.admission.interfaces import Attributes, Initializer
from fakeapiserver.admission.webhook import review
from fakeapiserver.admission.webhook.configuration import Hook, hooks_of
from fakeapiserver.admission.webhook.matching import matches, namespace_of
from fakeapiserver.admission.webhook.review import Subject, Verdict
from fakeapiserver.apimachinery.errors import StatusError, new_bad_request, new_internal_error, new_not_found
from fakeapiserver.apimachinery.field import go_quote
from fakeapiserver.apimachinery.gvk import GroupResource, GroupVersionKind, GroupVersionResource
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.transport.review import BadReview

if TYPE_CHECKING:
    from fakeapiserver.transport.webhook import WebhookClient

log = logging.getLogger(__name__)


class CallFailed(Exception):
    """The webhook could not be asked, or its answer not be used: the failure policy decides. The text is upstream's."""


class Webhook(Handler):
    """`configurations` are the stored objects that name the webhooks; `mutating` whether they may change what is written."""

    operations = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
    subresources = True
    configurations: ClassVar[str]
    mutating: ClassVar[bool]

    def __init__(self, initializer: Initializer) -> None:
        super().__init__(initializer)
        self._hooks: tuple[Hook, ...] = ()
        self._generation = -1
        self._client: WebhookClient | None = None

    def hooks(self) -> tuple[Hook, ...]:
        """All there are, read again after a change of any configuration."""
        generation = self.initializer.getter.generation((self.configurations,))
        if generation != self._generation:
            self._hooks = hooks_of(self.initializer.getter.list(self.configurations))
            self._generation = generation
        return self._hooks

    # ------------------------------------------------------------------ matching

    async def subject(self, hook: Hook, attributes: Attributes) -> Subject | None:
        """The write as this webhook is to see it, None when it doesn't concern it. StatusError where that can't be told."""
        problem: StatusError | None = None
        try:
            if not self._in_namespace(hook, attributes):
                return None
        except StatusError as error:
            problem = error  # told only where the webhook would have been called
        if not _has_labels(hook, attributes):
            return None
        found = self._matched(hook, attributes)
        if found is None:
            return None
        if problem is not None:
            raise problem
        resource, kind = found
        obj = await self._in_version(attributes.object, kind)
        return Subject(resource, kind, obj, await self._in_version(attributes.old_object, kind))

    def _in_namespace(self, hook: Hook, attributes: Attributes) -> bool:
        namespace, resource = namespace_of(attributes), attributes.resource
        if hook.namespace_selector.empty or (not namespace and resource.resource != "namespaces"):
            return True
        itself = resource.resource == "namespaces" and not attributes.subresource
        if itself and attributes.operation in ("CREATE", "UPDATE"):
            return hook.namespace_selector.matches(_labels(attributes.object))
        found = self.initializer.getter.get("namespaces", "", namespace)
        if found is None:
            raise new_not_found(GroupResource("", "namespaces"), namespace)
        return hook.namespace_selector.matches(_labels(found))

    def _matched(self, hook: Hook, attributes: Attributes) -> tuple[GroupVersionResource, GroupVersionKind] | None:
        rules = hook.spec.get("rules") or ()
        if any(matches(rule, attributes, attributes.resource) for rule in rules):
            return attributes.resource, attributes.kind
        if hook.spec.get("matchPolicy") == "Exact":
            return None
        others = self.initializer.versions.equivalents(attributes.resource, attributes.kind)
        for rule in rules if others else ():
            for resource, kind in others:
                if matches(rule, attributes, resource):
                    return resource, kind
        return None

    async def _in_version(self, obj: Object | None, kind: GroupVersionKind) -> Object | None:
        if obj is None or obj.get("apiVersion") == str(kind.group_version):
            return obj
        return await self.initializer.versions.convert(obj, kind)

    # ------------------------------------------------------------------- calling

    async def call(self, hook: Hook, attributes: Attributes, subject: Subject) -> Verdict:
        """The webhook's verdict, its warnings passed on. StatusError when it rejects, CallFailed."""
        if attributes.dry_run and hook.has_side_effects:
            raise new_bad_request(f"admission webhook {go_quote(hook.name)} does not support dry run")
        uid = str(uuid.uuid4())
        try:
            version = review.version_of(hook.spec.get("admissionReviewVersions") or [])
        except BadReview as error:
            raise failed(hook, f"could not create admission objects: {error}") from None
        data = await self._post(hook, review.review(uid, version, attributes, subject))
        try:
            found = review.decode(data, version)
        except BadReview as error:
            raise failed(hook, f"failed to call webhook: {error}") from None
        try:
            verdict = review.verdict(found, uid, version, mutating=self.mutating)
        except BadReview as error:
            raise failed(hook, f"received invalid webhook response: {error}") from None
        attributes.warnings += [warning for warning in verdict.warnings if warning]
        if not verdict.allowed:
            raise review.rejection(hook.name, verdict.status)
        return verdict

    async def _post(self, hook: Hook, body: bytes) -> bytes:
        from fakeapiserver.transport.service_resolver import cluster_resolver
        from fakeapiserver.transport.webhook import WebhookClient, WebhookError

        if self._client is None:
            self._client = WebhookClient(cluster_resolver(self.initializer.getter))
        try:
            return await self._client.post(hook.endpoint, body, hook.spec.get("timeoutSeconds") or 10)
        except WebhookError as error:
            raise failed(hook, f"failed to call webhook: {error}") from None

    def answer_to(self, hook: Hook, error: CallFailed) -> StatusError | None:
        """What the client gets, None where the failure is to be ignored."""
        if hook.ignores_failures:
            log.warning("failing open: %s", error)
            return None
        log.info("failing closed: %s", error)
        return new_internal_error(str(error))


def failed(hook: Hook, why: str) -> CallFailed:
    return CallFailed(f"failed calling webhook {go_quote(hook.name)}: {why}")


def _has_labels(hook: Hook, attributes: Attributes) -> bool:
    """Of the new object or of the old one."""
    if hook.object_selector.empty:
        return True
    seen = (attributes.object, attributes.old_object)
    return any(obj is not None and hook.object_selector.matches(_labels(obj)) for obj in seen)


def _labels(obj: Object | None) -> dict[str, str]:
    return metadata(obj or {}).get("labels") or {}
