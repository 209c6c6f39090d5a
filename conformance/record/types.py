"""Reads a running kube-apiserver and writes the tables its answers are made from, one item a line.

Run against two fresh servers, some 15 s after they became ready (their post-start hooks then have made their objects): one with
its defaults, and one that serves everything (`--runtime-config=api/all=true --feature-gates=AllAlpha=true,AllBeta=true`):
`python -m conformance.record.types --server URL --all URL --token TOKEN --out fakeapiserver/apis/versions/v1.36`
Writes schemas.json, discovery.json, columns.json, bootstrap.json, paths.json. What only the second one serves is marked
`"onRequest":true` in discovery.json; of its first objects, its further API services are kept. Descriptions are not recorded.
"""

import argparse
import json
import ssl
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Json = Any
Get = Callable[..., Json]

DISCOVERY = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList"
TABLE = "application/json;as=Table;v=v1;g=meta.k8s.io"
V2 = "/openapi/v2"

# Differ from one boot to the next, hold the address of the server, or are made by reading rather than stored.
NOT_BOOTSTRAP = {"events", "leases", "componentstatuses", "endpoints", "endpointslices"}
VOLATILE_METADATA = ("uid", "resourceVersion", "creationTimestamp", "generation", "selfLink")
# Query parameters that every write takes.
COMMON_PARAMETERS = {"pretty", "dryRun", "fieldManager", "fieldValidation", "force"}
# Maps from names the author chose to schemas: a key `description` in one of these is a field of that name.
NAMED_SCHEMAS = ("properties", "definitions", "schemas", "patternProperties")


def connect(server: str, token: str) -> Get:
    """A function get(path, accept=...) -> parsed JSON answer, or None for a 4xx answer."""
    context = ssl._create_unverified_context()

    def get(path: str, accept: str = "application/json") -> Json:
        headers = {"Authorization": f"Bearer {token}", "Accept": accept}
        request = urllib.request.Request(server + path, headers=headers)
        try:
            with urllib.request.urlopen(request, context=context, timeout=60) as response:
                return json.load(response)
        except urllib.error.HTTPError as error:
            if error.code >= 500:
                raise
            return None

    return get


def without_descriptions(value: Json, names: bool = False) -> Json:
    """A copy without `description` keys; where `names` holds, keys are field names and stay."""
    if isinstance(value, list):
        return [without_descriptions(item) for item in value]
    if not isinstance(value, dict):
        return value
    return {
        key: without_descriptions(item, names=not names and key in NAMED_SCHEMAS)
        for key, item in value.items()
        if names or key != "description"
    }


def merged_schemas(documents: dict[str, Json]) -> dict[str, Json]:
    """Every component schema by name; raises ValueError when two documents disagree on one."""
    merged: dict[str, Json] = {}
    for key, document in documents.items():
        for name, schema in document.get("components", {}).get("schemas", {}).items():
            clean = without_descriptions(schema)
            merge_schema(merged, name, clean, key)
    return dict(sorted(merged.items()))


def merge_schema(merged: dict[str, Json], name: str, schema: dict[str, Json], key: str) -> None:
    """Adds a schema. A schema with x-kubernetes-group-version-kind replaces the same schema without that extension."""
    gvk = "x-kubernetes-group-version-kind"
    known: dict[str, Json] = merged.setdefault(name, schema)
    if known == schema:
        return
    if {k: v for k, v in known.items() if k != gvk} != {k: v for k, v in schema.items() if k != gvk}:
        raise ValueError(f"{key}: another schema is already known as {name}")
    if len(schema.get(gvk, ())) > len(known.get(gvk, ())):
        merged[name] = schema


def add_all_kinds(schemas: dict[str, Json], definitions: dict[str, Json]) -> None:
    """DeleteOptions and WatchEvent belong to every group version, which only the older document says completely."""
    gvk = "x-kubernetes-group-version-kind"
    for name, schema in schemas.items():
        known = definitions.get(name, {}).get(gvk, ())
        if len(known) > len(schema.get(gvk, ())):
            schema[gvk] = known


def discovery(get: Get) -> dict[str, Json]:
    """Both aggregated documents' items by their path, each resource with its storageVersionHash."""
    documents = {path: get(path, DISCOVERY)["items"] for path in ("/api", "/apis")}
    for path, groups in documents.items():
        for group in groups:
            for version in group["versions"]:
                prefix = "/".join([path, *filter(None, [group["metadata"].get("name")]), version["version"]])
                add_hashes(version["resources"], get(prefix)["resources"])
    return documents


def add_priorities(get: Get, documents: dict[str, Json]) -> None:
    """Copies the numbers that order groups and versions from the APIService objects into each version's row."""
    specs = {
        (item["spec"].get("group", ""), item["spec"]["version"]): item["spec"]
        for item in get("/apis/apiregistration.k8s.io/v1/apiservices")["items"]
    }
    for group in (group for groups in documents.values() for group in groups):
        for version in group["versions"]:
            spec = specs.get((group["metadata"].get("name", ""), version["version"]), {})
            version |= {key: spec[key] for key in ("groupPriorityMinimum", "versionPriority") if key in spec}


def add_hashes(resources: list[Json], legacy: list[Json]) -> None:
    """Copies storageVersionHash from the older document into the rows of the newer one."""
    hashes = {row["name"]: row["storageVersionHash"] for row in legacy if "storageVersionHash" in row}
    for resource in resources:
        if resource["resource"] in hashes:
            resource["storageVersionHash"] = hashes[resource["resource"]]


def add_definitions(documents: dict[str, Json], schemas: dict[str, Json]) -> None:
    """Names the schema of each resource and subresource, where there is one; DeleteOptions and the like have many kinds."""
    names = {}
    for name, schema in schemas.items():
        kinds = schema.get("x-kubernetes-group-version-kind", ())
        if len(kinds) == 1:
            names[tuple(kinds[0][key] for key in ("group", "version", "kind"))] = name
    for groups in documents.values():
        for group in groups:
            for version in group["versions"]:
                here = (group["metadata"].get("name", ""), version["version"])
                for resource in version["resources"]:
                    for row in (resource, *resource.get("subresources", ())):
                        kind = row["responseKind"]
                        own = (kind["group"], kind["version"]) if kind["version"] else here
                        if definition := names.get((*own, kind["kind"])):
                            row["definition"] = definition


def add_operations(documents: dict[str, Json], openapi: dict[str, Json]) -> None:
    """Adds what only the OpenAPI paths contain: whether a delete returns the object, and a subresource's own query parameters."""
    for prefix, groups in documents.items():
        for group in groups:
            for version in group["versions"]:
                root = "/".join([prefix, *filter(None, [group["metadata"].get("name")]), version["version"]])
                served = openapi.get(root.strip("/"), {}).get("paths", {})
                for resource in version["resources"]:
                    scope = "/namespaces/{namespace}" if resource["scope"] == "Namespaced" else ""
                    add_operation_facts(resource, served, f"{root}{scope}/{resource['resource']}/{{name}}")


def add_operation_facts(resource: Json, served: dict[str, Json], item: str) -> None:
    """Adds `returnsDeleted` to a resource's row and `queryParameters` (name to type) to those of its subresources."""
    deletes = served.get(item, {}).get("delete")
    if deletes and resource.get("definition") == reference(deletes["responses"]["200"]).rpartition("/")[2]:
        resource["returnsDeleted"] = True
    for subresource in resource.get("subresources", ()):
        path = served.get(f"{item}/{subresource['subresource']}", {})
        own = {
            row["name"]: row["schema"]["type"]
            for row in path.get("parameters", ())
            if row["in"] == "query" and row["name"] not in COMMON_PARAMETERS
        }
        if own:
            subresource["queryParameters"] = own


def reference(response: Json) -> str:
    """Returns the reference in the schema of the JSON response, or ""."""
    schema: dict[str, str] = response["content"]["application/json"]["schema"]
    return schema.get("$ref", "")


def listable(documents: dict[str, Json]) -> Iterator[tuple[str, Json]]:
    """(path of the collection over all namespaces, discovery row) of every resource that can be listed."""
    for path, groups in documents.items():
        for group in groups:
            for version in group["versions"]:
                parts = [path, *filter(None, [group["metadata"].get("name")]), version["version"]]
                for resource in version["resources"]:
                    if "list" in resource["verbs"]:
                        yield "/".join([*parts, resource["resource"]]), resource


def columns(get: Get, documents: dict[str, Json]) -> dict[str, Json]:
    """Table columns (name, type, format, priority) by the collection's path."""
    tables = {path: get(f"{path}?limit=1", TABLE) for path, _ in listable(documents)}
    return {
        path: without_descriptions(table["columnDefinitions"])
        for path, table in tables.items()
        if table and table["kind"] == "Table"
    }


def bootstrap(get: Get, documents: dict[str, Json]) -> list[Json]:
    """Every object of a fresh server, in the order it was made, without what differs at each boot."""
    seen: dict[str, Json] = {}
    for path, resource in listable(documents):
        if resource["resource"] in NOT_BOOTSTRAP:
            continue
        answer = get(path)
        kind = {"apiVersion": answer["apiVersion"], "kind": resource["responseKind"]["kind"]}
        for item in answer["items"]:
            seen.setdefault(item["metadata"]["uid"], {**kind, **item})
    ordered = sorted(seen.values(), key=lambda item: int(item["metadata"]["resourceVersion"]))
    return [stable(item) for item in ordered]


def stable(item: Json) -> Json:
    """The object without server-set metadata, conditions' times and managed fields' times."""
    metadata = {key: value for key, value in item["metadata"].items() if key not in VOLATILE_METADATA}
    if "generation" in item["metadata"]:
        metadata["generation"] = item["metadata"]["generation"]
    for entry in metadata.get("managedFields", ()):
        entry.pop("time", None)
    for condition in item.get("status", {}).get("conditions", ()):
        condition.pop("lastTransitionTime", None)
    if "since" in item.get("data", {}):  # the day of the first boot, in the service account token tracker's ConfigMap
        item["data"] = {}
    return {**item, "metadata": metadata}


def is_of_resources(key: str) -> bool:
    """Reports whether an OpenAPI document, by its key in the index, is that of a group or of its version."""
    return key.startswith(("api/", "apis/"))


def paths(get: Get, documents: dict[str, Json]) -> dict[str, Json]:
    """The root's paths, the version's facts, and OpenAPI documents of paths that serve no resources."""
    fixed = {key: value for key, value in documents.items() if not is_of_resources(key)}
    client_address = get("/api")["serverAddressByClientCIDRs"]
    v2 = get(V2)
    return {
        "paths": get("/")["paths"],
        "version": get("/version"),
        "serverAddressByClientCIDRs": client_address,
        "openapi": {key: fixed_paths(value) for key, value in fixed.items()},
        "openapiInfo": {key: v2[key] for key in ("swagger", "info") if key in v2},
        "openapiSecurity": without_descriptions(
            {key: v2[key] for key in ("securityDefinitions", "security") if key in v2}
        ),
        "openapiParameters": parameter_names(v2),
    }


def parameter_names(v2: Json) -> dict[str, str]:
    """Returns the names of shared parameters in the older document: `query/limit` -> `limit-1NfNmdNH`.

    A name is made from the parameter's description, so one parameter may have several: then the key goes on with `@` and the
    method, or for parameters of a whole path with the last parts of the path (`query/stdin@pods/exec`).
    """
    names: dict[str, dict[str, str]] = {}
    for path, item in v2["paths"].items():
        words = [part for part in path.split("/") if part and not part.startswith("{")]
        for method, value in item.items():
            here = "/".join(words[-2:]) if method == "parameters" else method
            for row in value if method == "parameters" else value.get("parameters", ()):
                if "$ref" in row:
                    name = row["$ref"].rpartition("/")[2]
                    shared = v2["parameters"][name]
                    names.setdefault(f"{shared['in']}/{shared['name']}", {})[here] = name
    found: dict[str, str] = {}
    for key, places in names.items():
        if len(set(places.values())) == 1:
            found[key] = next(iter(places.values()))
        else:
            found.update({f"{key}@{place}": name for place, name in places.items()})
    return dict(sorted(found.items()))


def fixed_paths(document: Json) -> Json:
    """The document's `paths`; responses keep their (required, one-word) description."""
    cleaned = without_descriptions(document["paths"])
    for path, item in cleaned.items():
        for method, operation in item.items():
            for code, response in operation.get("responses", {}).items() if isinstance(operation, dict) else ():
                response["description"] = document["paths"][path][method]["responses"][code]["description"]
    return cleaned


def lines(value: Json, depth: int, indent: str = "") -> str:
    """JSON text whose outer `depth` levels have one item a line and whose inner ones are compact."""
    if depth == 0 or not value or not isinstance(value, dict | list):
        return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    inner = indent + " "
    if isinstance(value, dict):
        rows = [f"{inner}{json.dumps(key)}:{lines(item, depth - 1, inner)}" for key, item in value.items()]
        return "{\n" + ",\n".join(rows) + "\n" + indent + "}"
    return "[\n" + ",\n".join(inner + lines(item, depth - 1, inner) for item in value) + "\n" + indent + "]"


def add_deprecations(server: str, token: str, documents: dict[str, Json]) -> None:
    """Adds the warning that a list is answered with, where there is one: this version of the resource is on its way out."""
    context = ssl._create_unverified_context()
    for path, resource in listable(documents):
        request = urllib.request.Request(f"{server}{path}?limit=1", headers={"Authorization": f"Bearer {token}"})
        with urllib.request.urlopen(request, context=context, timeout=60) as response:
            if warning := response.headers.get("Warning"):
                resource["deprecation"] = json.loads(warning.removeprefix("299 - "))


def mark_on_request(everything: dict[str, Json], default: dict[str, Json]) -> None:
    """Marks the resources that a server with its defaults doesn't serve."""
    served = {name for name, _ in _rows(default)}
    for name, row in _rows(everything):
        if name not in served:
            row["onRequest"] = True


def _rows(documents: dict[str, Json]) -> Iterator[tuple[tuple[str, str, str], Json]]:
    """((group, version, resource), discovery row) of every resource."""
    for groups in documents.values():
        for group in groups:
            for version in group["versions"]:
                for resource in version["resources"]:
                    yield (group["metadata"].get("name", ""), version["version"], resource["resource"]), resource


def main() -> None:
    """Reads the command line, records, and prints one line a step."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--server", required=True)
    parser.add_argument("--all", required=True, help="the server that serves everything")
    parser.add_argument("--token", required=True)
    parser.add_argument("--out", required=True, type=Path)
    arguments = parser.parse_args()
    arguments.out.mkdir(parents=True, exist_ok=True)
    by_default = connect(arguments.server.rstrip("/"), arguments.token)
    get = connect(arguments.all.rstrip("/"), arguments.token)

    def write(name: str, value: Json, depth: int) -> None:
        text = lines(value, depth) + "\n"
        (arguments.out / name).write_text(text, encoding="utf-8")
        print(f"{name}: {len(value)} items, {len(text.encode()):,} bytes", flush=True)

    index = get("/openapi/v3")["paths"]
    documents = {key: get(entry["serverRelativeURL"]) for key, entry in index.items()}
    print(f"read {len(documents)} OpenAPI documents", flush=True)
    schemas = merged_schemas(documents)
    add_all_kinds(schemas, get(V2)["definitions"])
    write("schemas.json", schemas, 1)
    groups = discovery(get)
    add_priorities(get, groups)
    add_definitions(groups, schemas)
    add_operations(groups, documents)
    add_deprecations(arguments.all.rstrip("/"), arguments.token, groups)
    groups_by_default = discovery(by_default)
    mark_on_request(groups, groups_by_default)
    write("discovery.json", groups, 7)
    write("columns.json", columns(get, groups), 2)
    objects = bootstrap(by_default, groups_by_default)
    services = {obj["metadata"]["name"] for obj in objects if obj["kind"] == "APIService"}
    more = [obj for obj in bootstrap(get, groups) if obj["kind"] == "APIService"]
    write("bootstrap.json", objects + [obj for obj in more if obj["metadata"]["name"] not in services], 1)
    # gates add media types to the paths that serve no resources
    fixed = {
        key: by_default(index[key]["serverRelativeURL"].partition("?")[0])
        for key in documents
        if not is_of_resources(key)
    }
    write("paths.json", paths(by_default, fixed), 2)


if __name__ == "__main__":
    main()
