"""A body whose spec was seen before is decoded as if it hadn't been, whatever else is in it."""

from typing import Any

import msgspec
import pytest

from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apis.feature_gates import feature_gates
from fakeapiserver.apis.scheme import load
from fakeapiserver.endpoints.negotiation.body import Body
from fakeapiserver.endpoints.negotiation.builtin_body import decode_builtin
from fakeapiserver.registry.core.pod.strategy import PodStrategy
from fakeapiserver.registry.generic.kind import BuiltinKind, KnownSpecs

_POD = GroupVersionKind("", "v1", "Pod")
_GATES = ("PodLevelResources", "InPlacePodLevelResourcesVerticalScaling")
_SPEC = b'{"containers":[{"name":"web","image":"web:1.2","resources":{"limits":{"cpu":"1"}}}]}'


def _mounted(volume: str, mount: str, more: str = "") -> bytes:
    mounts = f'"volumeMounts":[{{"name":"kube-api-access-{mount}","mountPath":"/a"}}]'
    volumes = f'"volumes":[{{"name":"kube-api-access-{volume}","projected":{{"sources":[{{"downwardAPI":{{}}}}]}}}}]'
    return f'{{{more}"containers":[{{"name":"web",{mounts}}}],{volumes}}}'.encode()


def kind(strategy: PodStrategy | None = None) -> BuiltinKind:
    return BuiltinKind(_POD, "io.k8s.api.core.v1.Pod", load().definitions, (strategy or PodStrategy()).default)


def pod(meta: bytes = b'{"name":"a"}', spec: bytes = _SPEC, more: bytes = b"") -> bytes:
    return b'{"apiVersion":"v1","kind":"Pod","metadata":%b,"spec":%b%b}' % (meta, spec, more)


def outcome(data: bytes, kind: BuiltinKind, validation: str = "Warn") -> Any:
    body = Body(
        data=data,
        media_type="application/json",
        kind=kind,
        validation=validation,
        warnings=[],
        recognizes=lambda gvk: None,
        empties={},
    )
    try:
        # as text, so that the order counts
        return msgspec.json.encode(decode_builtin(body)), body.warnings, body.empties
    except StatusError as error:
        return error.status


BODIES = [
    pod(),
    pod(b'{"name":"b","labels":{"a":"b"}}'),
    pod(spec=_mounted("bcdfg", "bcdfg")),
    pod(spec=_mounted("zzzzz", "zzzzz")),
    pod(spec=_mounted("zzzzz", "bcdfg")),
    pod(spec=_mounted("bcdfg", "zzzzz")),
    pod(spec=_mounted("zzzzz", "zzzzz", more='"hostname":"x-kube-api-access-zzzzz",')),
    pod(spec=_mounted("bcdfg", "bcdfg", more='"hostname":"x-kube-api-access-zzzzz",')),
    pod(spec=_mounted("bcdfg", "bcdfg", more='"nodeSelector":{"kube-api-access-zzzzz":"kube-api-access-bcdfg"},')),
    pod(b'{"name":"b","labels":{}}'),
    pod(b'{"name":1}'),
    pod(b'{"name":"b","annotations":{"pod.beta.kubernetes.io/init-containers":"x","a":"b"}}'),
    pod(b'{"name":"b","nmae":"c"}'),
    pod(b"null"),
    pod(spec=b"{}"),
    pod(spec=b"null"),
    pod(spec=b"[]"),
    pod(spec=b'{"containers":[{"name":"web","image":"web:1.2","volumeMounts":[]}]}'),
    pod(spec=b'{"containers":[{"name":"web","image":"web:1.2","wrong":1}]}'),
    pod(spec=b'{"containers":[],"containers":[{"name":"web"}]}'),
    pod(spec=b'{"hostNetwork":true,"containers":[{"name":"web","ports":[{"containerPort":80}]}]}'),
    pod(spec=b'{"terminationGracePeriodSeconds":1.5,"containers":[{"name":"web"}]}'),
    pod(spec=_SPEC.replace(b":", b": ")),
    pod(spec=_SPEC, more=b',"spec":{"hostNetwork":true}'),
    pod(more=b',"status":{"podIP":"10.0.0.1"}'),
    pod(more=b',"wrong":1'),
    pod(more=b',"s\\u0070ec":{}'),
    pod().replace(b'"v1"', b'"v2"'),
    pod().replace(b'"Pod"', b'"Node"'),
    pod().replace(b'"kind":"Pod",', b""),
    pod().replace(b'"apiVersion":"v1","kind":"Pod",', b""),
    b'{"spec":%b}' % _SPEC,
    pod()[:-1],
    b"[]",
]


@pytest.mark.parametrize("validation", ["Ignore", "Warn", "Strict"])
@pytest.mark.parametrize("data", BODIES)
def test_known_specs_change_nothing(data: bytes, validation: str) -> None:
    remembering = kind()
    remembering.known_specs = KnownSpecs()
    for seen in BODIES:
        outcome(seen, remembering, "Ignore")
    assert outcome(data, remembering, validation) == outcome(data, kind(), validation)


def test_a_spec_is_decoded_once() -> None:
    remembering = kind()
    remembering.known_specs = KnownSpecs()
    outcome(pod(), remembering)
    assert remembering.known_specs.find(_SPEC) is not None
    remembering.known_specs.add(_SPEC, {"nodeName": "known"})
    assert b'"spec":{"nodeName":"known"}' in outcome(pod(b'{"name":"b"}'), remembering)[0]


@pytest.mark.parametrize(
    "spec",
    [
        b'{"containers":[{"name":"web","wrong":1}]}',
        b'{"containers":[{"name":"web","volumeMounts":[]}]}',
        b'{"containers":[{"name":"web","name":"web"}]}',
        b'{"containers":1}',
        b'{"nodeSelector":{"a":"%b"}}' % (b"a" * (16 << 10)),
    ],
)
def test_what_is_complained_about_is_not_remembered(spec: bytes) -> None:
    remembering = kind()
    remembering.known_specs = KnownSpecs()
    for validation in ("Ignore", "Warn", "Strict"):
        outcome(pod(spec=spec), remembering, validation)
    assert not len(remembering.known_specs)


def test_a_spec_with_another_name_of_a_tokens_volume_is_known() -> None:
    specs = KnownSpecs()
    specs.add(_mounted("bcdfg", "bcdfg"), {"volumes": [{"name": "kube-api-access-bcdfg"}]})
    assert specs.find(_mounted("zzzzz", "zzzzz")) == {"volumes": [{"name": "kube-api-access-zzzzz"}]}
    assert specs.find(_mounted("zzzzz", "bcdfg")) is None
    specs.add(_mounted("99999", "88888"), {"volumes": [{"name": "kube-api-access-77777"}]})
    assert specs.find(_mounted("99999", "88888")) is None


def test_known_specs_are_those_of_one_kind_with_its_gates() -> None:
    spec = b'{"containers":[{"name":"web"}],"resources":{"limits":{"cpu":"1"}}}'
    with_resources, without = (
        kind(PodStrategy(features=feature_gates("v1.36", dict.fromkeys(_GATES, enabled)))) for enabled in (True, False)
    )
    for each in (with_resources, without):
        each.known_specs = KnownSpecs()
    assert outcome(pod(spec=spec), with_resources) != outcome(pod(spec=spec), without)
    assert outcome(pod(spec=spec), with_resources) != outcome(pod(spec=spec), without)


def test_the_number_of_known_specs_is_bounded() -> None:
    remembering = kind()
    remembering.known_specs = KnownSpecs()
    for number in range(600):
        outcome(pod(spec=b'{"nodeName":"n%d"}' % number), remembering)
    assert 0 < len(remembering.known_specs) <= 512


def test_a_kind_with_known_specs_keeps_no_field_as_text() -> None:
    assert PodStrategy().spec_is_decoded_alone
    assert not kind().raw_fields
