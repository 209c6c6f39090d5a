"""Each parser of outside text, fed with mutations of texts that it takes: a value, or the error that it promises.

With `--full` and atheris installed (an optional package), coverage chooses the mutations; else chance does.
"""

import importlib.util
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from conformance.robustness.guarantees.guarantee import Report
from conformance.robustness.guarantees.requests.values import NAUGHTY
from fakeapiserver.apimachinery import duration, fields, jsonpath, labels, quantity
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.apimachinery.patch import operations
from fakeapiserver.apimachinery.serializer import cbor, json, yaml
from fakeapiserver.auth import jose
from fakeapiserver.endpoints.negotiation import accept
from fakeapiserver.endpoints.request import parse_query
from fakeapiserver.languages.cel.errors import CompileError
from fakeapiserver.languages.cel.parser import parse as parse_cel
from fakeapiserver.storage import continue_token


class Target(Struct, frozen=True):
    """parse: takes bytes. errors: those that it may raise. seeds: texts that it takes."""

    parse: Callable[[bytes], object]
    errors: tuple[type[Exception], ...]
    seeds: Sequence[bytes]


def _of_text(parse: Callable[[str], object]) -> Callable[[bytes], object]:
    return lambda data: parse(data.decode(errors="replace"))


_JSON: Final = (
    b'{"a":[1,-2.5e3,true,null,"\\u00e9\\ud83d\\ude00"],"b":{"c":{}},"a":2}',
    b'[{"op":"add","path":"/a/-","value":{"x":1}},{"op":"move","from":"/a~1b","path":"/c"}]',
)
_YAML: Final = (
    b"a: &x [1, 0x1f, 1e3, ~, yes, '', \"\\x41\"]\nb: {c: *x, ? d : e}\nc: |\n  text\nd: >-\n  folded\n",
    b"%YAML 1.1\n---\n!!str a: !!binary YQ==\n<<: {b: c}\n...\n",
)
_TOKEN: Final = b"eyJhbGciOiJSUzI1NiIsImtpZCI6ImEifQ.eyJpc3MiOiJhIiwiZXhwIjoxZTMwfQ.YWJj"
_CONTINUE: Final = continue_token.encode("/registry/pods/default/a\0", "/registry/pods/", 7).encode()
TARGETS: Final[Mapping[str, Target]] = {
    "JSON": Target(json.decode, (ValueError,), _JSON),
    "JSON as written": Target(json.decode_as_written, (ValueError,), _JSON),
    "YAML": Target(yaml.decode, (ValueError,), (*_YAML, *_JSON)),
    "CBOR": Target(
        cbor.decode_map, (ValueError,), (b"\xd9\xd9\xf7\xa2Aa\x01Ab\x83\xf5\xf6\xfb@\t!\xfbTD-\x18", b"\xa1Aa_AbAc\xff")
    ),
    "JSON patch": Target(operations.decode, (ValueError, StatusError), _JSON[1:]),
    "label selector": Target(_of_text(labels.parse), (ValueError,), (b"a=b,c!=d,e in (f,g),!h,i notin (j),k,l>1",)),
    "field selector": Target(_of_text(fields.parse), (ValueError,), (b"metadata.name=a,status.phase!=b\\,c\\=d",)),
    "quantity": Target(_of_text(quantity.parse), (ValueError,), (b"1.5Gi", b"-100m", b"12E6", b"0.0000001n")),
    "duration": Target(_of_text(duration.parse_duration), (ValueError,), (b"-1h30m0.5s", b"100ms1us2ns")),
    "JSON path": Target(
        _of_text(jsonpath.compile_path),
        (ValueError,),
        (b"{.a['b'][?(@.c==1)][0:2:1]..d[*]}", b"{range .a[*]}{.b}{end}"),
    ),
    "continue token": Target(
        _of_text(lambda text: continue_token.decode(text, "/registry/pods/")), (StatusError,), (_CONTINUE,)
    ),
    "token": Target(_of_text(jose.parse), (ValueError,), (_TOKEN,)),
    "Accept": Target(
        _of_text(accept.parse), (ValueError,), (b"application/json;as=Table;v=v1;g=meta.k8s.io;q=0.5, */*;q=0.1",)
    ),
    "query": Target(parse_query, (ValueError,), (b"a=b&c=%41&d;e=%zz&watch&limit=5",)),
    "CEL": Target(
        _of_text(parse_cel),
        (CompileError, ValueError),
        (b"self.a.all(x, x in [1, 2u, 3.0e1]) ? has(self.b) : size({'a': b'c'}) > 1 && !d",),
    ),
}
# Seconds of one input, in processor time, and bytes of one.
_SLOW: Final = 2.0
_LONGEST: Final = 4096
_SHOWN: Final = 20


def fuzzing(full: bool) -> Report:
    """Three minutes for each parser in full, half a second for CI."""
    seconds = 180.0 if full else 0.5
    problems, figures = list[str](), dict[str, str]()
    has_atheris = full and importlib.util.find_spec("atheris") is not None
    for name, target in TARGETS.items():
        if has_atheris:
            figures[name], found = _guided(name, seconds)
        else:
            count, found = _mutated(target, seconds)
            figures[name] = f"{count:,} inputs"
        problems += [f"{name}: {text}" for text in found[:_SHOWN]]
    return Report({"mutations chosen by": "coverage (atheris)" if has_atheris else "chance", **figures}, problems)


def _mutated(target: Target, seconds: float) -> tuple[int, list[str]]:
    chance, found, count = random.Random(1), dict[str, str](), 0
    pool = [*target.seeds, *(text.encode(errors="replace") for text in NAUGHTY)]
    end = time.process_time() + seconds
    while (began := time.process_time()) < end:
        data = chance.choice(pool)
        for _ in range(chance.choice((1, 1, 2, 3, 8))):
            data = _mutation(data, chance, pool)[:_LONGEST]
        problem = tried(target, data)
        if time.process_time() - began > _SLOW:
            problem = f"takes {time.process_time() - began:.1f} s"
        if problem:
            found.setdefault(problem, repr(data[:300]))
        count += 1
    return count, [f"{problem}: {data}" for problem, data in found.items()]


def tried(target: Target, data: bytes) -> str:
    """Returns the error that the parser must not raise, with its place; empty for a value or an error that it may raise."""
    try:
        target.parse(data)
    except target.errors:
        return ""
    except Exception as error:
        last = error.__traceback__
        while last is not None and last.tb_next is not None:
            last = last.tb_next
        place = f"{Path(last.tb_frame.f_code.co_filename).name}:{last.tb_lineno}" if last is not None else ""
        return f"{type(error).__name__} at {place}"
    return ""


def _mutation(data: bytes, chance: random.Random, pool: Sequence[bytes]) -> bytes:
    place, length = chance.randrange(len(data) + 1), chance.choice((1, 1, 2, 4, 16))
    match chance.randrange(6):
        case 0:
            return data[:place] + bytes([chance.randrange(256)]) + data[place:]
        case 1:
            return data[:place] + data[place + length :]
        case 2:
            return data[:place] + data[place : place + length] * chance.choice((2, 3, 50)) + data[place + length :]
        case 3:
            other = chance.choice(pool)
            start = chance.randrange(len(other) + 1)
            return data[:place] + other[start : start + chance.choice((1, 4, 40))] + data[place:]
        case 4:
            return (
                data[:place]
                + chance.choice((b"{", b"}", b"[", b"]", b"(", b")", b'"', b"'", b"\\", b",", b":", b"\n", b"-", b"0"))
                + data[place:]
            )
        case _:
            return (
                data[:place] + bytes([data[place] ^ (1 << chance.randrange(8))]) + data[place + 1 :]
                if place < len(data)
                else data[::-1]
            )


_PROGRAM: Final = """
import atheris, sys
with atheris.instrument_imports(include=["fakeapiserver"]):
    from conformance.robustness.guarantees.requests.fuzzing import TARGETS, tried
target = TARGETS[sys.argv.pop(1)]
def test(data):
    problem = tried(target, data)
    if problem:
        raise RuntimeError(problem)
atheris.Setup(sys.argv, test)
atheris.Fuzz()
"""


def _guided(name: str, seconds: float) -> tuple[str, list[str]]:
    """Runs atheris in a process of its own, which ends with its first finding."""
    with tempfile.TemporaryDirectory(prefix="robustness-") as folder:
        for number, seed in enumerate(TARGETS[name].seeds):
            Path(folder, str(number)).write_bytes(seed)
        words = [
            sys.executable,
            "-c",
            _PROGRAM,
            name,
            folder,
            f"-max_total_time={seconds:.0f}",
            f"-max_len={_LONGEST}",
            "-timeout=20",
        ]
        done = subprocess.run(
            words, cwd=folder, capture_output=True, text=True, errors="replace", timeout=20 * seconds, check=False
        )
    lines = done.stderr.splitlines()
    figure = next((line for line in reversed(lines) if line.startswith("Done")), lines[-1] if lines else "")
    return figure, [] if done.returncode == 0 else ["\n".join(lines[-30:])]
