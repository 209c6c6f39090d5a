"""The rules that flow schemas and priority levels share: their status starts empty, and its writes keep all other metadata.

Upstream: pkg/registry/flowcontrol/{flowschema,prioritylevelconfiguration}/strategy.go.
"""

from fakeapiserver.apimachinery.field import ErrorList
from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.flowcontrol.flowcontrol_validation import conditions_errors
from fakeapiserver.registry.generic.strategy import Strategy, copy_field


class FlowControlStrategy(Strategy, kw_only=True):
    def prepare_for_create(self, obj: Object) -> None:
        obj["status"] = {}

    def prepare_for_status_update(self, obj: Object, old: Object) -> None:
        """Metadata stays as it is stored, except for managedFields."""
        super().prepare_for_status_update(obj, old)
        sent_meta = metadata(obj)
        obj["metadata"] = dict(metadata(old))
        copy_field("managedFields", sent_meta, obj["metadata"])

    def validate_status_update(self, obj: Object, old: Object) -> ErrorList:
        return conditions_errors(obj)
