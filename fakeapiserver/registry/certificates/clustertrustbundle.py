"""Bundles of certificate authorities that a signer has, or that anyone may name.

Upstream: pkg/registry/certificates/clustertrustbundle/strategy.go, pkg/apis/certificates/validation/validation.go,
pkg/apis/core/validation/names.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.certificates.pem import Block, blocks
from fakeapiserver.registry.certificates.signer_name import signer_name_errors
from fakeapiserver.registry.generic.label_selector import immutable_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.strategy_facts import NameFunction
from fakeapiserver.registry.generic.table_cells import or_none
from fakeapiserver.transport import x509_certificate

_SIGNER: Final = Path("spec").child("signerName")
_BUNDLE: Final = Path("spec").child("trustBundle")
_MAX_BUNDLE: Final = 1024 * 1024


class ClusterTrustBundleStrategy(Strategy, kw_only=True):
    def name_rule(self, obj: Object) -> NameFunction:
        """A signer's bundles begin with its name."""
        signer = obj["spec"].get("signerName", "")
        return lambda name, prefix: bundle_name_problems(name, prefix, signer)

    def validate(self, obj: Object) -> ErrorList:
        return _signer_errors(obj) + _bundle_errors(obj["spec"].get("trustBundle", ""))

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        now, then = (item["spec"].get("signerName", "") for item in (obj, old))
        return immutable_errors(now, then, _SIGNER)

    def validate_immutable(self, obj: Object, old: Object) -> ErrorList:
        """An unchanged bundle isn't checked again."""
        now, then = (item["spec"].get("trustBundle", "") for item in (obj, old))
        return _signer_errors(obj) + ([] if now == then else _bundle_errors(now))

    def table_row(self, obj: Object, now: float) -> Cells:
        return [metadata(obj).get("name", ""), or_none((obj.get("spec") or {}).get("signerName"))]


def bundle_name_problems(name: str, prefix: bool, signer: str) -> list[str]:
    if not signer:
        if ":" in name:
            return ['ClusterTrustBundle without signer name must not have ":" in its name']
        return names.name_is_dns_subdomain(name, prefix)
    begins = f"{signer.replace('/', ':')}:"
    if not name.startswith(begins):
        return [f"ClusterTrustBundle for signerName {signer} must be named with prefix {begins}"]
    return names.name_is_dns_subdomain(name.removeprefix(begins), prefix)


def _signer_errors(obj: Object) -> ErrorList:
    signer = obj["spec"].get("signerName", "")
    return signer_name_errors(signer, _SIGNER) if signer else []


def _bundle_errors(bundle: str) -> ErrorList:
    if len(bundle.encode()) > _MAX_BUNDLE:
        return [field.too_long(_BUNDLE, _MAX_BUNDLE)]
    pem_blocks = list(blocks(bundle))
    problems = [f"entry {i} {problem}" for i, block in enumerate(pem_blocks) if (problem := _authority_problem(block))]
    if not problems and not pem_blocks:
        problems = ["at least one trust anchor must be provided"]
    if not problems:
        places: dict[bytes, list[int]] = {}
        for i, block in enumerate(pem_blocks):
            places.setdefault(block.content, []).append(i)
        twice = (where for where in places.values() if len(where) > 1)
        problems = [f"duplicate trust anchor (indices [{' '.join(map(str, where))}])" for where in twice]
    return [field.invalid(_BUNDLE, "<value omitted>", problem) for problem in problems]


def _authority_problem(block: Block) -> str:
    from cryptography import x509

    if block.kind != "CERTIFICATE":
        return f"has bad block type: {block.kind}"
    if block.has_headers:
        return "has PEM block headers"
    try:
        constraints = (
            x509_certificate.parsed(block.content).extensions.get_extension_for_class(x509.BasicConstraints).value
        )
    except x509.ExtensionNotFound:
        return "does not have the CA bit set"
    except ValueError:
        return "does not parse as X.509"
    return "" if constraints.ca else "does not have the CA bit set"
