"""Errors in sources of persistent volumes."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.field import Path
from fakeapiserver.registry.core.volume.persistentvolume import volume_spec_errors

SECRET = {"name": "s", "namespace": "default"}
ISCSI = {"targetPortal": "10.0.0.1:3260", "iqn": "iqn.2015-06.com.example:storage", "lun": 0}
ZONE = {"key": "zone", "operator": "In", "values": ["a"]}


def told(source: dict[str, Any], *, name: str = "pv", inline: bool = False, **rest: Any) -> list[str]:
    spec = {"accessModes": ["ReadWriteOnce"], "volumeMode": "Filesystem", **source, **rest}
    if not inline:
        spec.setdefault("capacity", {"storage": "1Gi"})
    return [str(error) for error in volume_spec_errors(spec, Path("spec"), name, inline=inline)]


@pytest.mark.parametrize(
    "source",
    [
        {"hostPath": {"path": "/x", "type": ""}},
        {"gcePersistentDisk": {"pdName": "d", "partition": 255}},
        {"nfs": {"server": "s", "path": "/x"}},
        {"iscsi": ISCSI},
        {"iscsi": {**ISCSI, "iqn": "eui.0123456789abcdef", "initiatorName": "naa." + "0" * 32}},
        {"quobyte": {"registry": "a:1,[::1]:2", "volume": "v"}},
        {"fc": {"wwids": ["x"]}},
        {"flexVolume": {"driver": "x/y", "options": {"example.com/a": "b"}}},
        {"azureDisk": {"diskName": "d", "diskURI": "/subscriptions/x", "kind": "Managed", "cachingMode": "None"}},
        {"storageos": {"volumeName": "v", "secretRef": SECRET}},
        {"csi": {"driver": "CSI.example.com", "volumeHandle": "h", "nodeExpandSecretRef": SECRET}},
    ],
)
def test_sources_that_are_fine(source: dict[str, Any]) -> None:
    assert told(source) == []


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({}, ["spec: Required value: must specify a volume type"]),
        ({"hostPath": {"path": ""}}, ["spec.hostPath.path: Required value"]),
        ({"hostPath": {"path": "/a/../b"}}, ["spec.hostPath.path: Invalid value: \"/a/../b\": must not contain '..'"]),
        (
            {"gcePersistentDisk": {"pdName": "", "partition": 256}},
            [
                "spec.persistentDisk.pdName: Required value",
                "spec.persistentDisk.partition: Invalid value: 256: must be between 1 and 255, inclusive",
            ],
        ),
        ({"nfs": {"server": "s", "path": "x"}}, ['spec.nfs.path: Invalid value: "x": must be an absolute path']),
        ({"iscsi": {**ISCSI, "iqn": "x"}}, ['spec.iscsi.iqn: Invalid value: "x": must be valid format']),
        ({"iscsi": {**ISCSI, "iqn": "iqn.1"}}, ['spec.iscsi.iqn: Invalid value: "iqn.1": must be valid format']),
        ({"iscsi": {**ISCSI, "chapAuthSession": True}}, ["spec.iscsi.secretRef: Required value"]),
        (
            {"iscsi": {**ISCSI, "lun": 256}},
            ["spec.iscsi.lun: Invalid value: 256: must be between 0 and 255, inclusive"],
        ),
        (
            {"flocker": {"datasetName": "a/b", "datasetUUID": "u"}},
            [
                'spec.flocker: Invalid value: "resource": datasetName and datasetUUID can not be specified simultaneously',
                "spec.flocker.datasetName: Invalid value: \"a/b\": must not contain '/'",
            ],
        ),
        (
            {"quobyte": {"registry": "::1:2", "volume": "v"}},
            [
                'spec.quobyte.registry: Invalid value: "::1:2": must be a host:port pair or multiple pairs separated by '
                "commas"
            ],
        ),
        ({"fc": {"targetWWNs": ["x"]}}, ["spec.fc.lun: Required value: lun is required if targetWWNs is specified"]),
        (
            {"flexVolume": {"driver": "x", "options": {"A.K8s.io/x": ""}}},
            [
                'spec.flexVolume.options[A.K8s.io/x]: Invalid value: "A.K8s.io/x": kubernetes.io and k8s.io namespaces are '
                "reserved"
            ],
        ),
        (
            {"cinder": {"volumeID": "v", "secretRef": {"name": "s"}}},
            ["spec.cinder.secretRef.namespace: Required value"],
        ),
        ({"csi": {"driver": "", "volumeHandle": "h"}}, ["spec.csi.driver: Required value"]),
        (
            {"csi": {"driver": "d", "volumeHandle": "h", "nodePublishSecretRef": {"name": "s"}}},
            ["spec.csi.nodePublishSecretRef.namespace: Required value"],
        ),
        ({"local": {"path": "/x"}}, ["spec.nodeAffinity: Required value: Local volume requires node affinity"]),
        (
            {"nfs": {"server": "s", "path": "/x"}, "cephfs": {}, "flexVolume": {"driver": "x"}},
            ["spec.cephFS: Forbidden: may not specify more than 1 volume type"],
        ),
    ],
)
def test_sources_that_are_refused(source: dict[str, Any], expected: list[str]) -> None:
    assert told(source) == expected


def test_a_root_can_not_be_recycled() -> None:
    assert told({"hostPath": {"path": "/a/.."}}, persistentVolumeReclaimPolicy="Recycle") == [
        "spec.hostPath.path: Invalid value: \"/a/..\": must not contain '..'",
        "spec.persistentVolumeReclaimPolicy: Forbidden: may not be 'recycle' for a hostPath mount of '/'",
    ]


@pytest.mark.parametrize(("name", "refused"), [("p" * 50, False), ("p" * 51, True)])
def test_an_initiators_volume_and_portal_fit_into_64_characters(name: str, refused: bool) -> None:
    initiator = {**ISCSI, "initiatorName": "iqn.2015-06.com.example:i"}
    assert bool(told({"iscsi": initiator}, name=name)) is refused


@pytest.mark.parametrize(
    ("expression", "expected"),
    [
        (ZONE, []),
        ({**ZONE, "operator": "Gt", "values": ["1"]}, []),
        ({**ZONE, "operator": "Gt"}, []),
        (
            {**ZONE, "operator": "Exists"},
            ["values: Forbidden: may not be specified when `operator` is 'Exists' or 'DoesNotExist'"],
        ),
        ({**ZONE, "values": []}, ["values: Required value: must be specified when `operator` is 'In' or 'NotIn'"]),
        ({**ZONE, "operator": "x"}, ['operator: Invalid value: "x": not a valid selector operator']),
    ],
)
def test_nodes_of_a_volume(expression: dict[str, Any], expected: list[str]) -> None:
    affinity = {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}}
    at = "spec.nodeAffinity.required.nodeSelectorTerms[0].matchExpressions[0]."
    assert told({"local": {"path": "/x"}}, nodeAffinity=affinity) == [at + text for text in expected]


def test_an_attachments_own_volume_is_csi_and_says_little() -> None:
    assert told({"csi": {"driver": "d", "volumeHandle": "h"}}, inline=True) == []
    nfs = {"nfs": {"server": "s", "path": "/x"}}
    assert told(nfs, inline=True, claimRef={}, storageClassName="x", persistentVolumeReclaimPolicy="Delete") == [
        "spec.claimRef: Forbidden: may not be specified in the context of inline volumes",
        "spec.csi: Required value: has to be specified in the context of inline volumes",
        "spec.persistentVolumeReclaimPolicy: Forbidden: may only be Retain in the context of inline volumes",
        "spec.storageClassName: Forbidden: may not be specified in the context of inline volumes",
    ]
