"""Operators' definitions and samples, as their projects publish them, on a server of its own.

`python -m conformance.suites.operators` compares all of them with a real server; this runs a few where Go and the network are there.
"""

import shutil
from collections.abc import Iterator

import pytest

from conformance.exchange import Client
from conformance.suites.operators.comparing import DEFINITIONS, collection, condition, named
from conformance.suites.operators.packages import Operator, fetch, read, table
from fakeapiserver import Cluster

pytestmark = pytest.mark.slow

SAMPLES_OF_A_KIND = 3


@pytest.fixture(scope="module", params=["argo-rollouts", "cert-manager", "keda", "knative-serving"])
def operator(request: pytest.FixtureRequest) -> Operator:
    if shutil.which("go") is None:
        pytest.skip("no Go on the PATH to fetch published modules with")
    (package,) = table([request.param])
    try:
        archive = fetch(package)
    except OSError as error:
        pytest.skip(str(error))
    return read(package, archive, SAMPLES_OF_A_KIND)


@pytest.fixture(scope="module")
def client(operator: Operator) -> Iterator[Client]:
    """Yields a client of a server that has the operator's definitions."""
    with Cluster() as cluster:
        client = Client(cluster.url, cluster.token)
        for definition in operator.definitions.values():
            answer = client.send(
                {"method": "POST", "path": f"{DEFINITIONS}?fieldValidation=Strict", "body": definition}, []
            )
            assert answer["status"] == 201, answer["body"]["message"]
        yield client


@pytest.mark.timeout(300)
def test_definitions_are_established(operator: Operator, client: Client) -> None:
    for name in operator.definitions:
        definition = client.send({"method": "GET", "path": f"{DEFINITIONS}/{name}"}, [])["body"]
        assert condition(definition, "Established") == "True", name


@pytest.mark.timeout(300)
def test_samples_are_accepted_except_invalid_ones(operator: Operator, client: Client) -> None:
    refused = {}
    for number, sample in enumerate(operator.samples):
        served = operator.version_of(sample)
        assert served is not None
        request = {"method": "POST", "path": collection(*served), "body": named(sample, f"s{number}")}
        answer = client.send(request, [])
        if answer["status"] != 201:
            refused[f"{sample['kind']} {sample['metadata'].get('name')}"] = answer["body"]["message"]
    assert refused.keys() == operator.refused.keys(), refused
    assert operator.samples


@pytest.mark.timeout(300)
def test_documents_follow_a_definition_at_once(operator: Operator, client: Client) -> None:
    for name, definition in operator.definitions.items():
        version = definition["spec"]["versions"][0]["name"]
        words = f"of {name}"
        patch = [{"op": "add", "path": "/spec/versions/0/schema/openAPIV3Schema/description", "value": words}]
        path = f"{DEFINITIONS}/{name}"
        client.send({"method": "PATCH", "path": path, "type": "application/json-patch+json", "body": patch}, [])
        gv = f"{definition['spec']['group']}/{version}"
        for place, key in ((f"/openapi/v3/apis/{gv}", "components"), ("/openapi/v2", "definitions")):
            body = client.send({"method": "GET", "path": place}, [])["body"]
            schemas = body[key]["schemas"] if key == "components" else body[key]
            assert words in [schema.get("description") for schema in schemas.values()], place
