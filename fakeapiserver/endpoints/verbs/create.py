"""POST (upstream: k8s.io/apiserver/pkg/endpoints/handlers/create.go)."""

from functools import partial
from typing import Final

from fakeapiserver.admission.interfaces import Attributes
from fakeapiserver.apimachinery import managedfields
from fakeapiserver.apimachinery.allowance import LARGE
from fakeapiserver.apimachinery.gvk import GroupVersionKind
from fakeapiserver.apimachinery.meta import Object, dedup_owner_references, ensure_namespace, metadata
from fakeapiserver.apimachinery.timestamp import rfc3339
from fakeapiserver.effort import computed, offloaded
from fakeapiserver.endpoints import respond
from fakeapiserver.endpoints.negotiation.body import Body
from fakeapiserver.endpoints.negotiation.media_types import JSON
from fakeapiserver.endpoints.request import Request, Response
from fakeapiserver.endpoints.scope import RequestScope
from fakeapiserver.endpoints.verbs.options import WriteOptions, write_options
from fakeapiserver.registry.generic.empties import restore_empties
from fakeapiserver.registry.generic.kind import Kind
from fakeapiserver.registry.generic.write_request import WriteRequest, posted

# Metadata that clients can't set (upstream: WipeObjectMetaSystemFields).
_SYSTEM_FIELDS: Final = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "selfLink")

# Bodies in JSON with the keys of an object, whole or a part.
_OBJECTS: Final = frozenset((JSON, "application/merge-patch+json", "application/strategic-merge-patch+json"))


async def create(request: Request, scope: RequestScope) -> Response:
    options = write_options(request.query, "CreateOptions")
    accept = respond.accepted(request, scope)
    obj = await decoded(request, scope, options)
    if duplicates := dedup_owner_references(metadata(obj)):
        request.warnings.append(duplicates)
    if scope.virtual is not None:
        for name in _SYSTEM_FIELDS:
            metadata(obj).pop(name, None)
        size = len(request.content)
        obj = await offloaded(partial(owned, request, scope, scope.kind, options, obj), size)
        if scope.admission is not None:
            attributes = creation(request, scope, obj, options, scope.gvk)
            await scope.admission.admit(attributes)
            await scope.admission.validate(attributes)
            obj = attributes.object or obj
        restore_empties(obj, request.empties)  # the answer shows the object as it was sent
        obj = await scope.virtual.create(request, obj)
        return await offloaded(partial(respond.unstored_object, request, scope, obj, accept), size)
    assert scope.store is not None
    written = await scope.store.write(write_request(request, scope, options), posted(obj), create=True)
    return respond.stored_object(request, scope, written.value, 201)


async def decoded(request: Request, scope: RequestScope, options: WriteOptions, kind: Kind | None = None) -> Object:
    """Returns the object of a POST or PUT, of `kind` (by default the scope's), in the path's namespace. Raises StatusError 400, 413, 415
    or 422."""
    kind = kind or scope.kind
    media_type = scope.dialect.object_media_type(request)
    data = await request.body()
    warned = len(request.warnings)

    def decode() -> Object:
        del request.warnings[warned:]
        request.empties.clear()
        return scope.dialect.decode(
            Body(
                data=data,
                media_type=media_type,
                kind=kind,
                validation=options.field_validation,
                warnings=request.warnings,
                recognizes=scope.recognizes,
                empties=request.empties,
            )
        )

    obj = await computed(decode, _weight(request, scope))
    if request.audit is not None:
        request.audit.log_request_object(kind.arrange(obj), request.empties)
    match_namespace(obj, request, scope)
    return obj


def creation(
    request: Request, scope: RequestScope, obj: Object, options: WriteOptions, kind: GroupVersionKind
) -> Attributes:
    """The admission attributes of an object that is created but not stored."""
    info = request.info
    return Attributes(
        "CREATE",
        kind,
        scope.resource.gvr,
        info.subresource,
        info.namespace,
        info.name or str(metadata(obj).get("name", "")),
        obj,
        None,
        request.user,
        options.dry_run,
        wire_options(options, "CreateOptions"),
        request.warnings,
        annotations=request.audit,
    )


def owned(request: Request, scope: RequestScope, kind: Kind, options: WriteOptions, obj: Object) -> Object:
    """The object with managedFields, which objects that aren't stored have as well."""

    def in_version(obj: Object, api_version: str) -> Object:
        raise LookupError(api_version)  # it has no other

    operation = managedfields.Operation(
        schema=kind.typed,
        manager=options.field_manager or manager_of(request.header(b"user-agent")),
        api_version=kind.gvk.api_version,
        subresource=request.info.subresource,
        now=rfc3339(scope.clock.now()),
        convert=in_version,
    )
    return managedfields.update(None, obj, operation, request.empties)


def match_namespace(obj: Object, request: Request, scope: RequestScope) -> None:
    """Gives the object the path's namespace; StatusError 400 for another one."""
    ensure_namespace(metadata(obj), request.info.namespace if scope.resource.namespaced else "")


def write_request(request: Request, scope: RequestScope, options: WriteOptions, name: str = "") -> WriteRequest:
    return WriteRequest(
        kind=scope.kind,
        user=request.user,
        manager=options.field_manager or manager_of(request.header(b"user-agent")),
        namespace=request.info.namespace if scope.resource.namespaced else "",
        name=name,
        subresource=request.info.subresource,
        verb=request.info.verb,
        dry_run=options.dry_run,
        options=wire_options(options, "CreateOptions"),
        warnings=request.warnings,
        empties=request.empties,
        annotations=request.audit,
        size=_weight(request, scope),
    )


def _weight(request: Request, scope: RequestScope) -> int:
    """Returns as how many bytes the body counts when it is decided where to compute with it."""
    size = len(request.content)
    if size < LARGE or scope.store is None or request.header(b"content-type").partition(";")[0] not in _OBJECTS:
        return size
    return scope.store.strategy.weight(request.content)


def manager_of(user_agent: str) -> str:
    """The field manager of a client that names none: its user agent up to the slash (upstream: prefixFromUserAgent)."""
    prefix = user_agent.partition("/")[0][:128]
    printable = prefix if prefix.isprintable() else "".join(filter(str.isprintable, prefix))
    return printable or "unknown"


def wire_options(options: WriteOptions, kind: str) -> Object:
    """The options as admission sees them. The store sets their kind, since it knows whether a PUT or a patch creates."""
    options_object: Object = {"kind": kind, "apiVersion": "meta.k8s.io/v1"}
    if options.dry_run:
        options_object["dryRun"] = ["All"]
    if options.field_manager:
        options_object["fieldManager"] = options.field_manager
    if options.field_validation != "Warn":
        options_object["fieldValidation"] = options.field_validation
    return options_object
