"""Named formats (upstream: k8s.io/apiserver/pkg/cel/library/format.go)."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import ClassVar, Final

from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.go.url import request_uri_problem
from fakeapiserver.apimachinery.schema.formats import FORMATS
from fakeapiserver.languages.cel.types import Type, struct
from fakeapiserver.languages.cel.values import NONE, Optional


@dataclass(frozen=True, slots=True)
class Format:
    """`regex_size` is what its cost is reckoned by."""

    cel_type: ClassVar[Type] = struct("kubernetes.NamedFormat")
    name: str
    problems: Callable[[str], list[str]] = field(compare=False)
    regex_size: int = field(compare=False)


def _strfmt(name: str, problem: str) -> Callable[[str], list[str]]:
    return lambda text: [] if FORMATS[name](text) else [problem]


NAMED_FORMATS: Final = {
    "dns1123Label": Format("DNS1123Label", lambda text: names.name_is_dns_label(text, False), 30),
    "dns1123Subdomain": Format("DNS1123Subdomain", lambda text: names.name_is_dns_subdomain(text, False), 60),
    "dns1035Label": Format("DNS1035Label", lambda text: names.name_is_dns1035_label(text, False), 30),
    "qualifiedName": Format("QualifiedName", names.is_qualified_name, 60),
    "dns1123LabelPrefix": Format("DNS1123LabelPrefix", lambda text: names.name_is_dns_label(text, True), 30),
    "dns1123SubdomainPrefix": Format(
        "DNS1123SubdomainPrefix", lambda text: names.name_is_dns_subdomain(text, True), 60
    ),
    "dns1035LabelPrefix": Format("DNS1035LabelPrefix", lambda text: names.name_is_dns1035_label(text, True), 30),
    "labelValue": Format("LabelValue", names.is_valid_label_value, 40),
    "uri": Format("URI", lambda text: [problem] if (problem := request_uri_problem(text)) else [], 1103),
    "uuid": Format("uuid", _strfmt("uuid", "does not match the UUID format"), 70),
    "byte": Format("byte", _strfmt("byte", "invalid base64"), 84),
    "date": Format("date", _strfmt("date", "invalid date"), 71),
    "datetime": Format("datetime", _strfmt("datetime", "invalid datetime"), 71),
}


def validated(a: Format, text: str) -> Optional:
    problems = list(map(str, a.problems(text)))
    return Optional(True, problems) if problems else NONE
