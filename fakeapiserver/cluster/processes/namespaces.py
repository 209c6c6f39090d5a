"""Starts a program in a network and a mount namespace of its own, as if it ran alone in a pod (Linux).

Its arguments are the path of a JSON file, the `Plan`, and the program with its arguments, which takes this process's place. In the
namespace all ports are free, the addresses and names of pods and Services lead to itself, and the files of a service account are there.
Processes that end with the program join what the namespace divides: the API server's port leads from inside to outside, the port of
webhooks from outside to inside. A sidecar may run beside the program. Without arguments it only finds out whether such namespaces are
allowed. It imports nothing of this package, since each start pays for it.
"""

import ctypes
import fcntl
import json
import os
import select
import signal
import socket
import stat
import struct
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

_HOST: Final = "127.0.0.1"
_ACCOUNT: Final = Path("/var/run/secrets/kubernetes.io/serviceaccount")
_FAILED: Final = 125
_NEW_MOUNTS, _NEW_USER, _NEW_NETWORK = 0x00020000, 0x10000000, 0x40000000
_BIND, _REC, _PRIVATE = 0x1000, 0x4000, 0x40000
_DIES_WITH_PARENT: Final = 1  # PR_SET_PDEATHSIG
_GET_FLAGS, _SET_FLAGS, _SET_ADDRESS, _SET_MASK = 0x8913, 0x8914, 0x8916, 0x891C
_UP: Final = 1
# Addresses of the loopback device and their masks: all of 8.0.0.0/5, 64.0.0.0/2 and 128.0.0.0/1 is local by them.
_ADDRESSES: Final = {
    "lo:1": ("10.244.255.254", "248.0.0.0"),
    "lo:2": ("100.64.255.254", "192.0.0.0"),
    "lo:3": ("192.168.255.254", "128.0.0.0"),
}
_RESOLVER: Final = Path("/etc/resolv.conf")
_SUFFIXES: Final = (b".svc", b".svc.cluster.local")
_SERVICE: Final = "10.96.255.254"
_NO_ERROR, _NO_SUCH_NAME = 0x8180, 0x8183
_A, _INTERNET = 1, 1
_CHUNK: Final = 1 << 16
_RESET: Final = struct.pack("ii", 1, 0)
_LIBC: Final = ctypes.CDLL(None, use_errno=True)
# Seconds for which a former program's port may still be open.
_PATIENCE: Final = 5.0


class Plan(NamedTuple):
    """`api_port`: the API server's. `webhooks`: the port outside and the one inside, or none. `files`: texts of the service account.
    `sidecar`: the words of a command, or none."""

    api_port: int
    webhooks: Sequence[int]
    files: Mapping[str, str]
    sidecar: Sequence[str]


def main(arguments: Sequence[str]) -> None:
    """Never returns, apart from a trial. Ends with a sentence on standard error and status 125 if something isn't allowed."""
    try:
        if not arguments:
            _divide()
            _fill({})
            return
        plan, words = Plan(**json.loads(Path(arguments[0]).read_text())), [*arguments[1:]]
        _start(plan)
    except OSError as error:
        print(f"isolate: {error.strerror}: {error.filename or 'no port'}", file=sys.stderr)
        sys.exit(_FAILED)
    os.execvp(words[0], words)


def _start(plan: Plan) -> None:
    """Makes the namespaces and the two processes."""
    outer = _listening(plan.webhooks[0]) if plan.webhooks else None
    here, there = socket.socketpair()
    if _forks():
        here.close()
        if outer is not None:
            outer.close()
        _, [number], _, _ = socket.recv_fds(there, 1, 1)
        _relay(socket.socket(fileno=number), plan.api_port)
    there.close()
    _divide()
    inner = _listening(plan.api_port)
    socket.send_fds(here, [b"."], [inner.fileno()])
    if outer is not None and _forks():
        inner.close()
        _relay(outer, plan.webhooks[1])
    _fill(plan.files)
    names = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    names.bind((_HOST, 53))
    if _forks():
        _resolve(names)
    if plan.sidecar and _forks():
        os.execvp(plan.sidecar[0], [*plan.sidecar])


def _divide() -> None:
    """Moves this process into namespaces of its own, in which it may mount file systems and configure its network."""
    user, group = os.geteuid(), os.getegid()
    if user != 0 or _LIBC.unshare(_NEW_NETWORK | _NEW_MOUNTS) != 0:
        _check(_LIBC.unshare(_NEW_USER | _NEW_NETWORK | _NEW_MOUNTS), "namespaces of users and networks")
        Path("/proc/self/setgroups").write_text("deny")
        Path("/proc/self/uid_map").write_text(f"{user} {user} 1")
        Path("/proc/self/gid_map").write_text(f"{group} {group} 1")
    _mount("none", Path("/"), "", _REC | _PRIVATE)
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as device:
        flags = struct.unpack_from("16sH", fcntl.ioctl(device, _GET_FLAGS, struct.pack("16s24x", b"lo")))[1]
        fcntl.ioctl(device, _SET_FLAGS, struct.pack("16sH22x", b"lo", flags | _UP))
        for name, values in _ADDRESSES.items():
            for request, value in zip((_SET_ADDRESS, _SET_MASK), values, strict=True):
                place = struct.pack("16sHH4s16x", name.encode(), socket.AF_INET, 0, socket.inet_aton(value))
                fcntl.ioctl(device, request, place)
    with suppress(OSError):  # as container runtimes do
        Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").write_text("0")


def _fill(files: Mapping[str, str]) -> None:
    """Puts the files of the service account in their place: the deepest folder of it that is there becomes one in memory, with the same
    entries and the new ones."""
    present = next(each for each in (_ACCOUNT, *_ACCOUNT.parents) if each.is_dir())
    rest, present = _ACCOUNT.relative_to(present), present.resolve()
    before = os.open(present, os.O_PATH | os.O_DIRECTORY)
    entries = [] if rest == Path() else os.listdir(f"/proc/self/fd/{before}")
    _mount("tmpfs", present, "tmpfs", 0)
    for entry in entries:
        source, target = Path(f"/proc/self/fd/{before}", entry), present / entry
        mode = source.lstat().st_mode
        if stat.S_ISLNK(mode):
            target.symlink_to(source.readlink())
            continue
        if stat.S_ISDIR(mode):
            target.mkdir()
        else:
            target.touch()
        with suppress(OSError):  # what this user may not even see
            _mount(str(source), target, "", _BIND | _REC)
    folder = present / rest
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / name).write_text(text)
    if _RESOLVER.exists():
        _mount(str(_resolver_file(folder, files)), _RESOLVER.resolve(), "", _BIND)
    os.close(before)


def _resolver_file(folder: Path, files: Mapping[str, str]) -> Path:
    """The file by which programs find the names of a pod's namespace."""
    path = folder / ".resolv.conf"
    namespace = files.get("namespace", "default")
    path.write_text(
        f"nameserver {_HOST}\nsearch {namespace}.svc.cluster.local svc.cluster.local cluster.local\noptions ndots:5\n"
    )
    return path


def _resolve(names: socket.socket) -> None:
    """Gives all names of Services, and of pods of Services, one address. Never returns."""
    while True:
        query, client = names.recvfrom(512)
        with suppress(IndexError, OSError, struct.error):
            names.sendto(_answer(query), client)


def _answer(query: bytes) -> bytes:
    """The answer to a question of DNS."""
    end, labels = 12, []
    while length := query[end]:
        labels.append(query[end + 1 : end + 1 + length])
        end += 1 + length
    kind: int = struct.unpack_from("!H", query, end + 1)[0]
    is_known = b".".join(labels).lower().endswith(_SUFFIXES)
    has_address = is_known and kind == _A
    flags = _NO_ERROR if is_known else _NO_SUCH_NAME
    head = query[:2] + struct.pack("!HHHHH", flags, 1, int(has_address), 0, 0)
    address = struct.pack("!HHHIH4s", 0xC00C, _A, _INTERNET, 5, 4, socket.inet_aton(_SERVICE)) if has_address else b""
    return head + query[12 : end + 5] + address


def _mount(source: str, target: Path, kind: str, flags: int) -> None:
    _check(_LIBC.mount(source.encode(), os.fsencode(target), kind.encode(), flags, None), f"mounting {target}")


def _check(result: int, subject: str) -> None:
    if result != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), subject)


def _listening(port: int) -> socket.socket:
    """A socket that listens, once a former program's is closed."""
    end = time.monotonic() + _PATIENCE
    while True:
        try:
            return socket.create_server((_HOST, port), backlog=128)
        except OSError:
            if time.monotonic() > end:
                raise
            time.sleep(0.01)


def _forks() -> bool:
    """Reports whether this is a new process, which ends when its parent does, but isn't asked to end with it."""
    parent = os.getpid()
    if os.fork():
        return False
    _LIBC.prctl(_DIES_WITH_PARENT, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    return True


def _relay(listener: socket.socket, port: int) -> None:
    """Leads each connection to a port of the namespace in which this process is. Never returns."""
    while True:
        connection, _ = listener.accept()
        threading.Thread(target=_lead, args=(connection, port), daemon=True).start()


def _lead(connection: socket.socket, port: int) -> None:
    """Copies both directions until both have ended. What breaks on one side is reset on the other one, too."""
    with connection:
        try:
            other = socket.create_connection((_HOST, port))
        except OSError:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            return
        with other:
            try:
                _copy(connection, other)
            except OSError:
                for each in (connection, other):
                    each.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def _copy(one: socket.socket, other: socket.socket) -> None:
    targets = {one.fileno(): (one, other), other.fileno(): (other, one)}
    poll = select.poll()
    for each in (one, other):
        each.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        poll.register(each, select.POLLIN)
    while targets:
        for number, _ in poll.poll():
            source, target = targets[number]
            data = source.recv(_CHUNK)
            if data:
                target.sendall(data)
            else:
                poll.unregister(source)
                del targets[number]
                target.shutdown(socket.SHUT_WR)


if __name__ == "__main__":
    main(sys.argv[1:])
