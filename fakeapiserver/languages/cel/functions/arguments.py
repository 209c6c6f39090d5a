"""Tests whether a value fits an overload's argument."""

from typing import Any, Final

from fakeapiserver.languages.cel.types import Type
from fakeapiserver.languages.cel.values import Duration, MapList, Optional, SetList, Timestamp, UInt, type_of

# What a runtime value must be for an overload's argument.
_KINDS: Final[dict[str, tuple[type, ...]]] = {
    "bool": (bool,),
    "int": (int,),
    "uint": (UInt,),
    "double": (float,),
    "string": (str,),
    "bytes": (bytes,),
    "null": (type(None),),
    "duration": (Duration,),
    "timestamp": (Timestamp,),
    "list": (list, SetList, MapList),
    "map": (dict,),
    "type": (Type,),
    "opaque": (Optional,),
}


def fits(value: Any, wanted: Type) -> bool:
    """Reports whether an overload takes a value as this argument."""
    if wanted.kind in ("dyn", "param"):
        return True
    kinds = _KINDS.get(wanted.kind)
    if kinds is not None:
        # Upstream looks at the first item only.
        return type(value) in kinds and (wanted.kind != "list" or not value or fits(value[0], wanted.params[0]))
    return type_of(value).name == wanted.name
