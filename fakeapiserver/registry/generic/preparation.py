"""Between admission and validation: drops, keeps or computes the fields that a client can't set. Objects are changed in place.

What is particular to a kind is in its strategy's prepare hooks, which are called here.

Upstream: k8s.io/apiserver/pkg/registry/rest/{create,update,meta}.go.
"""

from fakeapiserver.apimachinery.managedfields.emptied import is_empty
from fakeapiserver.apimachinery.meta import Object, ensure_namespace, metadata
from fakeapiserver.chance import Chance
from fakeapiserver.registry.generic.interfaces import NameGenerator
from fakeapiserver.registry.generic.strategy import Strategy
from fakeapiserver.registry.generic.write_request import WriteRequest


def fill_system_fields(
    meta: Object, strategy: Strategy, now: str, generate_name: NameGenerator, chance: Chance, prefix: str
) -> None:
    """Gives a new object its uid, creation time (`now`, RFC3339) and generated name. `prefix`: that of the resource's keys.

    Upstream: rest.FillObjectMetaSystemFields, rest.EnsureGeneratedName."""
    meta["creationTimestamp"] = now
    name = meta.get("name")
    if (generate := meta.get("generateName")) and not name:
        name = generate_name(generate) if strategy.generates_names else generate
    meta["uid"] = chance.uid(prefix, meta.get("namespace", ""), name or "")
    if name:
        meta["name"] = name


def prepare_for_create(request: WriteRequest, strategy: Strategy, obj: Object) -> None:
    """Prepares a new object, and adds warnings to the request (upstream: rest.BeforeCreate)."""
    strategy.record_user(obj, request.user)
    strategy.drop_disabled(obj, None)
    if request.subresource:
        strategy.prepare_for_status_create(obj)
    else:
        request.warnings += strategy.warnings_before_create(obj)
        strategy.prepare_for_create(obj)
    if strategy.has_generation:
        metadata(obj)["generation"] = 1


def prepare_for_update(request: WriteRequest, strategy: Strategy, new: Object, old: Object) -> None:
    """Prepares a changed object (upstream: rest.BeforeUpdate)."""
    meta, old_meta = metadata(new), metadata(old)
    ensure_namespace(meta, request.namespace)
    if generation := old_meta.get("generation"):
        meta["generation"] = generation
    else:
        meta.pop("generation", None)
    raises = False
    if request.subresource == "status":
        strategy.prepare_for_status_update(new, old)
    elif request.subresource:
        strategy.prepare_for_subresource_update(request.subresource, new, old)
    else:
        # For some kinds a change of a field counts although it is going to be dropped.
        raises = strategy.generation_counts_disabled and strategy.raises_generation(new, old)
    strategy.drop_disabled(new, old)
    if not request.subresource:
        strategy.prepare_for_update(new, old)
    meta = metadata(new)
    if not meta.get("uid"):
        meta["uid"] = old_meta["uid"]
    meta["creationTimestamp"] = old_meta["creationTimestamp"]
    if "deletionTimestamp" in old_meta:
        meta["deletionTimestamp"] = old_meta["deletionTimestamp"]
    if "deletionGracePeriodSeconds" in old_meta:
        meta.setdefault("deletionGracePeriodSeconds", old_meta["deletionGracePeriodSeconds"])
    if raises or (request.subresource != "status" and _raises_generation(request, strategy, new, old)):
        meta["generation"] = old_meta.get("generation", 0) + 1


def _raises_generation(request: WriteRequest, strategy: Strategy, new: Object, old: Object) -> bool:
    counted = strategy.generation_counts_empties
    return strategy.raises_generation(new, old) or any(
        steps[0] in counted and is_empty(new, steps) for steps in request.empties
    )
