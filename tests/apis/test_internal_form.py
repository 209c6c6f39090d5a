"""Objects as Go's internal types print them."""

from fakeapiserver.apis.internal_form import in_version, internal_form
from fakeapiserver.apis.spec_difference import difference


def test_every_field_has_gos_name_and_place() -> None:
    found = internal_form({"name": "p", "containerPort": 80, "protocol": "TCP"}, "ContainerPort")
    assert list(found.items()) == [
        ("Name", "p"),
        ("HostPort", 0),
        ("ContainerPort", 80),
        ("Protocol", "TCP"),
        ("HostIP", ""),
    ]


def test_what_is_embedded_stands_in_its_place() -> None:
    found = internal_form({"name": "v", "emptyDir": {}}, "Volume")
    assert found["EmptyDir"] == {"Medium": "", "SizeLimit": None, "Mode": None}
    assert {value for name, value in found.items() if name not in ("Name", "EmptyDir")} == {None}


def test_the_hosts_namespaces_belong_to_the_security_context_until_1_36() -> None:
    newest = internal_form({"hostNetwork": True, "securityContext": {"fsGroup": 1}}, "PodSpec")
    assert (newest["HostNetwork"], newest["SecurityContext"]["FSGroup"]) == (True, 1)
    found = in_version(newest, "v1.36")
    assert (found["SecurityContext"]["HostNetwork"], found["SecurityContext"]["FSGroup"]) == (True, 1)
    assert "HostNetwork" not in found


def test_a_template_begins_with_its_metadata_as_on_the_wire() -> None:
    found = internal_form(
        {"metadata": {"annotations": {"x": "1"}, "labels": {"a": "b"}}, "spec": {}}, "PodTemplateSpec"
    )
    assert list(found) == ["labels", "annotations", "Spec"]


def test_differences_show_three_lines_around() -> None:
    before, after = {"ip": "1.1.1.1", "hostnames": ["<a>"]}, {"ip": "1.1.1.2", "hostnames": ["<a>"]}
    assert difference("changed", before, after, "HostAlias").splitlines() == [
        "changed",
        "@@ -1,5 +1,5 @@",
        " {",
        '- "IP": "1.1.1.1",',
        '+ "IP": "1.1.1.2",',
        '  "Hostnames": [',
        '   "\\u003ca\\u003e"',
        "  ]",
    ]


def test_selectors_and_times_keep_their_wire_form() -> None:
    expression = {"values": ["b"], "key": "a"}
    selector = {"matchExpressions": [expression], "matchLabels": {"b": "c", "a": "b"}}
    found = internal_form({"selector": selector}, "PersistentVolumeClaimSpec")["Selector"]
    assert str(found) == str(
        {
            "matchLabels": {"a": "b", "b": "c"},
            "matchExpressions": [{"key": "a", "operator": "", "values": ["b"]}],
        }
    )
    time = "2026-01-01T00:00:00Z"
    assert internal_form({"allocationTimestamp": time}, "AllocationResult")["AllocationTimestamp"] == time
