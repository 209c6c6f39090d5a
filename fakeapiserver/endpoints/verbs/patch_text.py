"""The text of a patch, which servers from 1.37 on check before anything else, as their audit log keeps it as JSON.

Upstream: validateAndTranscodePatch in k8s.io/apiserver/pkg/endpoints/handlers/patch.go.
"""

from typing import Final

from fakeapiserver.apimachinery.errors import new_bad_request
from fakeapiserver.apimachinery.serializer import json, yaml
from fakeapiserver.apimachinery.serializer.go_json import NumberTooLarge

APPLY_PATCH: Final = "application/apply-patch+yaml"
APPLY_CBOR_PATCH: Final = "application/apply-patch+cbor"
_CONVERTING: Final = "error converting YAML to JSON: "


def check_text(media_type: str, data: bytes) -> None:
    """Raises StatusError 400 for a patch that isn't JSON or YAML. What is wrong with CBOR is found when the patch is read."""
    try:
        if media_type == APPLY_PATCH:
            if not _is_taken_for_json(data):
                yaml.decode(data)
        elif media_type != APPLY_CBOR_PATCH:
            json.decode(data)
    except NumberTooLarge:
        return  # it is JSON all the same
    except ValueError as error:
        if media_type == APPLY_PATCH:
            raise new_bad_request(f"error encoding patch: {str(error).removeprefix(_CONVERTING)}") from None
        raise new_bad_request("invalid JSON patch") from None


def in_json(media_type: str, data: bytes) -> bytes:
    """Returns a patch that has passed `check_text` as audit keeps it: in JSON."""
    if media_type == APPLY_PATCH and not _is_taken_for_json(data):
        return json.encode(yaml.decode_with_duplicates(data, exactly=True)[0])
    return data


def _is_taken_for_json(data: bytes) -> bool:
    """Reports whether upstream converts no YAML here: any text that begins like an object."""
    return data.lstrip().startswith(b"{")
