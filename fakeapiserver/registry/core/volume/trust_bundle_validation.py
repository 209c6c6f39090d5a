"""Projected volumes with a signer's certificates (`clusterTrustBundle`, the gate ClusterTrustBundleProjection).

Upstream: pkg/apis/core/validation/validation.go (validateProjectionSources).
"""

from collections.abc import Callable

from fakeapiserver.apimachinery import field
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object
from fakeapiserver.apis.internal_form import internal_form, selector_form
from fakeapiserver.registry.certificates.clustertrustbundle import bundle_name_problems
from fakeapiserver.registry.certificates.signer_name import signer_name_errors
from fakeapiserver.registry.core.field_formats import local_path_errors
from fakeapiserver.registry.generic.label_selector import label_selector_errors


def trust_bundle_errors(source: Object, path: Path, taken: Callable[[str], ErrorList]) -> ErrorList:
    """The errors in a projected trust bundle. `taken` reports a path in the volume that another source has already."""
    file_path, at = source.get("path", ""), path.child("path")
    errors = _choice_errors(source, path)
    if not file_path:
        errors.append(field.required(at))
    return errors + local_path_errors(file_path, at) + taken(file_path)


def _choice_errors(source: Object, path: Path) -> ErrorList:
    """The errors in the choice of a bundle: by its name, or by its signer's name."""
    name, signer, selector = (source.get(key) for key in ("name", "signerName", "labelSelector"))
    if name is not None and signer is not None:
        go_form = internal_form(source, "ClusterTrustBundleProjection")
        return [field.invalid(path, go_form, "only one of name and signerName may be used")]
    at = path.child("labelSelector")
    if name is not None:
        errors = _name_errors(name, path.child("name"))
        if selector is not None:
            go_form = selector_form(selector)
            errors.append(field.invalid(at, go_form, "labelSelector must be unset if name is specified"))
        return errors
    if signer is not None:
        signer_path = path.child("signerName")
        errors = [] if signer else [field.required(signer_path, "must be a valid signer name")]
        return errors + signer_name_errors(signer, signer_path) + label_selector_errors(selector, at)
    return [field.required(path, "either name or signerName must be specified")]


def _name_errors(name: str, path: Path) -> ErrorList:
    errors = [] if name else [field.required(path, "must be a valid object name")]
    signer = name.rpartition(":")[0].replace(":", "/")
    problems = bundle_name_problems(name, False, signer)
    return errors + [field.invalid(path, name, f"not a valid clustertrustbundlename: {text}") for text in problems]
