"""The CSI drivers of a node.

Upstream: pkg/registry/storage/csinode/strategy.go, pkg/apis/storage/validation/validation.go.
"""

from typing import Final

from fakeapiserver.apimachinery import field, names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.core.field_formats import duplicate_errors, name_errors, non_negative_errors
from fakeapiserver.registry.core.volume.sources import csi_driver_errors
from fakeapiserver.registry.generic.label_selector import immutable_errors
from fakeapiserver.registry.generic.strategy import Cells, Strategy
from fakeapiserver.registry.generic.table_cells import age

_MAX_NODE_ID: Final = 256


class CSINodeStrategy(Strategy, kw_only=True):
    def prepare_for_create(self, obj: Object) -> None:
        super().prepare_for_create(obj)
        if "status" in (self.reset_fields or ()):  # from 1.37 on
            obj["status"] = {}

    def validate(self, obj: Object) -> ErrorList:
        errors: ErrorList = []
        path, seen = Path("spec.drivers"), set[str]()
        for i, driver in enumerate((obj.get("spec") or {}).get("drivers") or ()):
            errors += _node_driver_errors(driver, seen, path.index(i))
        return errors

    def validate_update(self, obj: Object, old: Object) -> ErrorList:
        errors = self.validate(obj)
        drivers = (obj.get("spec") or {}).get("drivers") or ()
        for before in (old.get("spec") or {}).get("drivers") or ():
            for driver in drivers:
                if driver.get("name", "") == before.get("name", ""):
                    new, then = _fixed_of_driver(driver), _fixed_of_driver(before)
                    errors += immutable_errors(new, then, Path("spec.drivers"))
        return errors

    def table_row(self, obj: Object, now: float) -> Cells:
        drivers = (obj.get("spec") or {}).get("drivers") or ()
        return [metadata(obj).get("name", ""), len(drivers), age(obj, now)]


def _node_driver_errors(driver: Object, seen: set[str], path: Path) -> ErrorList:
    name, node = driver.get("name", ""), driver.get("nodeID", "")
    errors = csi_driver_errors(name, path.child("name"))
    if not node:
        errors.append(field.required(path.child("nodeID")))
    if len(node.encode()) > _MAX_NODE_ID:
        errors.append(field.invalid(path.child("nodeID"), node, f"must be {_MAX_NODE_ID} characters or less"))
    count = (driver.get("allocatable") or {}).get("count")
    if count is not None:
        errors += non_negative_errors(count, path.child("allocatable").child("count"))
    errors += duplicate_errors(name, seen, path.child("name"))
    keys: set[str] = set()
    for key in driver.get("topologyKeys") or ():
        errors += [] if key else [field.required(path)]
        errors += duplicate_errors(key, keys, path) + name_errors(key, names.is_qualified_name, path)
    return errors


def _fixed_of_driver(driver: Object) -> Object:
    """The immutable fields of a node's driver, all but the number of volumes, as Go prints its internal type."""
    return {
        "Name": driver.get("name", ""),
        "NodeID": driver.get("nodeID", ""),
        "TopologyKeys": driver.get("topologyKeys"),
        "Allocatable": None,
    }
