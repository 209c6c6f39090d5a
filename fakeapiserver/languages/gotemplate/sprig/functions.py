"""The table of Sprig's functions, made for one clock and one source of random values."""

import base64
import math
import random as random_module
import re
import string
import zlib
from collections.abc import Callable, Mapping
from decimal import Decimal
from typing import Any, Final

from fakeapiserver.languages.gotemplate.sprig import (
    conversions,
    crypto,
    defaults,
    dicts,
    json_text,
    lists,
    moments,
    numbers,
    paths,
    regex,
    semver,
    strings,
)
from fakeapiserver.languages.gotemplate.values import Function, function, shown, type_name

_PLAIN: Final[Mapping[str, Callable[..., Any]]] = {
    "hello": lambda: "Hello!",
    "int": conversions.to_int, "int64": conversions.to_int, "float64": conversions.to_float,
    "toDecimal": conversions.to_decimal, "toString": shown,
    "toStrings": conversions.strings, "toJson": json_text.to_json, "mustToJson": json_text.to_json,
    "toRawJson": json_text.to_raw_json, "mustToRawJson": json_text.to_raw_json,
    "toPrettyJson": json_text.to_pretty_json, "mustToPrettyJson": json_text.to_pretty_json,
    "fromJson": json_text.from_json,
    "mustFromJson": json_text.must_from_json,
    "quote": strings.quote, "squote": strings.squote, "cat": strings.cat, "indent": strings.indent,
    "nindent": strings.nindent, "repeat": strings.repeat,
    "trunc": strings.trunc, "substr": strings.substr, "title": strings.title, "untitle": strings.untitle,
    "abbrev": strings.abbrev, "abbrevboth": strings.abbrevboth,
    "initials": strings.initials, "nospace": strings.nospace, "camelcase": strings.camelcase, "split": strings.split,
    "splitn": strings.splitn,
    "splitList": strings.split_list, "join": strings.join, "wrapWith": strings.wrap_with, "plural": strings.plural,
    "sha1sum": crypto.sum_of("sha1"), "sha256sum": crypto.sum_of("sha256"), "sha512sum": crypto.sum_of("sha512"),
    "b64dec": crypto.decoded(lambda data: base64.b64decode(data, validate=True), "base64"),
    "b32dec": crypto.decoded(base64.b32decode, "base32"),
    "until": numbers.until, "untilStep": numbers.until_step, "seq": numbers.seq, "add": numbers.add,
    "sub": numbers.sub, "mul": numbers.mul, "div": numbers.div, "mod": numbers.mod,
    "max": numbers.extreme(max, conversions.to_int), "biggest": numbers.extreme(max, conversions.to_int),
    "min": numbers.extreme(min, conversions.to_int),
    "maxf": numbers.extreme(max, conversions.to_float), "minf": numbers.extreme(min, conversions.to_float),
    "round": numbers.rounded,
    "add1": lambda value: numbers.wrapped(conversions.to_int(value) + 1),
    "add1f": lambda value: numbers.addf(value, 1), "addf": numbers.addf,
    "subf": numbers.decimals(Decimal.__sub__), "mulf": numbers.decimals(Decimal.__mul__),
    "divf": numbers.decimals(Decimal.__truediv__),
    "ceil": lambda value: float(math.ceil(conversions.to_float(value))),
    "floor": lambda value: float(math.floor(conversions.to_float(value))),
    "list": lists.new_list, "tuple": lists.new_list, "append": lists.append, "push": lists.append,
    "mustAppend": lists.append, "mustPush": lists.append,
    "prepend": lists.prepend, "mustPrepend": lists.prepend, "first": lists.first, "mustFirst": lists.first,
    "last": lists.last, "mustLast": lists.last,
    "rest": lists.rest, "mustRest": lists.rest, "initial": lists.initial, "mustInitial": lists.initial,
    "reverse": lists.reverse,
    "mustReverse": lists.reverse, "uniq": lists.uniq, "mustUniq": lists.uniq, "without": lists.without,
    "mustWithout": lists.without, "has": lists.has,
    "mustHas": lists.has, "compact": lists.compact, "mustCompact": lists.compact, "slice": lists.slice_of,
    "mustSlice": lists.slice_of, "concat": lists.concat,
    "chunk": lists.chunk, "mustChunk": lists.chunk, "sortAlpha": lists.sort_alpha,
    "dict": dicts.new_dict, "get": dicts.get, "set": dicts.set_key, "unset": dicts.unset_key, "hasKey": dicts.has_key,
    "pluck": dicts.pluck, "keys": dicts.keys,
    "values": dicts.values, "pick": dicts.pick, "omit": dicts.omit, "merge": dicts.merging(overwrite=False),
    "mustMerge": dicts.merging(overwrite=False), "mergeOverwrite": dicts.merging(overwrite=True),
    "mustMergeOverwrite": dicts.merging(overwrite=True), "deepCopy": dicts.deep_copy, "mustDeepCopy": dicts.deep_copy,
    "dig": dicts.dig,
    "default": defaults.default, "empty": defaults.empty, "coalesce": defaults.coalesce, "all": defaults.all_filled,
    "any": defaults.any_filled, "ternary": defaults.ternary,
    "fail": defaults.fail, "typeOf": type_name, "kindOf": conversions.kind,
    "deepEqual": lambda one, other: type_name(one) == type_name(other) and one == other,
    "regexMatch": regex.match, "mustRegexMatch": regex.must_match, "regexFind": regex.find, "mustRegexFind": regex.find,
    "regexFindAll": regex.find_all, "mustRegexFindAll": regex.find_all, "regexReplaceAll": regex.replace_all,
    "mustRegexReplaceAll": regex.replace_all, "regexReplaceAllLiteral": regex.replace_all_literal,
    "mustRegexReplaceAllLiteral": regex.replace_all_literal, "regexSplit": regex.split, "mustRegexSplit": regex.split,
    "base": paths.base, "osBase": paths.base, "dir": paths.directory, "osDir": paths.directory, "clean": paths.clean,
    "osClean": paths.clean, "ext": paths.ext,
    "osExt": paths.ext, "urlParse": paths.url_parse, "urlJoin": paths.url_join, "semver": semver.parse,
    "semverCompare": semver.compare,
}  # fmt: skip


def _of_text(call: Callable[[str], Any]) -> Callable[..., Any]:
    def run(text: str) -> Any:
        return call(text)

    return run


def _of_two_texts(call: Callable[[str, str], Any]) -> Callable[..., Any]:
    def run(one: str, other: str) -> Any:
        return call(one, other)

    return run


_OF_ONE_TEXT: Final[Mapping[str, Callable[[str], Any]]] = {
            "upper": str.upper, "lower": str.lower, "trim": str.strip, "swapcase": str.swapcase,
            "snakecase": lambda text: "_".join(strings.words(text)).lower(),
            "kebabcase": lambda text: "-".join(strings.words(text)).lower(),
            "b64enc": lambda text: base64.b64encode(text.encode()).decode(),
            "b32enc": lambda text: base64.b32encode(text.encode()).decode(),
            "adler32sum": lambda text: str(zlib.adler32(text.encode())), "isAbs": lambda text: text.startswith("/"),
            "osIsAbs": lambda text: text.startswith("/"),
            "regexQuoteMeta": lambda text: re.sub(r"([\\.+*?()|\[\]{}^$])", r"\\\1", text),
        }  # fmt: skip
_OF_TWO_TEXTS: Final[Mapping[str, Callable[[str, str], Any]]] = {
            "contains": lambda part, text: part in text, "hasPrefix": lambda part, text: text.startswith(part),
            "hasSuffix": lambda part, text: text.endswith(part), "trimAll": lambda chars, text: text.strip(chars),
            "trimall": lambda chars, text: text.strip(chars), "trimPrefix": lambda part, text: text.removeprefix(part),
            "trimSuffix": lambda part, text: text.removesuffix(part),
        }  # fmt: skip
_TEXTS: Final[Mapping[str, Callable[..., Any]]] = {
    **{name: _of_text(call) for name, call in _OF_ONE_TEXT.items()},
    **{name: _of_two_texts(call) for name, call in _OF_TWO_TEXTS.items()},
    "replace": strings.replace,
    "wrap": strings.wrap,
    "atoi": conversions.atoi,
}


def sprig_functions(now: Callable[[], float], random: random_module.Random) -> dict[str, Function]:
    """`now`: seconds since the epoch."""
    at = moments.Moments(now, random)
    timed: dict[str, Callable[..., Any]] = {
        "now": at.current, "date": at.date, "dateInZone": at.date_in_zone, "date_in_zone": at.date_in_zone,
        "htmlDate": at.html_date, "htmlDateInZone": at.html_date_in_zone, "dateModify": at.date_modify,
        "date_modify": at.date_modify,
        "mustDateModify": at.must_date_modify, "must_date_modify": at.must_date_modify, "toDate": at.to_date,
        "mustToDate": at.must_to_date, "ago": at.ago, "duration": at.duration, "durationRound": at.duration_round,
        "unixEpoch": at.unix_epoch, "randAlphaNum": at.chars(string.ascii_letters + string.digits),
        "randAlpha": at.chars(string.ascii_letters), "randNumeric": at.chars(string.digits),
        "randAscii": at.chars([*map(chr, range(32, 127))]), "randInt": at.rand_int, "randBytes": at.rand_bytes,
        "shuffle": at.shuffle,
        "uuidv4": at.uuid,
        "typeIs": conversions.type_is, "typeIsLike": conversions.type_is, "kindIs": conversions.kind_is,
    }  # fmt: skip
    return {name: function(name, call) for name, call in {**_PLAIN, **_TEXTS, **timed}.items()}
