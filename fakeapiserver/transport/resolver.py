"""Go's errors for names that can't be resolved: Go queries the name servers itself, and names the last one.

Upstream: net/dnsclient_unix.go, net/dnsconfig_unix.go, net/net.go (DNSError).
"""

import socket
from functools import cache
from pathlib import Path
from typing import Final

_CONFIGURATION: Final = Path("/etc/resolv.conf")
_PORT: Final = 53


def lookup_failure(host: str, error: OSError) -> str:
    """`lookup db on 10.0.0.10:53: no such host`"""
    problem = "server misbehaving" if error.errno == socket.EAI_AGAIN else "no such host"
    server = name_server(_CONFIGURATION)
    return f"lookup {host} on {server}: {problem}" if server else f"lookup {host}: {problem}"


@cache
def name_server(configuration: Path) -> str:
    """The first one, as `10.0.0.10:53`; empty where none is named."""
    try:
        lines = configuration.read_text("utf-8", "replace").splitlines()
    except OSError:
        return ""
    for words in map(str.split, lines):
        if len(words) > 1 and words[0] == "nameserver":
            return f"[{words[1]}]:{_PORT}" if ":" in words[1] else f"{words[1]}:{_PORT}"
    return ""
