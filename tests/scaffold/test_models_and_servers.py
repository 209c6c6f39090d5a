"""Random models: a server takes their definitions, without warnings, and then the values that they take, and no others.

FAKEAPISERVER_REFERENCE_KUBECONFIG names a real server to ask too; FAKEAPISERVER_EXAMPLES how many models.
"""

import json
import os
from collections.abc import Iterator
from itertools import count
from typing import Annotated, Any, Literal, get_args, get_origin

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import BaseModel, Field, ValidationError, create_model

from fakeapiserver import Cluster
from fakeapiserver.client import synchronous, wait
from fakeapiserver.client.errors import StatusError
from fakeapiserver.controller_runtime.markers import resource
from fakeapiserver.controller_runtime.models import CustomResource, Int32, Model, Quantity
from fakeapiserver.scaffold import crd

GROUP = "models.example.com"
NUMBERS = count()
REFERENCE = os.environ.get("FAKEAPISERVER_REFERENCE_KUBECONFIG")
pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

SIZES = st.sampled_from([{}, {"min_length": 1}, {"max_length": 2}, {"min_length": 1, "max_length": 3}])
PATTERNS = st.sampled_from([{}, {"pattern": "^a"}, {"pattern": "^[a-c]*$"}, {"pattern": "b|cc"}])
BOUNDS = st.sampled_from([{}, {"ge": 0}, {"gt": 0}, {"lt": 3}, {"le": 3, "ge": -1}, {"gt": -2, "lt": 2}])
STEPS = st.sampled_from([{}, {"multiple_of": 2}])
CHOICES = [Literal["a"], Literal["a", "b"], Literal["a"] | Literal["bb"], Literal[1, 2], Literal["", "c"]]

texts = st.builds(lambda size, pattern: (str, Field(**size, **pattern)), SIZES, PATTERNS)
integers = st.builds(lambda bounds, step: (int, Field(**bounds, **step)), BOUNDS, STEPS)
numbers = st.builds(lambda bounds: (float, Field(**bounds)), BOUNDS)
others = st.sampled_from([*CHOICES, bool, Int32, Quantity, int | str]).map(lambda kind: (kind, Field()))
scalars = texts | integers | numbers | others


def lists(items: Any) -> Any:
    return st.builds(lambda item, size: (list[item[0]], Field(**size)), items, SIZES)


def maps(items: Any) -> Any:
    return st.builds(lambda item, size: (dict[str, item[0]], Field(**size)), items, SIZES)


def models(fields: Any) -> Any:
    """Generates models with one to four fields, each of which may be optional."""
    rows = st.dictionaries(st.sampled_from("abcd"), st.tuples(fields, st.booleans()), min_size=1)
    return rows.map(model_of)


def model_of(rows: dict[str, tuple[tuple[Any, Any], bool]]) -> type[BaseModel]:
    fields: dict[str, Any] = {}
    for name, ((annotation, field), optional) in rows.items():
        fields[name] = (annotation | None, None) if optional else (annotation, field)
    return create_model("Spec", __base__=Model, **fields)


SCALARS: dict[Any, Any] = {
    str: st.sampled_from(["", "a", "ab", "abc", "bcc", "b", "\u00e4\u00f6"]),
    int: st.integers(-3, 5),
    float: st.sampled_from([0.5, -1.5, 2.5, 1]),
    bool: st.booleans(),
    Int32: st.sampled_from([1, 2**31 - 1, 2**31, -(2**31)]),
    Quantity: st.sampled_from(["1Gi", "100m", "1e3", "1 Gi", "-.5", 3]),
}
kinds = st.recursive(scalars, lambda inner: lists(inner) | maps(inner) | models(inner).map(lambda m: (m, Field())))
specs = models(kinds)
values = st.recursive(
    st.sampled_from(
        [*("", "a", "b", "bb", "abc", "c", "1Gi", "1 Gi", "ccc", "\u00e4\u00f6"), *range(-3, 6), 2**31, True, False]
    )
    | st.sampled_from([0.5, -1.5, 2.5]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from("abcd"), inner, max_size=4),
    max_leaves=8,
)


def near(annotation: Any) -> Any:
    """Values that a type may have, and now and then others."""
    return st.integers(0, 9).flatmap(lambda luck: values if luck == 0 else likely(annotation))


def likely(annotation: Any) -> Any:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        rows = annotation.model_fields.items()
        required = {name: near(field.annotation) for name, field in rows if field.is_required()}
        optional = {name: near(field.annotation) for name, field in rows if not field.is_required()}
        return st.fixed_dictionaries(required, optional=optional)
    if annotation in SCALARS:
        return SCALARS[annotation]
    origin, arguments = get_origin(annotation), [row for row in get_args(annotation) if row is not type(None)]
    if origin is Annotated:
        return likely(arguments[0])
    if origin is list:
        return st.lists(near(arguments[0]), min_size=1, max_size=3)
    if origin is dict:
        return st.dictionaries(st.sampled_from("abcd"), near(arguments[1]), min_size=1, max_size=3)
    if origin is Literal:
        return st.sampled_from(arguments)
    return st.one_of(*map(near, arguments))


@pytest.fixture(scope="module", params=["fake", "real"])
def server(request: pytest.FixtureRequest) -> Iterator[synchronous.Client]:
    if request.param == "real":
        if not REFERENCE:
            pytest.skip("set FAKEAPISERVER_REFERENCE_KUBECONFIG to ask a real server too")
        with synchronous.connect(REFERENCE) as client:
            yield client
    else:
        with Cluster() as cluster, synchronous.connect(cluster.kubeconfig) as client:
            yield client


@settings(
    max_examples=int(os.environ.get("FAKEAPISERVER_EXAMPLES", "15")),
    deadline=None,
    derandomize="FAKEAPISERVER_EXAMPLES" not in os.environ,
    suppress_health_check=list(HealthCheck),
)
@given(data=st.data())
def test_a_server_takes_what_a_model_takes(server: synchronous.Client, data: st.DataObject) -> None:
    spec = data.draw(specs)
    kind = f"Model{next(NUMBERS)}"
    typed = resource(f"{GROUP}/v1", kind, cluster_scoped=True)(
        create_model(kind, __base__=CustomResource, spec=(spec, ...))
    )
    definition = crd.definition(typed)
    name = definition["metadata"]["name"]
    definitions = server.resource("customresourcedefinitions")
    definitions.create(definition)
    try:
        definitions.until(wait.has_condition("Established"), name=name)
        resources = server.resource(name)
        for number, value in enumerate(data.draw(st.lists(near(spec), min_size=4, max_size=8))):
            obj = {"apiVersion": f"{GROUP}/v1", "kind": kind, "metadata": {"name": f"o{number}"}, "spec": value}
            assert taken(server, resources, obj) == valid(typed, obj), (crd.schema_of(spec), value)
    finally:
        definitions.delete(name)


def valid(model: type[BaseModel], obj: dict[str, Any]) -> bool:
    try:
        model.model_validate_json(json.dumps(obj), strict=True)
    except ValidationError:
        return False
    return True


def taken(server: synchronous.Client, resources: Any, obj: dict[str, Any]) -> bool:
    try:
        resources.create(obj, dry_run=True)
    except StatusError as error:
        if error.code != 422:
            raise
        return False
    return True
