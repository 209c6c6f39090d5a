"""Validation of a pod's volumes, variables, probes, mounts, affinity and names, and of the changes of a gated pod."""

from copy import deepcopy
from typing import Any

import pytest

from fakeapiserver.registry.core.pod.validation import pod_errors, pod_update_errors

Json = dict[str, Any]
FIELD = {"apiVersion": "v1", "fieldPath": "metadata.name"}
TERM = {"matchExpressions": [{"key": "zone", "operator": "In", "values": ["a"]}]}
REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"


def container(name: str = "c", **more: Any) -> Json:
    return {"name": name, "image": "i", "terminationMessagePolicy": "File", "imagePullPolicy": "Always", **more}


def pod(**spec: Any) -> Json:
    own = {"restartPolicy": "Always", "dnsPolicy": "ClusterFirst", "terminationGracePeriodSeconds": 30}
    return {"metadata": {"name": "p"}, "spec": {**own, "containers": [container()], **spec}}


def of_container(**more: Any) -> Json:
    return pod(containers=[container(**more)], volumes=[{"name": "v", "emptyDir": {}}])


def with_volume(**source: Any) -> Json:
    return pod(volumes=[{"name": "v", **source}])


def projected(*sources: Json) -> Json:
    return with_volume(projected={"sources": list(sources)})


def affine(kind: str, **terms: Any) -> Json:
    return pod(affinity={kind: terms})


def told(new: Json) -> str:
    return "; ".join(str(error) for error in pod_errors(new))


@pytest.mark.parametrize(
    ("new", "complaint"),
    [
        (with_volume(hostPath={"path": "../x"}), 'spec.volumes[0].hostPath.path: Invalid value: "../x": must not'),
        (with_volume(hostPath={"path": "/x", "type": "Pipe"}), '"FileOrCreate", "Socket"'),
        (with_volume(gcePersistentDisk={"pdName": "d", "partition": 256}), "persistentDisk.partition"),
        (with_volume(nfs={"server": "s", "path": "x"}), "must be an absolute path"),
        (with_volume(iscsi={"targetPortal": "p", "iqn": "x", "lun": 0}), "starting with iqn, eui, or naa"),
        (with_volume(iscsi={"targetPortal": "p", "iqn": "iqn.x", "lun": 256}), "must be valid format; spec"),
        (with_volume(iscsi={"targetPortal": "p" * 64, "iqn": "eui.0", "initiatorName": "i"}), "Total length of"),
        (with_volume(flocker={}), "one of datasetName and datasetUUID is required"),
        (with_volume(flocker={"datasetName": "a/b", "datasetUUID": "u"}), "can not be specified simultaneously"),
        (with_volume(fc={"targetWWNs": ["a"]}), "lun is required if targetWWNs is specified"),
        (with_volume(quobyte={"registry": "a", "volume": "v"}), "must be a host:port pair"),
        (with_volume(flexVolume={"driver": "d", "options": {"x.k8s.io/a": "b"}}), "namespaces are reserved"),
        (with_volume(azureDisk={"diskName": "d", "diskURI": "u", "kind": "Managed"}), "/subscriptions/{sub-id}/"),
        (with_volume(storageos={"volumeName": "A"}), "volumeName: Invalid value"),
        (with_volume(csi={"driver": "x" * 64}), "driver: Too long: may not be more than 63 bytes"),
        (with_volume(configMap={"name": "c", "items": [{"key": "k", "path": "..x"}]}), "must not start with '..'"),
        (with_volume(secret={"secretName": "s", "items": [{"path": "a", "mode": 512}]}), "items[0].mode: Invalid"),
        (with_volume(downwardAPI={"items": [{"path": "a"}]}), "downwardAPI: Required value: one of fieldRef and"),
        (
            with_volume(downwardAPI={"items": [{"path": "a", "resourceFieldRef": {"resource": "limits.cpu"}}]}),
            "downwardAPI.resourceFieldRef.containerName: Required value",
        ),
        (projected({"secret": {}, "configMap": {"name": "c"}}), "may not specify more than 1 volume type per source"),
        (
            projected(*[{"downwardAPI": {"items": [{"path": "a", "fieldRef": FIELD}]}}] * 2),
            'projected: Invalid value: "a": conflicting duplicate paths',
        ),
        (projected({"serviceAccountToken": {"path": "t", "expirationSeconds": 5}}), "less than 10 minutes"),
        (
            with_volume(ephemeral={"volumeClaimTemplate": {"metadata": {"name": "x"}, "spec": {}}}),
            "volumeClaimTemplate.metadata.name: Forbidden: cannot be set",
        ),
        (
            pod(
                volumes=[
                    {"name": "v", "ephemeral": {}},
                    {"name": "w", "persistentVolumeClaim": {"claimName": "p-v"}},
                ]
            ),
            "must not reference a PVC that gets created for an ephemeral volume",
        ),
        (with_volume(image={"pullPolicy": "Always"}), "image.reference: Required value"),
        (with_volume(emptyDir={}, cephfs={}), "spec.volumes[0].cephFS: Forbidden: may not specify more than 1 volume"),
    ],
)
def test_volumes(new: Json, complaint: str) -> None:
    assert complaint in told(new)


@pytest.mark.parametrize(
    ("new", "complaint"),
    [
        (of_container(env=[{"name": "a=b"}]), "printable ASCII characters other than '='"),
        (of_container(env=[{"name": "A", "valueFrom": {}}]), "`secretKeyRef` or `fileKeyRef`"),
        (
            of_container(env=[{"name": "A", "value": "b", "valueFrom": {"fieldRef": FIELD}}]),
            "may not be specified when `value` is not empty",
        ),
        (
            of_container(
                env=[{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "status.phase"}}}]
            ),
            'Unsupported value: "status.phase": supported values: "metadata.name"',
        ),
        (
            of_container(
                env=[{"name": "A", "valueFrom": {"fieldRef": {"apiVersion": "v1", "fieldPath": "spec['a']"}}}]
            ),
            "field label does not support subscript: spec['a']",
        ),
        (
            of_container(
                env=[{"name": "A", "valueFrom": {"resourceFieldRef": {"resource": "limits.cpu", "divisor": "2"}}}]
            ),
            "only divisor's values 1m and 1 are supported with the cpu resource",
        ),
        (
            of_container(
                env=[{"name": "A", "valueFrom": {"fileKeyRef": {"volumeName": "w", "path": "p", "key": "k"}}}]
            ),
            'fileKeyRef.volumeName: Not found: "w"',
        ),
        (of_container(envFrom=[{}]), "spec.containers[0].envFrom: Invalid value"),
        (of_container(envFrom=[{"configMapRef": {"name": "A"}}]), "envFrom[0].configMapRef.name: Invalid value"),
        (of_container(volumeMounts=[{"name": "v", "mountPath": "/a", "subPath": "/x"}]), "must be a relative path"),
        (
            of_container(volumeMounts=[{"name": "v", "mountPath": "/a", "subPath": "x", "subPathExpr": "y"}]),
            "subPathExpr and subPath are mutually exclusive",
        ),
        (
            of_container(volumeMounts=[{"name": "v", "mountPath": "/a", "mountPropagation": "Bidirectional"}]),
            "volumeMounts.mountPropagation: Forbidden: Bidirectional mount propagation is available only",
        ),
        (
            of_container(volumeMounts=[{"name": "v", "mountPath": "/a", "recursiveReadOnly": "Enabled"}]),
            "may only be specified when readOnly is true",
        ),
        (of_container(volumeDevices=[{"name": "v", "devicePath": "/d"}]), "can only use volume source type of Persi"),
        (of_container(volumeDevices=[{"name": "w", "devicePath": "../d"}]), "can not contain backsteps ('..')"),
        (of_container(readinessProbe={}), "readinessProbe: Required value: must specify a handler type"),
        (
            of_container(readinessProbe={"exec": {"command": ["x"]}, "terminationGracePeriodSeconds": 1}),
            "must not be set for readinessProbes",
        ),
        (
            of_container(
                livenessProbe={
                    "httpGet": {"path": "/", "port": 1, "scheme": "HTTP", "httpHeaders": [{"name": "a b"}]},
                    "successThreshold": 1,
                }
            ),
            "a valid HTTP header must consist of alphanumeric characters or '-'",
        ),
        (
            of_container(lifecycle={"preStop": {"sleep": {"seconds": 31}}}),
            "less than terminationGracePeriodSeconds (30)",
        ),
        (of_container(restartPolicyRules=[{"action": "Stop"}]), 'supported values: "Restart", "RestartAllContainers"'),
        (of_container(restartPolicy="Sometimes"), 'supported values: "Always", "Never", "OnFailure"'),
        (
            of_container(resizePolicy=[{"resourceName": "gpu", "restartPolicy": ""}]),
            'supported values: "cpu", "memory"',
        ),
        (of_container(resources={"claims": [{"name": "x"}]}), "in pod.spec.resourceClaims which is empty"),
        (of_container(resources={"limits": {"Bad": "1"}}), "must be a standard resource for containers"),
        (
            pod(
                initContainers=[
                    container("i", resizePolicy=[{"resourceName": "cpu", "restartPolicy": "RestartContainer"}])
                ]
            ),
            "must not be set to 'RestartContainer' for non-sidecar initContainers",
        ),
    ],
)
def test_containers(new: Json, complaint: str) -> None:
    assert complaint in told(new)


@pytest.mark.parametrize(
    ("new", "complaint"),
    [
        (affine("nodeAffinity", **{REQUIRED: {}}), "must have at least one node selector term"),
        (
            affine(
                "nodeAffinity", **{REQUIRED: {"nodeSelectorTerms": [{"matchFields": [{"key": "l", "operator": "In"}]}]}}
            ),
            'matchFields[0].key: Invalid value: "l": not a valid field selector key',
        ),
        (affine("podAffinity", **{REQUIRED: [{}]}), "topologyKey: Required value: can not be empty"),
        (
            affine("podAntiAffinity", **{REQUIRED: [{"topologyKey": "z", "matchLabelKeys": ["a"]}]}),
            "matchLabelKeys: Forbidden: must not be specified when labelSelector is not set",
        ),
        (
            pod(topologySpreadConstraints=[{"maxSkew": 0, "topologyKey": "z", "whenUnsatisfiable": "DoNotSchedule"}]),
            "maxSkew: Invalid value: 0: must be greater than zero",
        ),
        (pod(dnsPolicy="None"), "must provide `dnsConfig` when `dnsPolicy` is None"),
        (pod(dnsConfig={"nameservers": ["x"], "searches": ["A"]}), "'_', '-' or '.', and must start and end"),
        (pod(hostAliases=[{"ip": "1.2.3", "hostnames": ["A"]}]), "hostAliases[0].hostnames[0]: Invalid value"),
        (pod(hostnameOverride="a", setHostnameAsFQDN=True), "may not be specified when setHostnameAsFQDN is true"),
        (pod(readinessGates=[{"conditionType": ""}]), "readinessGates[0].conditionType: Invalid value"),
        (pod(schedulingGates=[{"name": "a"}, {"name": "a"}]), 'schedulingGates[1]: Duplicate value: "a"'),
        (pod(resourceClaims=[{"name": "d"}]), '{"Name":"d","ResourceClaimName":null,"ResourceClaimTemplateName":null}'),
        (pod(priorityClassName="A"), "priorityClassName: Invalid value"),
        (pod(runtimeClassName=""), "runtimeClassName: Invalid value"),
        (pod(preemptionPolicy="x"), 'supported values: "PreemptLowerPriority", "Never"'),
        (pod(overhead={"x": "1"}), "spec.overhead.limits[x]"),
        (
            pod(securityContext={"windowsOptions": {"runAsUserName": "a\\..."}}),
            "runAsUserName's User cannot contain only periods or spaces",
        ),
    ],
)
def test_the_rest_of_a_spec(new: Json, complaint: str) -> None:
    assert complaint in told(new)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"nodeSelector": {"disk": "ssd", "zone": "a"}}, ""),
        ({"nodeSelector": {"disk": "hdd"}}, "only additions to spec.nodeSelector are allowed"),
        (
            {"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [TERM, TERM]}}}},
            "no additions/deletions to non",
        ),
        ({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{}]}}}}, "only additions are allowed"),
        ({"affinity": {"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [{**TERM, "matchFields": []}]}}}}, ""),
        ({"hostname": "x"}, "pod updates may not change fields other than"),
        ({"activeDeadlineSeconds": -1}, "must be between 0 and 2147483647, inclusive"),
    ],
)
def test_a_waiting_pod_may_ask_for_fewer_nodes(change: Json, complaint: str) -> None:
    gated = pod(
        schedulingGates=[{"name": "g"}],
        nodeSelector={"disk": "ssd"},
        affinity={"nodeAffinity": {REQUIRED: {"nodeSelectorTerms": [TERM]}}},
    )
    new = deepcopy(gated)
    new["spec"] |= change
    problems = "; ".join(str(error) for error in pod_update_errors(new, gated))
    assert complaint in problems if complaint else not problems
