"""The Pod Security Standards: pods that a namespace's labels forbid are refused, what makes them is warned of.

Upstream: k8s.io/kubernetes/plugin/pkg/admission/security/podsecurity/admission.go, k8s.io/pod-security-admission/admission/admission.go.
"""

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import Final

from fakeapiserver.admission.handler import PODS, Handler
from fakeapiserver.admission.interfaces import Attributes, Initializer
from fakeapiserver.admission.measures import POD_SECURITY_EVALUATIONS, POD_SECURITY_EXEMPTIONS
from fakeapiserver.admission.podsecurity.configuration import read_configuration
from fakeapiserver.admission.podsecurity.evaluator import evaluate
from fakeapiserver.admission.podsecurity.levels import LevelVersion, Policy, labelled_modes, policy_to_evaluate
from fakeapiserver.apimachinery.errors import aggregated, new_forbidden, new_internal_error, new_invalid
from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.go.quote import go_quote
from fakeapiserver.apimachinery.gvk import GroupResource
from fakeapiserver.apimachinery.meta import Object, metadata, owner_references

_NAMESPACES: Final = GroupResource("", "namespaces")
# Where a pod's template stands in what makes pods.
_TEMPLATES: Final = {
    GroupResource("", "podtemplates"): ("template",),
    GroupResource("", "replicationcontrollers"): ("spec", "template"),
    GroupResource("apps", "daemonsets"): ("spec", "template"),
    GroupResource("apps", "deployments"): ("spec", "template"),
    GroupResource("apps", "replicasets"): ("spec", "template"),
    GroupResource("apps", "statefulsets"): ("spec", "template"),
    GroupResource("batch", "jobs"): ("spec", "template"),
    GroupResource("batch", "cronjobs"): ("spec", "jobTemplate", "spec", "template"),
}
# Any other subresource of a pod may bring in containers.
_HARMLESS: Final = frozenset({"attach", "binding", "eviction", "exec", "log", "portforward", "proxy", "status"})
_MOST_PODS: Final = 3000
# Namespaces come and go; a table this large is thrown away and refilled.
_MOST_POLICIES: Final = 4096
_PREFIX: Final = "pod-security.kubernetes.io/"
_EXEMPT: Final = f"{_PREFIX}exempt"
_ENFORCED: Final = f"{_PREFIX}enforce-policy"
_VIOLATIONS: Final = f"{_PREFIX}audit-violations"
_ERROR: Final = f"{_PREFIX}error"


class PodSecurity(Handler):
    resources = frozenset({PODS, _NAMESPACES, *_TEMPLATES})
    subresources = True

    def __init__(self, initializer: Initializer) -> None:
        super().__init__(initializer)
        self._configuration = read_configuration(initializer.configuration.get("PodSecurity"))
        # namespace -> the object that was looked at, and what it says
        self._policies: dict[str, tuple[Object, Policy, ErrorList]] = {}

    async def validate(self, attributes: Attributes) -> None:
        resource = attributes.resource.group_resource
        if resource == PODS:
            if attributes.subresource not in _HARMLESS:
                self._validate_pod(attributes)
        elif not attributes.subresource:
            if resource == _NAMESPACES:
                self._validate_namespace(attributes)
            else:
                self._validate_pod_controller(attributes, _TEMPLATES[resource])

    def _policy(self, labels: dict[str, str] | None) -> tuple[Policy, ErrorList]:
        return policy_to_evaluate(labels or {}, self._configuration.defaults)

    def _policy_of(self, name: str, namespace: Object) -> tuple[Policy, ErrorList]:
        """Worked out once for each state of a namespace: objects are the same ones as long as they don't change."""
        known = self._policies.get(name)
        if known is not None and known[0] is namespace:
            return known[1], known[2]
        policy, errors = self._policy(metadata(namespace).get("labels"))
        if len(self._policies) >= _MOST_POLICIES:
            self._policies.clear()
        self._policies[name] = namespace, policy, errors
        return policy, errors

    def _is_exempt(self, attributes: Attributes) -> bool:
        if attributes.namespace in self._configuration.namespaces:
            attributes.annotate(_EXEMPT, "namespace")
        elif attributes.user.name in self._configuration.usernames:
            attributes.annotate(_EXEMPT, "user")
        else:
            return False
        self.initializer.instruments.count(POD_SECURITY_EXEMPTIONS, *_labels(attributes))
        return True

    def _count(self, attributes: Attributes, decision: str, mode: str, level: LevelVersion) -> None:
        version = "latest" if level.level == "privileged" else str(level).partition(":")[2]
        labels = (decision, mode, level.level, version, *_labels(attributes))
        self.initializer.instruments.count(POD_SECURITY_EVALUATIONS, *labels)

    # --------------------------------------------------------- pods, templates

    def _validate_pod(self, attributes: Attributes) -> None:
        if self._is_exempt(attributes):
            return
        namespace = self.initializer.getter.get("namespaces", "", attributes.namespace)
        if namespace is None:
            raise new_internal_error(f"failed to lookup namespace {go_quote(attributes.namespace)}")
        policy, errors = self._policy_of(attributes.namespace, namespace)
        if policy.fully_privileged and not errors:
            attributes.annotate(_ENFORCED, str(policy.enforce))
            self._count(attributes, "allow", "enforce", policy.enforce)
            return
        pod, old = attributes.object or {}, attributes.old_object
        if old is None or attributes.operation == "CREATE" or _brings_containers(pod["spec"], old["spec"]):
            _annotate_error(attributes, errors)
            self._evaluate(attributes, policy, pod, enforce=True)

    def _validate_pod_controller(self, attributes: Attributes, path: Sequence[str]) -> None:
        if self._is_exempt(attributes):
            return
        namespace = self.initializer.getter.get("namespaces", "", attributes.namespace)
        template = attributes.object
        for name in path:
            template = (template or {}).get(name)
        if namespace is not None and template is not None:
            policy, errors = self._policy_of(attributes.namespace, namespace)
            _annotate_error(attributes, errors)
            self._evaluate(attributes, policy, template, enforce=False)

    def _evaluate(self, attributes: Attributes, policy: Policy, pod: Object, *, enforce: bool) -> None:
        """`pod` is one, or a template of one."""
        meta, spec = pod.get("metadata") or {}, pod.get("spec") or {}
        if spec.get("runtimeClassName") in self._configuration.runtime_classes:
            attributes.annotate(_EXEMPT, "runtimeClass")
            self.initializer.instruments.count(POD_SECURITY_EXEMPTIONS, *_labels(attributes))
            return
        if enforce:
            attributes.annotate(_ENFORCED, str(policy.enforce))
        audited = evaluate(policy.audit, meta, spec)
        if not audited.allowed:
            self._count(attributes, "deny", "audit", policy.audit)
            violated = go_quote(str(policy.audit))
            attributes.annotate(_VIOLATIONS, f"would violate PodSecurity {violated}: {audited.detail}")
        if enforce:
            result = evaluate(policy.enforce, meta, spec)
            self._count(attributes, "allow" if result.allowed else "deny", "enforce", policy.enforce)
            if not result.allowed:
                why = f"violates PodSecurity {go_quote(str(policy.enforce))}: {result.detail}"
                name = attributes.name or metadata(attributes.object or {}).get("name", "")
                raise new_forbidden(attributes.resource.group_resource, name, why)
        result = evaluate(policy.warn, meta, spec)
        if not result.allowed:
            self._count(attributes, "deny", "warn", policy.warn)
            attributes.warnings.append(f"would violate PodSecurity {go_quote(str(policy.warn))}: {result.detail}")

    # --------------------------------------------------------------- namespaces

    def _validate_namespace(self, attributes: Attributes) -> None:
        """Labels must be good ones; when they ask for more, the pods that are there already are looked at."""
        namespace = attributes.object or {}
        labels = metadata(namespace).get("labels") or {}
        policy, errors = self._policy(labels)
        old, old_errors = policy, ErrorList()
        if attributes.operation == "UPDATE":
            old, old_errors = self._policy(metadata(attributes.old_object or {}).get("labels"))
        if errors and (not old_errors or [str(error) for error in errors] != [str(error) for error in old_errors]):
            raise new_invalid(attributes.kind.group_kind, attributes.name, errors)
        now, before = policy.enforce, old.enforce
        if attributes.operation == "UPDATE" and (
            now == before
            or now.level == "privileged"
            or (now.version == before.version and now.strictness <= before.strictness)
        ):
            return
        name = metadata(namespace)["name"]
        if name in self._configuration.namespaces:
            if not policy.fully_privileged and not policy.equivalent(self._configuration.defaults):
                modes = labelled_modes(labels, policy)
                text = f"is exempt from Pod Security, and the policy ({modes}) will be ignored"
                attributes.warnings.append(f"namespace {go_quote(name)} {text}")
        elif attributes.operation == "UPDATE":
            attributes.warnings += self._violations(name, now)

    def _violations(self, namespace: str, enforce: LevelVersion) -> list[str]:
        """Returns a line for all pods in a namespace that violate the level in the same way."""
        pods = _one_of_each_controller_first(
            pod
            for pod in self.initializer.getter.list("pods", namespace)
            if pod["spec"].get("runtimeClassName") not in self._configuration.runtime_classes
        )
        violations = defaultdict[str, list[str]](list)
        for pod in pods[:_MOST_PODS]:
            result = evaluate(enforce, metadata(pod), pod["spec"])
            if not result.allowed:
                violations[result.reason].append(metadata(pod)["name"])
        warnings = []
        if len(pods) > _MOST_PODS:
            text = f"only checked against the first {_MOST_PODS} of {len(pods)} existing pods"
            warnings.append(f"new PodSecurity enforce level {text}")
        if violations:
            text = f"violate the new PodSecurity enforce level {go_quote(str(enforce))}"
            warnings.append(f"existing pods in namespace {go_quote(namespace)} {text}")
        return warnings + sorted(
            f"{min(names)}{_others(len(names) - 1)}: {reason}" for reason, names in violations.items()
        )


def _labels(attributes: Attributes) -> tuple[str, str, str]:
    """Operation, what is written and its subresource, as metrics call them."""
    resource = {"pods": "pod", "namespaces": "namespace"}.get(str(attributes.resource.group_resource), "controller")
    return attributes.operation.lower(), resource, attributes.subresource


def _annotate_error(attributes: Attributes, errors: ErrorList) -> None:
    if errors:
        attributes.annotate(_ERROR, f"Failed to parse policy: {aggregated(errors)}")


def _others(count: int) -> str:
    if count == 0:
        return ""
    return " (and 1 other pod)" if count == 1 else f" (and {count} other pods)"


def _one_of_each_controller_first(pods: Iterable[Object]) -> list[Object]:
    first, others, seen = list[Object](), list[Object](), set[str]()
    for pod in pods:
        owner = next((owner["uid"] for owner in owner_references(pod) if owner.get("controller")), None)
        (others if owner in seen else first).append(pod)
        if owner is not None:
            seen.add(owner)
    return first + others


def _brings_containers(spec: Object, old: Object) -> bool:
    """Reports whether an update changes anything that the standards are about: what runs (other fields of a pod can't be changed)."""
    for field in ("containers", "initContainers"):
        if _images(spec, field) != _images(old, field):
            return True
    known = {container["name"]: container.get("image") for container in old.get("ephemeralContainers") or ()}
    return any(
        container["name"] not in known or known[container["name"]] != container.get("image")
        for container in spec.get("ephemeralContainers") or ()
    )


def _images(spec: Object, field: str) -> list[str | None]:
    return [container.get("image") for container in spec.get(field) or ()]
