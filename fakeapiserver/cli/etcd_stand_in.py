"""Replaces the etcd that envtest starts next to kube-apiserver: responds to health checks and stores nothing.

Runs as a separate program: `python -I -S etcd_stand_in.py PARENT [etcd's flags]`. It imports nothing of this package, and what `socket` is
made of instead of `socket`, whose import takes as long as all the rest. Upstream: etcd's server/etcdmain, server/etcdserver/api/etcdhttp.
"""

import _socket
import os
import select
import sys

VERSION = "3.6.8"  # the release whose flags are recorded
VERSIONS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../apis/versions")
LARGEST_REQUEST = 1 << 20  # bytes
PARENT_CHECK = 1000  # milliseconds
_CORS = (
    "Access-Control-Allow-Headers: accept, content-type, authorization\r\n"
    "Access-Control-Allow-Methods: POST, GET, OPTIONS, PUT, DELETE\r\n"
    "Access-Control-Allow-Origin: *\r\n"
)
_TEXT = "text/plain; charset=utf-8"
_PATHS = {
    "/health": (_TEXT, '{"health":"true","reason":""}'),
    "/livez": (_TEXT, "ok\n"),
    "/readyz": (_TEXT, "ok\n"),
    "/version": ("application/json", f'{{"etcdserver":"{VERSION}","etcdcluster":"3.6.0","storage":"3.6.0"}}'),
}


class UsageError(ValueError):
    """The command line is wrong; the text is etcd's sentence."""


def main(words: list[str]) -> int:
    """0 after --help and --version, 1 when it can't listen, 2 for a wrong command line. A signal ends it as it ends etcd."""
    parent, *arguments = words
    try:
        flags = parse(arguments, read_flags())
        if "help" in flags or "h" in flags:
            print(help_text(), end="")
            return 0
        if "version" in flags:
            print(f"etcd Version: {VERSION}\nfakeapiserver's stand-in: it keeps nothing")
            return 0
        addresses = client_addresses(flags)
    except UsageError as error:
        print(f"{error} (see etcd --help)", file=sys.stderr)
        return 2
    try:
        listeners = [listen(host, port) for host, port in addresses]
    except (OSError, OverflowError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        print(f"can't listen on {flags['listen-client-urls']}: {reason}", file=sys.stderr)
        return 1
    serve(listeners, int(parent))
    return 0


def read_flags() -> dict[str, str]:
    """Flag -> its default as etcd's help shows it. The recorded file has a flag a line."""
    with open(os.path.join(VERSIONS, max(os.listdir(VERSIONS)), "etcd_flags.txt"), encoding="utf-8") as file:
        return dict(line.rstrip("\n").split(" ", 1) for line in file)


def parse(arguments: list[str], known: dict[str, str]) -> dict[str, str]:
    """Go's flag package: `-name value`, `--name=value`, `--name` alone where it is a boolean."""
    given = {}
    words = list(arguments)
    while words:
        word = words.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not name:
            raise UsageError(f'"{word}" is not a valid flag')
        if name in ("h", "help", "version"):
            value = "true"
        elif name not in known:
            raise UsageError(f"flag provided but not defined: -{name}")
        elif not equals and known[name] in ("'true'", "'false'"):
            value = "true"
        elif not equals:
            if not words:
                raise UsageError(f"flag needs an argument: -{name}")
            value = words.pop(0)
        given[name] = value
    return given


def client_addresses(flags: dict[str, str]) -> list[tuple[str, int]]:
    """Returns the addresses of --listen-client-urls; etcd's default is http://localhost:2379."""
    urls = flags.setdefault("listen-client-urls", "http://localhost:2379")
    addresses = []
    for url in urls.split(","):
        scheme, _, place = url.partition("://")
        host, _, port = place.rstrip("/").rpartition(":")
        if scheme != "http" or not host or not port.isdecimal():
            raise UsageError(f"--listen-client-urls: {url} is not of the form http://ADDRESS:PORT")
        addresses.append((host.strip("[]"), int(port)))
    return addresses


def listen(host: str, port: int) -> _socket.socket:
    family = _socket.AF_INET6 if ":" in host else _socket.AF_INET
    listener = _socket.socket(family, _socket.SOCK_STREAM)
    listener.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
    listener.bind((host, port))
    listener.listen(128)
    listener.setblocking(False)
    return listener


def serve(listeners: list[_socket.socket], parent: int) -> None:
    """Serves a single request per connection, until the process `parent` that started it is gone (0: whatever comes)."""
    poll = select.poll()
    sockets = {listener.fileno(): listener for listener in listeners}
    received: dict[int, bytes] = {}
    for descriptor in sockets:
        poll.register(descriptor, select.POLLIN)
    while not parent or lives(parent):
        for descriptor, _ in poll.poll(PARENT_CHECK):
            if descriptor not in received:
                accept(sockets, descriptor, received, poll)
            elif answered(sockets[descriptor], received):
                poll.unregister(descriptor)
                del received[descriptor]
                sockets.pop(descriptor).close()


def lives(parent: int) -> bool:
    """Reports whether the process that started this one is still there."""
    if not getattr(sys, "frozen", False):
        return os.getppid() == parent
    try:  # the single file's own first process stands between the two
        os.kill(parent, 0)
    except OSError as error:
        return isinstance(error, PermissionError)
    return True


def accept(sockets: dict[int, _socket.socket], listening: int, received: dict[int, bytes], poll: select.poll) -> None:
    try:
        descriptor, _ = sockets[listening]._accept()  # type: ignore[attr-defined]  # what socket.accept calls
    except OSError:  # the client has gone again
        return
    sockets[descriptor] = _socket.socket(fileno=descriptor)
    sockets[descriptor].setblocking(False)
    received[descriptor] = b""
    poll.register(descriptor, select.POLLIN)


def answered(connection: _socket.socket, received: dict[int, bytes]) -> bool:
    """Reports whether this connection is done with: answered, closed by the client or talking nonsense."""
    descriptor = connection.fileno()
    try:
        data = connection.recv(65536)
        head = received[descriptor] = received[descriptor] + data
        if b"\r\n\r\n" in head:
            connection.send(answer(head).encode())  # a few hundred bytes: they fit into the empty buffer
            return True
    except OSError:
        return True
    return not data or len(head) > LARGEST_REQUEST


def answer(head: bytes) -> str:
    method, _, rest = head.partition(b"\r\n")[0].decode("latin-1").partition(" ")
    path = rest.partition(" ")[0].partition("?")[0]
    media_type, body = _PATHS.get(path, (_TEXT, "404 page not found\n"))
    status, extra = ("200 OK" if path in _PATHS else "404 Not Found"), ""
    if path in _PATHS and method != "GET":
        status, media_type, body, extra = "405 Method Not Allowed", _TEXT, "Method Not Allowed\n", "Allow: GET\r\n"
    length = f"Content-Length: {len(body)}\r\nContent-Type: {media_type}\r\nConnection: close\r\n\r\n"
    return f"HTTP/1.1 {status}\r\n{_CORS}{extra}{length}{body}"


def help_text() -> str:
    lines = "\n".join(f"  --{name} {default}" for name, default in read_flags().items())
    return (
        "usage: etcd [FLAG ...]\n\nfakeapiserver's stand-in for etcd: it answers /health on --listen-client-urls and keeps nothing.\n"
        f"All of etcd's flags are accepted:\n\n{lines}\n"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
