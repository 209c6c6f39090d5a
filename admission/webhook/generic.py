"""Shared code of mutating and validating webhooks: choosing those that a write concerns, and calling one.

Upstream: k8s.io/apiserver/pkg/admission/plugin/webhook/generic/webhook.go.
"""

import logging
from collections.abc import Awaitable
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, ClassVar, Final, TypeVar

from fakeapiserver.admission import static_manifests
from fakeapiserver.admission.handler import Handler
from fakeapiserver.admission.interfaces import Attributes, Initializer
from fakeapiserver.admission.measures import (
    CONDITION_ERRORS,
    CONDITION_EXCLUSIONS,
    CONDITION_SECONDS,
    WEBHOOK_REJECTIONS,
    WEBHOOK_REQUESTS,
    WEBHOOK_SECONDS,
    WEBHOOKS_FAILED_OPEN,
)
from fakeapiserver.admission.policy import expressions
from fakeapiserver.admission.webhook import review
from fakeapiserver.admission.webhook.configuration import Hook, hooks_of
from fakeapiserver.admission.webhook.matching import has_labels, in_namespace, in_version, matched
from fakeapiserver.admission.webhook.review import Subject, Verdict
from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.errors import StatusError, new_bad_request, new_forbidden, new_internal_error
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.serializer.component_config import ConfigKind
from fakeapiserver.effort import told_timeout
from fakeapiserver.transport import webhook_users
from fakeapiserver.transport.review import BadReview
from fakeapiserver.transport.service_resolver import cluster_resolver
from fakeapiserver.transport.webhook import WebhookClient, WebhookError

if TYPE_CHECKING:
    from fakeapiserver.transport.webhook import WebhookClient
    from fakeapiserver.transport.webhook_users import WebhookUsers

log = logging.getLogger(__name__)

_CONFIGURATION: Final = ConfigKind(
    "WebhookAdmissionConfiguration",
    ("apiserver.config.k8s.io/v1",),
    {"WebhookAdmissionConfiguration": {"kubeConfigFile": "string", static_manifests.FIELD: "string"}},
)

T = TypeVar("T")
# Upstream counts no higher ones.
_MAX_CODE: Final = 600


class CallFailed(Exception):
    """The webhook could not be asked, or its answer not be used: the failure policy decides. The text is upstream's, `code` the
    HTTP status that it counts as."""

    def __init__(self, text: str, code: int = 503) -> None:
        super().__init__(text)
        self.code = code


class Rejected(StatusError):
    """The webhook has said no."""


class Webhook(Handler):
    """`configurations` are the stored objects that name the webhooks; `mutating` whether they may change what is written, `annotation` what
    begins the names of audit annotations."""

    operations = frozenset({"CREATE", "UPDATE", "DELETE", "CONNECT"})
    subresources = True
    configurations: ClassVar[str]
    mutating: ClassVar[bool]
    annotation: ClassVar[str]

    @property
    def step(self) -> str:
        """The step's name in upstream's metrics."""
        return "admit" if self.mutating else "validating"

    def __init__(self, initializer: Initializer) -> None:
        super().__init__(initializer)
        self._hooks: tuple[Hook, ...] = ()
        self._generation = -1
        self._client: WebhookClient | None = None
        document = initializer.configuration.get(type(self).__name__)
        configuration = _CONFIGURATION.read(document) if document is not None else {}
        static_manifests.check(configuration.get(static_manifests.FIELD) or "", initializer.features)
        self._users = _users(configuration.get("kubeConfigFile") or "")

    def hooks(self) -> tuple[Hook, ...]:
        """All there are, read again after a change of any configuration."""
        generation = self.initializer.getter.generation((self.configurations,))
        if generation != self._generation:
            self._hooks = hooks_of(self.initializer.getter.list(self.configurations), self.initializer.features.version)
            self._generation = generation
        return self._hooks

    # ------------------------------------------------------------------ matching

    async def subject(self, hook: Hook, attributes: Attributes) -> Subject | None:
        """Returns the write as this webhook sees it, or None if it doesn't concern the webhook.

        Raises StatusError on errors.
        """
        problem: StatusError | None = None
        try:
            if not in_namespace(hook.namespace_selector, attributes, self.initializer.getter):
                return None
        except StatusError as error:
            problem = error  # raised only if the webhook would have been called
        if not has_labels(hook.object_selector, attributes):
            return None
        versions, spec = self.initializer.versions, hook.spec
        match = matched(spec.get("rules") or (), spec.get("matchPolicy", ""), attributes, versions)
        if match is None:
            return None
        if problem is not None:
            raise problem
        resource, kind = match
        obj = await in_version(attributes.object, kind, versions)
        old = await in_version(attributes.old_object, kind, versions)
        subject = Subject(resource, kind, obj, old)
        if not await self._is_wanted(hook, attributes, subject):
            return None
        obj, old = (seen and versions.arrange(seen, kind) for seen in (obj, old))
        return Subject(resource, kind, obj, old)

    async def _is_wanted(self, hook: Hook, attributes: Attributes, subject: Subject) -> bool:
        """Reports whether all match conditions hold. Raises StatusError 403 on errors."""
        if not hook.spec.get("matchConditions"):
            return True

        # Upstream passes them the requested resource, in the kind that matched.
        seen = Subject(attributes.resource, subject.kind, subject.object, subject.old_object)
        evaluation = expressions.Evaluation.of(attributes, seen, self.initializer.authorizer)
        instruments, start = self.initializer.instruments, perf_counter()
        labels = ("webhook", hook.name, attributes.operation)
        exact = "admit" if self.mutating else "validate"
        try:
            wanted = await expressions.hold(hook.conditions, evaluation, ignores_failures=hook.ignores_failures)
        except expressions.ConditionError as error:
            instruments.count(CONDITION_ERRORS, *labels, exact)
            instruments.observe(CONDITION_SECONDS, perf_counter() - start, *labels, self.step)
            raise new_forbidden(attributes.resource.group_resource, attributes.name, str(error)) from None
        if not wanted:  # upstream times no conditions that hold
            instruments.count(CONDITION_EXCLUSIONS, *labels, exact)
            instruments.observe(CONDITION_SECONDS, perf_counter() - start, *labels, self.step)
        return wanted

    # ------------------------------------------------------------------- calling

    async def call(self, hook: Hook, attributes: Attributes, subject: Subject) -> Verdict:
        """The webhook's verdict, its warnings passed on. StatusError when it rejects, CallFailed."""
        if attributes.dry_run and hook.has_side_effects:
            raise new_bad_request(f"admission webhook {go_quote(hook.name)} does not support dry run")
        uid = self.initializer.chance.uid("review", hook.name, attributes.namespace, attributes.name)
        try:
            version = review.version_of(hook.spec.get("admissionReviewVersions") or [])
        except BadReview as error:
            raise failed(hook, f"could not create admission objects: {error}", 400) from None
        data = await self._post(hook, review.review(uid, version, attributes, subject))
        try:
            decoded = review.decode(data, version)
        except BadReview as error:
            raise failed(hook, f"failed to call webhook: {error}") from None
        try:
            verdict = review.verdict(decoded, uid, version, mutating=self.mutating)
        except BadReview as error:
            raise failed(hook, f"received invalid webhook response: {error}") from None
        for key, value in verdict.audit_annotations.items():
            if not names.is_qualified_name(f"{hook.name}/{key}"):
                attributes.annotate(f"{hook.name}/{key}", str(value))
        attributes.warnings += [warning for warning in verdict.warnings if warning]
        if not verdict.allowed:
            refusal = review.rejection(hook.name, verdict.status)
            raise Rejected(refusal.status, refusal.headers)
        return verdict

    async def _post(self, hook: Hook, body: bytes) -> bytes:
        if self._client is None:
            self._client = WebhookClient(cluster_resolver(self.initializer.getter), self.initializer.connections)
        try:
            endpoint = hook.endpoint if self._users is None else self._users.presenting(hook.endpoint)
        except (OSError, ValueError) as error:
            raise failed(hook, f"could not get REST client: {error}", 500) from None
        try:
            timeout = hook.spec.get("timeoutSeconds") or 10
            return await self._client.post(endpoint, body, timeout, told_timeout(timeout))
        except WebhookError as error:
            raise failed(hook, f"failed to call webhook: {error}", error.status or 503) from None

    async def counted(self, hook: Hook, attributes: Attributes, asking: Awaitable[T]) -> T:
        """Returns the webhook's result, and counts its outcome."""
        start = perf_counter()
        try:
            answer = await asking
        except CallFailed as error:
            rejected = not hook.ignores_failures
            self._count(hook, attributes, start, error.code, "calling_webhook_error" if rejected else "")
            raise
        except Rejected as error:
            self._count(hook, attributes, start, int(error.status["code"]), "no_error")
            raise
        except StatusError:
            self._count(hook, attributes, start, 0, "apiserver_internal_error")
            raise
        self._count(hook, attributes, start, 200, "")
        return answer

    def _count(self, hook: Hook, attributes: Attributes, start: float, code: int, rejected: str) -> None:
        """`rejected`: why the request is, if it is."""
        instruments, operation, step = self.initializer.instruments, attributes.operation, self.step
        shown, is_rejected = str(min(code, _MAX_CODE)), "true" if rejected else "false"
        instruments.count(WEBHOOK_REQUESTS, shown, hook.name, operation, is_rejected, step)
        instruments.observe(WEBHOOK_SECONDS, perf_counter() - start, hook.name, operation, is_rejected, step)
        if rejected:
            instruments.count(WEBHOOK_REJECTIONS, rejected, hook.name, operation, shown, step)

    def answer_to(self, hook: Hook, error: CallFailed, attributes: Attributes, place: str) -> StatusError | None:
        """Returns the client's error, or None if the failure is ignored.

        `place` identifies the webhook in the audit log.
        """
        if hook.ignores_failures:
            self.initializer.instruments.count(WEBHOOKS_FAILED_OPEN, hook.name, self.step)
            attributes.annotate(f"failed-open.{self.annotation}{place}", hook.name)
            log.warning("failing open: %s", error)
            return None
        log.info("failing closed: %s", error)
        return new_internal_error(str(error))


def _users(path: str) -> "WebhookUsers | None":
    """Returns the users of the kubeconfig in the plugin's configuration, or None.

    Raises ValueError (upstream: LoadConfig).
    """
    if not path:
        return None
    if not path.startswith("/"):
        raise ValueError(f"kubeConfigFile: Invalid value: {go_quote(path)}: must be an absolute file path")

    try:
        return webhook_users.WebhookUsers(Path(path))
    except OSError as error:
        raise ValueError(str(error)) from None


def failed(hook: Hook, why: str, code: int = 503) -> CallFailed:
    return CallFailed(f"failed calling webhook {go_quote(hook.name)}: {why}", code)
