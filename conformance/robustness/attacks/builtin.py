"""Attacks with the lists of the other built-in kinds, each as long as a body allows."""

from base64 import b64encode
from collections.abc import Callable, Iterator
from typing import Final

from conformance.robustness.attacks.attack import BODY, Attack, Object, filled, named, pairs, posted

_NAMESPACED: Final = "/api/v1/namespaces/default"
_ADMISSION: Final = "/apis/admissionregistration.k8s.io/v1"
_RBAC: Final = "/apis/rbac.authorization.k8s.io/v1"
_NETWORKING: Final = "/apis/networking.k8s.io/v1"
_CONFIGMAPS: Final = f"{_NAMESPACED}/configmaps"
_TEMPLATE: Final = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
_SELECTOR: Final = {"matchLabels": {"a": "b"}}
_BACKEND: Final = {"service": {"name": "s", "port": {"number": 80}}}


def _address(number: int) -> str:
    return f"10.{number >> 16 & 255}.{number >> 8 & 255}.{number & 255}"


def _path(number: int) -> Object:
    return {"path": f"/p{number}", "pathType": "Prefix", "backend": _BACKEND}


def _rule(number: int) -> Object:
    return {"apiGroups": [""], "resources": [f"r{number}"], "verbs": ["get"]}


def _subject(number: int) -> Object:
    return {"kind": "User", "name": f"u{number}", "apiGroup": "rbac.authorization.k8s.io"}


def _webhook(number: int) -> Object:
    config = {"url": "https://example.com/"}
    return {
        "name": f"w{number}.example.com",
        "clientConfig": config,
        "sideEffects": "None",
        "admissionReviewVersions": ["v1"],
    }


def _taint(number: int) -> Object:
    return {"key": f"k{number}", "effect": "NoSchedule"}


def _metric(number: int) -> Object:
    target = {"type": "Utilization", "averageUtilization": 50}
    return {
        "type": "ContainerResource",
        "containerResource": {"name": "cpu", "container": f"c{number}", "target": target},
    }


def _expression(number: int) -> Object:
    return {"key": f"k{number}", "operator": "Exists"}


def _validation(number: int) -> Object:
    return {"expression": f"object.metadata.name != 'n{number}'"}


_CERTIFICATE: Final = "-----BEGIN CERTIFICATE-----\nMAA=\n-----END CERTIFICATE-----\n"
# What follows a colon distinguishes attacks on the same kind. Path, kind, and the parts of an object beside its metadata.
_Parts = Callable[[], Object]
_OBJECTS: Final[dict[str, tuple[str, str, str, _Parts]]] = {
    "configmap: data": (_CONFIGMAPS, "v1", "ConfigMap", lambda: {"data": pairs(lambda i: (f"k{i}", ""))}),
    "configmap: data, wrongly typed": (_CONFIGMAPS, "v1", "ConfigMap", lambda: {"data": pairs(lambda i: (f"k{i}", i))}),
    "configmap: binaryData": (
        _CONFIGMAPS,
        "v1",
        "ConfigMap",
        lambda: {"binaryData": pairs(lambda i: (f"k{i}", "AA=="))},
    ),
    "configmap: a text of line breaks": (_CONFIGMAPS, "v1", "ConfigMap", lambda: {"data": {"k": "\n" * (BODY // 2)}}),
    "configmap: an invalid key of 3 MB": (
        _CONFIGMAPS,
        "v1",
        "ConfigMap",
        lambda: {"data": {"\u00e9" * (BODY // 6): ""}},
    ),
    "configmap: an unknown field of 3 MB": (_CONFIGMAPS, "v1", "ConfigMap", lambda: {"\u00e9" * (BODY // 6): 1}),
    "configmap: unknown fields": (_CONFIGMAPS, "v1", "ConfigMap", lambda: pairs(lambda i: (f"k{i}", ""))),
    "secret: data": (f"{_NAMESPACED}/secrets", "v1", "Secret", lambda: {"data": pairs(lambda i: (f"k{i}", "AA=="))}),
    "secret: certificates": (
        f"{_NAMESPACED}/secrets",
        "v1",
        "Secret",
        lambda: {
            "type": "kubernetes.io/tls",
            "stringData": {"tls.crt": _CERTIFICATE * 15_000, "tls.key": _CERTIFICATE},
        },
    ),
    "secret: registries": (
        f"{_NAMESPACED}/secrets",
        "v1",
        "Secret",
        lambda: {
            "type": "kubernetes.io/dockerconfigjson",
            "data": {".dockerconfigjson": b64encode(b'{"":[%b{}]}' % (b"{}," * (BODY // 4))).decode()},
        },
    ),
    "secret: stringData": (
        f"{_NAMESPACED}/secrets",
        "v1",
        "Secret",
        lambda: {"stringData": pairs(lambda i: (f"k{i}", "a"))},
    ),
    "service: ports": (
        f"{_NAMESPACED}/services",
        "v1",
        "Service",
        lambda: {"spec": {"ports": filled(lambda i: {"name": f"p{i}", "port": i % 65535 + 1})}},
    ),
    "service: ports, all the same": (
        f"{_NAMESPACED}/services",
        "v1",
        "Service",
        lambda: {"spec": {"ports": filled(lambda i: {"port": 80})}},
    ),
    "service: node ports": (
        f"{_NAMESPACED}/services?dryRun=All",
        "v1",
        "Service",
        lambda: {"spec": {"type": "NodePort", "ports": filled(lambda i: {"name": f"p{i}", "port": i % 65535 + 1})}},
    ),
    "service: externalIPs": (
        f"{_NAMESPACED}/services",
        "v1",
        "Service",
        lambda: {"spec": {"ports": [{"port": 80}], "externalIPs": filled(_address)}},
    ),
    "service: loadBalancerSourceRanges": (
        f"{_NAMESPACED}/services",
        "v1",
        "Service",
        lambda: {
            "spec": {
                "type": "LoadBalancer",
                "ports": [{"port": 80}],
                "loadBalancerSourceRanges": filled(lambda i: f"{_address(i)}/32"),
            }
        },
    ),
    "endpoints: addresses": (
        f"{_NAMESPACED}/endpoints",
        "v1",
        "Endpoints",
        lambda: {"subsets": [{"addresses": filled(lambda i: {"ip": _address(i)}), "ports": [{"port": 80}]}]},
    ),
    "endpoints: subsets": (
        f"{_NAMESPACED}/endpoints",
        "v1",
        "Endpoints",
        lambda: {"subsets": filled(lambda i: {"addresses": [{"ip": _address(i)}], "ports": [{"port": i % 65535 + 1}]})},
    ),
    "endpointslice: endpoints": (
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        "discovery.k8s.io/v1",
        "EndpointSlice",
        lambda: {"addressType": "IPv4", "endpoints": filled(lambda i: {"addresses": [_address(i)]})},
    ),
    "endpointslice: addresses": (
        "/apis/discovery.k8s.io/v1/namespaces/default/endpointslices",
        "discovery.k8s.io/v1",
        "EndpointSlice",
        lambda: {"addressType": "IPv4", "endpoints": [{"addresses": filled(_address)}]},
    ),
    "ingress: rules": (
        f"{_NETWORKING}/namespaces/default/ingresses",
        "networking.k8s.io/v1",
        "Ingress",
        lambda: {"spec": {"rules": filled(lambda i: {"host": f"h{i}.example.com", "http": {"paths": [_path(i)]}})}},
    ),
    "ingress: paths": (
        f"{_NETWORKING}/namespaces/default/ingresses",
        "networking.k8s.io/v1",
        "Ingress",
        lambda: {"spec": {"rules": [{"http": {"paths": filled(_path)}}]}},
    ),
    "ingress: tls hosts": (
        f"{_NETWORKING}/namespaces/default/ingresses",
        "networking.k8s.io/v1",
        "Ingress",
        lambda: {"spec": {"defaultBackend": _BACKEND, "tls": [{"hosts": filled(lambda i: f"h{i}.example.com")}]}},
    ),
    "networkpolicy: peers": (
        f"{_NETWORKING}/namespaces/default/networkpolicies",
        "networking.k8s.io/v1",
        "NetworkPolicy",
        lambda: {
            "spec": {
                "podSelector": {},
                "ingress": [{"from": filled(lambda i: {"ipBlock": {"cidr": f"{_address(i)}/32"}})}],
            }
        },
    ),
    "networkpolicy: ports": (
        f"{_NETWORKING}/namespaces/default/networkpolicies",
        "networking.k8s.io/v1",
        "NetworkPolicy",
        lambda: {"spec": {"podSelector": {}, "egress": [{"ports": filled(lambda i: {"port": i % 65535 + 1})}]}},
    ),
    "networkpolicy: exceptions": (
        f"{_NETWORKING}/namespaces/default/networkpolicies",
        "networking.k8s.io/v1",
        "NetworkPolicy",
        lambda: {
            "spec": {
                "podSelector": {},
                "ingress": [
                    {"from": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": filled(lambda i: f"{_address(i)}/32")}}]}
                ],
            }
        },
    ),
    "role: rules": (
        f"{_RBAC}/namespaces/default/roles",
        "rbac.authorization.k8s.io/v1",
        "Role",
        lambda: {"rules": filled(_rule)},
    ),
    "role: verbs": (
        f"{_RBAC}/namespaces/default/roles",
        "rbac.authorization.k8s.io/v1",
        "Role",
        lambda: {"rules": [{"apiGroups": [""], "resources": filled(lambda i: f"r{i}"), "verbs": ["get"]}]},
    ),
    "clusterrole: aggregation": (
        f"{_RBAC}/clusterroles",
        "rbac.authorization.k8s.io/v1",
        "ClusterRole",
        lambda: {"aggregationRule": {"clusterRoleSelectors": filled(lambda i: {"matchLabels": {f"k{i}": "v"}})}},
    ),
    "rolebinding: subjects": (
        f"{_RBAC}/namespaces/default/rolebindings",
        "rbac.authorization.k8s.io/v1",
        "RoleBinding",
        lambda: {
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "view"},
            "subjects": filled(_subject),
        },
    ),
    "webhooks": (
        f"{_ADMISSION}/validatingwebhookconfigurations",
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        lambda: {"webhooks": filled(_webhook)},
    ),
    "webhooks: rules": (
        f"{_ADMISSION}/mutatingwebhookconfigurations",
        "admissionregistration.k8s.io/v1",
        "MutatingWebhookConfiguration",
        lambda: {
            "webhooks": [
                {
                    **_webhook(0),
                    "rules": filled(
                        lambda i: {
                            "operations": ["CREATE"],
                            "apiGroups": [f"g{i}"],
                            "apiVersions": ["v1"],
                            "resources": ["r"],
                        }
                    ),
                }
            ]
        },
    ),
    "webhooks: matchConditions": (
        f"{_ADMISSION}/validatingwebhookconfigurations",
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        lambda: {
            "webhooks": [{**_webhook(0), "matchConditions": filled(lambda i: {"name": f"n{i}", "expression": "true"})}]
        },
    ),
    "policy: validations": (
        f"{_ADMISSION}/validatingadmissionpolicies",
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy",
        lambda: {"spec": {"validations": filled(_validation)}},
    ),
    "policy: variables": (
        f"{_ADMISSION}/validatingadmissionpolicies",
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy",
        lambda: {
            "spec": {
                "validations": [{"expression": "true"}],
                "variables": filled(lambda i: {"name": f"v{i}", "expression": "1"}),
            }
        },
    ),
    "policy: one long expression": (
        f"{_ADMISSION}/validatingadmissionpolicies",
        "admissionregistration.k8s.io/v1",
        "ValidatingAdmissionPolicy",
        lambda: {"spec": {"validations": [{"expression": " + ".join(filled(lambda i: "1", BODY // 4)) + " > 0"}]}},
    ),
    "quota: hard": (
        f"{_NAMESPACED}/resourcequotas",
        "v1",
        "ResourceQuota",
        lambda: {"spec": {"hard": pairs(lambda i: (f"count/r{i}.example.com", "1"))}},
    ),
    "limitrange: limits": (
        f"{_NAMESPACED}/limitranges",
        "v1",
        "LimitRange",
        lambda: {"spec": {"limits": filled(lambda i: {"type": "Container", "max": {"cpu": "1"}})}},
    ),
    "flowschema: rules": (
        "/apis/flowcontrol.apiserver.k8s.io/v1/flowschemas",
        "flowcontrol.apiserver.k8s.io/v1",
        "FlowSchema",
        lambda: {
            "spec": {
                "priorityLevelConfiguration": {"name": "global-default"},
                "rules": filled(
                    lambda i: {
                        "subjects": [{"kind": "User", "user": {"name": f"u{i}"}}],
                        "nonResourceRules": [{"verbs": ["get"], "nonResourceURLs": [f"/{i}"]}],
                    }
                ),
            }
        },
    ),
    "autoscaler: metrics": (
        "/apis/autoscaling/v2/namespaces/default/horizontalpodautoscalers",
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        lambda: {
            "spec": {
                "maxReplicas": 3,
                "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "d"},
                "metrics": filled(_metric),
            }
        },
    ),
    "deployment: selector": (
        "/apis/apps/v1/namespaces/default/deployments",
        "apps/v1",
        "Deployment",
        lambda: {"spec": {"selector": {"matchExpressions": filled(_expression)}, "template": _TEMPLATE}},
    ),
    "deployment: environment": (
        "/apis/apps/v1/namespaces/default/deployments",
        "apps/v1",
        "Deployment",
        lambda: {
            "spec": {
                "selector": _SELECTOR,
                "template": {
                    **_TEMPLATE,
                    "spec": {"containers": [{"name": "c", "image": "i", "env": filled(lambda i: {"name": f"N{i}"})}]},
                },
            }
        },
    ),
    "statefulset: claims": (
        "/apis/apps/v1/namespaces/default/statefulsets",
        "apps/v1",
        "StatefulSet",
        lambda: {
            "spec": {
                "selector": _SELECTOR,
                "template": _TEMPLATE,
                "volumeClaimTemplates": filled(
                    lambda i: {"metadata": {"name": f"v{i}"}, "spec": {"accessModes": ["ReadWriteOnce"]}}
                ),
            }
        },
    ),
    "job: failure rules": (
        "/apis/batch/v1/namespaces/default/jobs",
        "batch/v1",
        "Job",
        lambda: {
            "spec": {
                "podFailurePolicy": {
                    "rules": filled(lambda i: {"action": "Count", "onExitCodes": {"operator": "In", "values": [i + 1]}})
                },
                "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}},
            }
        },
    ),
    "cronjob: schedule": (
        "/apis/batch/v1/namespaces/default/cronjobs",
        "batch/v1",
        "CronJob",
        lambda: {
            "spec": {
                "schedule": ",".join(["1-59/1"] * 300_000) + " * * * *",
                "jobTemplate": {
                    "spec": {
                        "template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "c", "image": "i"}]}}
                    }
                },
            }
        },
    ),
    "disruption budget: selector": (
        "/apis/policy/v1/namespaces/default/poddisruptionbudgets",
        "policy/v1",
        "PodDisruptionBudget",
        lambda: {
            "spec": {
                "selector": {"matchExpressions": [{"key": "k", "operator": "In", "values": filled(lambda i: f"v{i}")}]}
            }
        },
    ),
    "node: taints": ("/api/v1/nodes", "v1", "Node", lambda: {"spec": {"taints": filled(_taint)}}),
    "node: podCIDRs": (
        "/api/v1/nodes",
        "v1",
        "Node",
        lambda: {"spec": {"podCIDRs": filled(lambda i: f"{_address(i)}/32")}},
    ),
    "volume: node affinity": (
        "/api/v1/persistentvolumes",
        "v1",
        "PersistentVolume",
        lambda: {
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "hostPath": {"path": "/p"},
                "nodeAffinity": {
                    "required": {"nodeSelectorTerms": filled(lambda i: {"matchExpressions": [_expression(i)]})}
                },
            }
        },
    ),
    "storageclass: topologies": (
        "/apis/storage.k8s.io/v1/storageclasses",
        "storage.k8s.io/v1",
        "StorageClass",
        lambda: {
            "provisioner": "example.com/p",
            "allowedTopologies": filled(lambda i: {"matchLabelExpressions": [{"key": f"k{i}", "values": ["v"]}]}),
        },
    ),
    "csinode: drivers": (
        "/apis/storage.k8s.io/v1/csinodes",
        "storage.k8s.io/v1",
        "CSINode",
        lambda: {"spec": {"drivers": filled(lambda i: {"name": f"d{i}", "nodeID": "n", "topologyKeys": ["a"]})}},
    ),
    "resourceslice: devices": (
        "/apis/resource.k8s.io/v1/resourceslices",
        "resource.k8s.io/v1",
        "ResourceSlice",
        lambda: {
            "spec": {
                "driver": "example.com",
                "nodeName": "n",
                "pool": {"name": "p", "generation": 1, "resourceSliceCount": 1},
                "devices": filled(lambda i: {"name": f"d{i}", "attributes": {"a": {"string": "b"}}}),
            }
        },
    ),
    "access review: groups": (
        "/apis/authorization.k8s.io/v1/subjectaccessreviews",
        "authorization.k8s.io/v1",
        "SubjectAccessReview",
        lambda: {
            "spec": {
                "user": "u",
                "groups": filled(lambda i: f"g{i}"),
                "resourceAttributes": {"verb": "get", "resource": "pods"},
            }
        },
    ),
    "token review: audiences": (
        "/apis/authentication.k8s.io/v1/tokenreviews",
        "authentication.k8s.io/v1",
        "TokenReview",
        lambda: {"spec": {"token": "a.b.c", "audiences": filled(lambda i: f"a{i}")}},
    ),
    "token review: a long token": (
        "/apis/authentication.k8s.io/v1/tokenreviews",
        "authentication.k8s.io/v1",
        "TokenReview",
        lambda: {"spec": {"token": "e30" + "a" * 2_000_000 + "." + "b" * 500_000 + "." + "c" * 400_000}},
    ),
}


def attacks() -> Iterator[Attack]:
    for name, (path, api_version, kind, parts) in _OBJECTS.items():
        yield Attack(
            name,
            posted(path, lambda v=api_version, k=kind, parts=parts: named(v, k, "attack", **parts())),  # type: ignore[misc]
        )
