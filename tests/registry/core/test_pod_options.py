"""Validation of pods with features switched (pkg/api/pod/util.go, pkg/apis/core/validation)."""

import pytest

from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.feature_gates import feature_gates
from fakeapiserver.registry.core.pod.options import pod_options
from fakeapiserver.registry.core.pod.template import default_pod_spec
from fakeapiserver.registry.core.pod.validation import pod_errors, pod_update_errors


def _pod(**spec: object) -> Object:
    pod_spec: Object = {"containers": [{"name": "c", "image": "a"}], **spec}
    default_pod_spec(pod_spec, image_volumes=True)
    return {
        "metadata": {"name": "p", "namespace": "d", "annotations": pod_spec.pop("annotations", {})},
        "spec": pod_spec,
    }


_COMPARING = {"tolerations": [{"key": "k", "operator": "Gt", "value": "5"}]}
_WORDY = {"tolerations": [{"key": "k", "operator": "Lt", "value": "05"}]}
_MOUNTED = {"securityContext": {"seLinuxChangePolicy": "MountOption"}}
_ON_HOST = {"hostNetwork": True, "hostUsers": False}
_RESTARTING = {"containers": [{"name": "c", "image": "a", "restartPolicy": "Never"}]}
_ALL = [{"action": "RestartAllContainers", "exitCodes": {"operator": "In", "values": [1]}}]
_RULES = {"containers": [{"name": "c", "image": "a", "restartPolicy": "Never", "restartPolicyRules": _ALL}]}
_SPREAD = {
    "topologySpreadConstraints": [
        {
            "maxSkew": 1,
            "topologyKey": "z",
            "whenUnsatisfiable": "DoNotSchedule",
            "matchLabelKeys": ["a"],
            "labelSelector": {"matchLabels": {"a": "b"}},
        }
    ]
}
_RESTART_GATES = {"ContainerRestartRules": False, "RestartAllContainersOnContainerExits": False}


@pytest.mark.parametrize(
    ("spec", "gates", "complaint"),
    [
        (_COMPARING, {}, 'operator: Unsupported value: "Gt"'),
        (_COMPARING, {"TaintTolerationComparisonOperators": True}, ""),
        (_WORDY, {"TaintTolerationComparisonOperators": True}, "must be a valid decimal integer in canonical form"),
        (_MOUNTED, {}, 'supported values: "Recursive"'),
        (_MOUNTED, {"SELinuxMount": True}, ""),
        (_ON_HOST, {}, "spec.hostNetwork: Forbidden: when `hostUsers` is false"),
        (_ON_HOST, {"UserNamespacesHostNetworkSupport": True}, ""),
        (_RESTARTING, {}, ""),
        (_RESTARTING, _RESTART_GATES, "may not be set for non-init containers"),
        (_RULES, {}, ""),
        (_RULES, {"RestartAllContainersOnContainerExits": False}, 'action: Unsupported value: "RestartAllContainers"'),
        (_SPREAD, {}, ""),
        (
            _SPREAD,
            {"MatchLabelKeysInPodTopologySpreadSelectorMerge": False},
            "exists in both matchLabelKeys and labelSelector",
        ),
        ({"annotations": {"controller.kubernetes.io/pod-deletion-cost": "x"}}, {}, "must be a 32bit integer"),
        ({"annotations": {"controller.kubernetes.io/pod-deletion-cost": "x"}}, {"PodDeletionCost": False}, ""),
    ],
)
def test_features_decide_what_a_pod_may_say(spec: Object, gates: dict[str, bool], complaint: str) -> None:
    problems = "; ".join(map(str, pod_errors(_pod(**spec), pod_options(feature_gates("v1.36", gates)))))
    assert complaint in problems if complaint else not problems


@pytest.mark.parametrize("spec", [_COMPARING, _MOUNTED, _ON_HOST])
def test_what_a_stored_pod_says_may_stay(spec: Object) -> None:
    assert not pod_update_errors(_pod(**spec), _pod(**spec))
