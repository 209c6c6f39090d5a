"""The request that a log line belongs to, without a logger as an argument (upstream: sigs.k8s.io/controller-runtime/pkg/log).

Reconcilers log with Python's own `logging`; `RequestContext` adds the request to each record, and `JSONFormatter` writes lines as
controller-runtime does.
"""

import json
import logging
from collections.abc import Mapping
from contextvars import ContextVar
from typing import Any, Final

__all__ = ["JSONFormatter", "RequestContext", "values"]

# controller, controllerGroup, controllerKind, namespace, name and reconcileID of this task's request, and under the kind's name
# the object's name and namespace.
values: Final[ContextVar[Mapping[str, object]]] = ContextVar("values", default={})  # noqa: B039 it is never changed in place


class RequestContext(logging.Filter):
    """Puts `values` on every record: `handler.addFilter(RequestContext())`."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.values = values.get()
        return True


class JSONFormatter(logging.Formatter):
    """A JSON object a line: level, ts, logger, msg, the request's values, error and stacktrace."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, Any] = {
            "level": record.levelname.lower(),
            "ts": self.formatTime(record, "%Y-%m-%dT%H:%M:%S%z"),
            "logger": record.name,
            "msg": record.getMessage(),
            **values.get(),
        }
        if record.exc_info:
            line |= {"error": str(record.exc_info[1]), "stacktrace": self.formatException(record.exc_info)}
        return json.dumps(line, ensure_ascii=False)
