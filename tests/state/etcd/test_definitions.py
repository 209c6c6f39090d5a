"""CustomResourceDefinitions as API servers store them, in v1beta1, and as they show them, in v1."""

from typing import Any

import pytest

from fakeapiserver.apimachinery.serializer import json
from fakeapiserver.state.etcd.objects import objects_of
from tests.state.etcd.keyspace_builder import Etcd

SCHEMA = {"openAPIV3Schema": {"type": "object"}}
V1, V2 = {"name": "v1", "served": True, "storage": True}, {"name": "v2", "served": True, "storage": False}
NAMES = {"plural": "widgets", "kind": "Widget"}
COMMON: dict[str, Any] = {"group": "example.com", "names": NAMES, "scope": "Cluster"}
COLUMN = {"name": "Size", "type": "integer"}
CLIENT = {"url": "https://example.com/convert"}
NO_CONVERSION = {"conversion": {"strategy": "None"}}

CONVERTED: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "what all versions share goes into each": (
        {
            "version": "v1",
            "versions": [V1, V2],
            "validation": SCHEMA,
            "subresources": {"status": {}},
            "selectableFields": [{"jsonPath": ".spec.a"}],
            "additionalPrinterColumns": [{**COLUMN, "JSONPath": ".spec.size"}],
            "preserveUnknownFields": False,
        },
        {
            "versions": [
                {
                    **version,
                    "schema": SCHEMA,
                    "subresources": {"status": {}},
                    "selectableFields": [{"jsonPath": ".spec.a"}],
                    "additionalPrinterColumns": [{**COLUMN, "jsonPath": ".spec.size"}],
                }
                for version in (V1, V2)
            ],
            **NO_CONVERSION,
        },
    ),
    "what versions have of their own stays": (
        {
            "version": "v1",
            "versions": [
                {**V1, "schema": SCHEMA, "additionalPrinterColumns": [{**COLUMN, "JSONPath": ".a"}]},
                {**V2, "schema": SCHEMA, "subresources": {}},
            ],
            "preserveUnknownFields": False,
        },
        {
            "versions": [
                {**V1, "schema": SCHEMA, "additionalPrinterColumns": [{**COLUMN, "jsonPath": ".a"}]},
                {**V2, "schema": SCHEMA, "subresources": {}},
            ],
            **NO_CONVERSION,
        },
    ),
    "a definition of old with one version": (
        {"version": "v1", "validation": SCHEMA},
        {"versions": [{**V1, "schema": SCHEMA}], "preserveUnknownFields": True, **NO_CONVERSION},
    ),
    "a webhook": (
        {
            "versions": [V1],
            "preserveUnknownFields": False,
            "conversion": {"strategy": "Webhook", "webhookClientConfig": CLIENT, "conversionReviewVersions": ["v1"]},
        },
        {
            "versions": [V1],
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"clientConfig": CLIENT, "conversionReviewVersions": ["v1"]},
            },
        },
    ),
    "a webhook without versions of reviews": (
        {
            "versions": [V1],
            "preserveUnknownFields": False,
            "conversion": {"strategy": "Webhook", "webhookClientConfig": CLIENT},
        },
        {
            "versions": [V1],
            "conversion": {
                "strategy": "Webhook",
                "webhook": {"clientConfig": CLIENT, "conversionReviewVersions": ["v1beta1"]},
            },
        },
    ),
}


def stored(spec: object) -> bytes:
    definition = {"kind": "CustomResourceDefinition", "apiVersion": "apiextensions.k8s.io/v1beta1", "spec": spec}
    definition["metadata"] = {"name": "widgets.example.com", "uid": "1"}
    return Etcd().put(b"/registry/apiextensions.k8s.io/customresourcedefinitions/a", json.encode(definition)).file()


@pytest.mark.parametrize("case", CONVERTED)
def test_a_stored_definition_is_converted_to_v1(case: str) -> None:
    old, new = CONVERTED[case]
    [(_, definition)] = objects_of(stored(COMMON | old)).objects
    assert definition == {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": "widgets.example.com", "uid": "1", "resourceVersion": "2"},
        "spec": COMMON | new,
    }


@pytest.mark.parametrize(
    ("spec", "error"),
    [
        (None, "Expected `object`, got `null`"),
        ({"versions": [1]}, "Expected `object`, got `int` - at `$.versions[...]`"),
        (
            {"versions": [{"additionalPrinterColumns": [""]}]},
            "Expected `object`, got `str` - at `$.additionalPrinterColumns[...]`",
        ),
    ],
)
def test_an_invalid_definition_is_listed(spec: object, error: str) -> None:
    [(_, reason)] = objects_of(stored(spec)).untaken
    assert reason.startswith(f"is not a valid CustomResourceDefinition: {error.partition(' - ')[0]}")
