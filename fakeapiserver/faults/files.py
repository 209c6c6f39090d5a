"""Faults in YAML files: one or several documents, each a fault or a list of faults.

- verb: update
  resource: leases
  status: 409
  times: 3
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from fakeapiserver.apimachinery.serializer import yaml
from fakeapiserver.faults import rule

_SEPARATOR: Final = re.compile(rb"^---.*$", re.MULTILINE)


def read(path: Path) -> list[Mapping[str, Any]]:
    """Returns the faults of a file, each checked. Raises OSError, and ValueError with one sentence that names the file and the fault."""
    try:
        documents = [yaml.decode(part) for part in _SEPARATOR.split(path.read_bytes()) if part.strip()]
    except ValueError as error:
        raise ValueError(f"{path} is no YAML: {error}") from None
    faults: list[Mapping[str, Any]] = []
    for document in documents:
        faults += document if isinstance(document, list) else [] if document is None else [document]
    for number, fields in enumerate(faults, 1):
        try:
            rule.fault(fields)
        except ValueError as error:
            raise ValueError(f"{path}: fault {number}: {error}") from None
    return faults
