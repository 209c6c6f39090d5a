"""A service's table row.

Upstream: pkg/printers/internalversion/printers.go (printService, getServiceExternalIP).
"""

from fakeapiserver.apimachinery.meta import Object, metadata
from fakeapiserver.registry.generic.table_cells import NONE, age, format_labels


def service_row(obj: Object, now: float) -> list[object]:
    """The cells of name, type, cluster IP, external IP, ports, age and selector."""
    spec = obj.get("spec") or {}
    addresses = spec.get("clusterIPs") or (NONE,)
    return [
        metadata(obj).get("name", ""),
        spec.get("type", ""),
        addresses[0],
        _external(obj, spec),
        ",".join(_port(port) for port in spec.get("ports") or ()) or NONE,
        age(obj, now),
        format_labels(spec.get("selector")),
    ]


def _external(obj: Object, spec: Object) -> str:
    named: list[str] = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(named) or NONE
        case "LoadBalancer":
            ingress = ((obj.get("status") or {}).get("loadBalancer") or {}).get("ingress") or ()
            balancers = {entry.get("ip") or entry.get("hostname") or "" for entry in ingress} - {""}
            return ",".join([*sorted(balancers), *named]) or "<pending>"
        case "ExternalName":
            return str(spec.get("externalName", ""))
    return "<unknown>"


def _port(port: Object) -> str:
    node = f":{port['nodePort']}" if port.get("nodePort") else ""
    return f"{port.get('port', 0)}{node}/{port.get('protocol', '')}"
