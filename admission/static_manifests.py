"""Policies and webhooks in files that a plugin's configuration names (the gate ManifestBasedAdmissionControlConfig).
Such a folder is
checked and logged, and not read.

Upstream: k8s.io/apiserver/pkg/admission/plugin/manifest/validation.go.
"""

import logging
from pathlib import Path
from stat import S_ISDIR
from typing import Final

from fakeapiserver.apimachinery.field import forbidden, invalid
from fakeapiserver.apis.feature_gates import FeatureGates

log = logging.getLogger(__name__)

FIELD: Final = "staticManifestsDir"
_GATE: Final = "ManifestBasedAdmissionControlConfig"


def check(folder: str, features: FeatureGates) -> None:
    """ValueError for a folder that can't be one, or while the gate is off; nothing is said of none."""
    if not folder:
        return
    if not features.enabled(_GATE):
        raise ValueError(str(forbidden(FIELD, f"{FIELD} requires the {_GATE} feature gate to be enabled")))
    if not folder.startswith("/"):
        raise ValueError(str(invalid(FIELD, folder, "must be an absolute file path")))
    try:
        is_folder = S_ISDIR(Path(folder).stat().st_mode)
    except OSError as error:
        why = (error.strerror or "").lower()
        raise ValueError(str(invalid(FIELD, folder, f"unable to read: stat {folder}: {why}"))) from None
    if not is_folder:
        raise ValueError(str(invalid(FIELD, folder, "must be a directory")))
    log.warning("%s %s is not read here", FIELD, folder)
