"""Volume plugins of earlier days whose work is a CSI driver's now.

Upstream: k8s.io/csi-translation-lib/plugins, pkg/volume/csimigration.
"""

from typing import Final

MIGRATED_TO: Final = "pv.kubernetes.io/migrated-to"
# In-tree plugin -> CSI driver.
DRIVERS: Final = {
    "kubernetes.io/aws-ebs": "ebs.csi.aws.com",
    "kubernetes.io/azure-disk": "disk.csi.azure.com",
    "kubernetes.io/azure-file": "file.csi.azure.com",
    "kubernetes.io/cinder": "cinder.csi.openstack.org",
    "kubernetes.io/gce-pd": "pd.csi.storage.gke.io",
    "kubernetes.io/portworx-volume": "pxd.portworx.com",
    "kubernetes.io/vsphere-volume": "csi.vsphere.vmware.com",
}
# Member of a volume's spec -> in-tree plugin.
PLUGINS: Final = {
    "awsElasticBlockStore": "kubernetes.io/aws-ebs",
    "azureDisk": "kubernetes.io/azure-disk",
    "azureFile": "kubernetes.io/azure-file",
    "cinder": "kubernetes.io/cinder",
    "gcePersistentDisk": "kubernetes.io/gce-pd",
    "portworxVolume": "kubernetes.io/portworx-volume",
    "vsphereVolume": "kubernetes.io/vsphere-volume",
}


def annealed(annotations: dict[str, str], provisioner: str | None) -> dict[str, str]:
    """The annotations, with the driver that does the provisioner's work now; the same dict where they are right."""
    if provisioner is None:
        return annotations
    driver = DRIVERS.get(provisioner)
    if annotations.get(MIGRATED_TO, "") == (driver or ""):
        return annotations
    kept = {name: value for name, value in annotations.items() if name != MIGRATED_TO}
    return kept if driver is None else {**kept, MIGRATED_TO: driver}
