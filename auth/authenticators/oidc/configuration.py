"""Validation of AuthenticationConfigurations, and their compiled expressions.

Upstream: k8s.io/apiserver/pkg/apis/apiserver/validation/validation.go.
"""

from collections.abc import Collection, Sequence
from typing import Final

from msgspec import Struct, field

from fakeapiserver.apimachinery import field as fields
from fakeapiserver.apimachinery import names
from fakeapiserver.apimachinery.field import ErrorList, Path
from fakeapiserver.apimachinery.go import url as go_url
from fakeapiserver.apimachinery.meta import FrozenObject
from fakeapiserver.auth.authenticators.oidc.expressions import Expression, of_claims, of_user
from fakeapiserver.transport.ca_bundle import check_bundle

ALGORITHMS: Final = ("ES256", "ES384", "ES512", "PS256", "PS384", "PS512", "RS256", "RS384", "RS512")
_MOST: Final = 64
_RESERVED: Final = ("kubernetes.io", "k8s.io")
_VERIFIED: Final = (
    "claims.email_verified must be used in claimMappings.username.expression or claimMappings.extra[*].valueExpression or "
    "claimValidationRules[*].expression when claims.email is used in claimMappings.username.expression"
)


class Mapper(Struct):
    """The compiled expressions of one issuer (upstream: CELMapper). `extra` goes by its keys."""

    username: Expression | None = None
    groups: Expression | None = None
    uid: Expression | None = None
    extra: list[tuple[str, Expression]] = field(default_factory=list)
    claim_rules: list[Expression] = field(default_factory=list)
    user_rules: list[Expression] = field(default_factory=list)

    @property
    def reads_claims(self) -> bool:
        return bool(self.username or self.groups or self.uid or self.extra or self.claim_rules)


def validate(config: FrozenObject, disallowed: Collection[str] = ()) -> ErrorList:
    """`disallowed` are issuers that this server is itself."""
    root, errors = Path("jwt"), []
    jwts: Sequence[FrozenObject] = config.get("jwt") or ()
    if len(jwts) > _MOST:
        return [fields.too_many(root, len(jwts), _MOST)]
    urls: set[str] = set()
    discoveries: set[str] = set()
    for i, jwt in enumerate(jwts):
        path, issuer = root.index(i), jwt.get("issuer") or {}
        errors += compile_jwt(jwt, path, disallowed)[1]
        for name, seen in (("url", urls), ("discoveryURL", discoveries)):
            value = issuer.get(name) or ""
            if value in seen and (value or name == "url"):
                errors.append(fields.duplicate(path.child("issuer", name), value))
            seen.add(value)
    anonymous = config.get("anonymous")
    if anonymous is not None and not anonymous.get("enabled") and anonymous.get("conditions"):
        detail = "enabled should be set to true when conditions are defined"
        shown = [{"Path": condition.get("path") or ""} for condition in anonymous["conditions"]]  # Go's own type
        errors.append(fields.invalid(Path("anonymous").child("conditions"), shown, detail))
    return errors


def compile_jwt(jwt: FrozenObject, path: Path | None, disallowed: Collection[str]) -> tuple[Mapper, ErrorList]:
    """Returns one issuer's compiled expressions, and its errors. `path` is None for an issuer by itself."""

    def place(name: str) -> Path:
        return path.child(name) if path is not None else Path(name)

    mapper = Mapper()
    errors = _issuer(jwt.get("issuer") or {}, place("issuer"), disallowed)
    errors += _claim_rules(jwt.get("claimValidationRules") or (), place("claimValidationRules"), mapper)
    errors += _mappings(jwt.get("claimMappings") or {}, place("claimMappings"), mapper)
    errors += _user_rules(jwt.get("userValidationRules") or (), place("userValidationRules"), mapper)
    return mapper, errors


def _issuer(issuer: FrozenObject, path: Path, disallowed: Collection[str]) -> ErrorList:
    url, discovery = issuer.get("url") or "", issuer.get("discoveryURL") or ""
    errors = _url(url, path.child("url"), disallowed) if url else [fields.required(path.child("url"))]
    if discovery:
        if url and url.rstrip("/") == discovery.rstrip("/"):
            detail = "discoveryURL must be different from URL"
            errors.append(fields.invalid(path.child("discoveryURL"), discovery, detail))
        errors += _url(discovery, path.child("discoveryURL"), ())
    errors += _audiences(issuer, path)
    if authority := issuer.get("certificateAuthority"):
        try:
            check_bundle("oidc", authority.encode())
        except ValueError:
            detail = "data does not contain any valid RSA or ECDSA certificates"
            errors.append(fields.invalid(path.child("certificateAuthority"), "<omitted>", detail))
    egress = issuer.get("egressSelectorType") or ""
    if egress and egress not in ("controlplane", "cluster"):
        detail = "egress selector must be either controlplane or cluster"
        errors.append(fields.invalid(path.child("egressSelectorType"), egress, detail))
    return errors


def _url(url: str, path: Path, disallowed: Collection[str]) -> ErrorList:
    errors: ErrorList = []
    if url in disallowed:
        shown = " ".join(sorted(disallowed))
        errors.append(fields.invalid(path, url, f"URL must not overlap with disallowed issuers: [{shown}]"))
    try:
        parts = go_url.parse(url)
    except ValueError as error:
        return [*errors, fields.invalid(path, url, str(error))]
    if parts.scheme != "https":
        errors.append(fields.invalid(path, url, "URL scheme must be https"))
    if "@" in parts.authority:
        errors.append(fields.invalid(path, url, "URL must not contain a username or password"))
    if parts.query:
        errors.append(fields.invalid(path, url, "URL must not contain a query"))
    if parts.fragment:
        errors.append(fields.invalid(path, url, "URL must not contain a fragment"))
    return errors


def _audiences(issuer: FrozenObject, path: Path) -> ErrorList:
    where, audiences, policy = (
        path.child("audiences"),
        issuer.get("audiences") or (),
        issuer.get("audienceMatchPolicy") or "",
    )
    if not audiences:
        return [fields.required(where, f"at least one {where} is required")]
    errors: ErrorList = []
    seen: set[str] = set()
    for i, audience in enumerate(audiences):
        if not audience:
            errors.append(fields.required(where.index(i)))
        if audience in seen:
            errors.append(fields.duplicate(where.index(i), audience))
        seen.add(audience)
    if policy != "MatchAny" and (policy or len(audiences) > 1):
        several = len(audiences) > 1
        detail = f"audienceMatchPolicy must be {'MatchAny for multiple audiences' if several else 'empty or MatchAny for single audience'}"
        errors.append(fields.invalid(path.child("audienceMatchPolicy"), policy, detail))
    return errors


def _claim_rules(rules: Sequence[FrozenObject], root: Path, mapper: Mapper) -> ErrorList:
    errors: ErrorList = []
    claims: set[str] = set()
    expressions: set[str] = set()
    for i, rule in enumerate(rules):
        path, claim, text = root.index(i), rule.get("claim") or "", rule.get("expression") or ""
        if claim and text:
            errors.append(fields.invalid(path, claim, "claim and expression can't both be set"))
        elif claim:
            if message := rule.get("message"):
                errors.append(fields.invalid(path.child("message"), message, "may not be specified when claim is set"))
            if claim in claims:
                errors.append(fields.duplicate(path.child("claim"), claim))
            claims.add(claim)
        elif text:
            if value := rule.get("requiredValue"):
                detail = "may not be specified when expression is set"
                errors.append(fields.invalid(path.child("requiredValue"), value, detail))
            if text in expressions:
                errors.append(fields.duplicate(path.child("expression"), text))
                continue
            expressions.add(text)
            try:
                mapper.claim_rules.append(of_claims(text, message=rule.get("message") or "", is_rule=True))
            except ValueError as error:
                errors.append(fields.invalid(path.child("expression"), text, str(error)))
        else:
            errors.append(fields.required(path, "claim or expression is required"))
    return errors


def _mappings(mappings: FrozenObject, path: Path, mapper: Mapper) -> ErrorList:
    username = mappings.get("username") or {}
    mapper.username, errors = _prefixed(username, path.child("username"), is_required=True)
    mapper.groups, more = _prefixed(mappings.get("groups") or {}, path.child("groups"), is_required=False)
    errors += more
    uid = mappings.get("uid") or {}
    if uid.get("claim") and uid.get("expression"):
        errors.append(fields.invalid(path.child("uid"), "", "claim and expression can't both be set"))
    elif text := uid.get("expression"):
        mapper.uid, more = _expression(text, path.child("uid", "expression"))
        errors += more
    errors += _extra(mappings.get("extra") or (), path.child("extra"), mapper)
    verified = [mapper.username, *(value for _, value in mapper.extra), *mapper.claim_rules]
    uses_email = mapper.username is not None and mapper.username.uses_claim("email")
    if uses_email and not any(mapping is not None and mapping.uses_claim("email_verified") for mapping in verified):
        errors.append(fields.invalid(path.child("username", "expression"), username["expression"], _VERIFIED))
    return errors


def _prefixed(mapping: FrozenObject, path: Path, *, is_required: bool) -> tuple[Expression | None, ErrorList]:
    claim, text, prefix = mapping.get("claim") or "", mapping.get("expression") or "", mapping.get("prefix")
    if text and claim:
        return None, [fields.invalid(path, "", "claim and expression can't both be set")]
    if text:
        detail = "may not be specified when expression is set"
        errors = [] if prefix is None else [fields.invalid(path.child("prefix"), prefix, detail)]
        expression, more = _expression(text, path.child("expression"))
        return expression, errors + more
    if claim and prefix is None:
        detail = "prefix is required when claim is set. It can be set to an empty string to disable prefixing"
        return None, [fields.required(path.child("prefix"), detail)]
    return None, [fields.required(path, "claim or expression is required")] if is_required and not claim else []


def _expression(text: str, path: Path) -> tuple[Expression | None, ErrorList]:
    try:
        return of_claims(text), []
    except ValueError as error:
        return None, [fields.invalid(path, text, str(error))]


def _extra(mappings: Sequence[FrozenObject], root: Path, mapper: Mapper) -> ErrorList:
    errors: ErrorList = []
    seen: set[str] = set()
    for i, mapping in enumerate(mappings):
        path, key, text = root.index(i), mapping.get("key") or "", mapping.get("valueExpression") or ""
        where = path.child("key")
        errors += names.validate_domain_prefixed_path(key, where)
        if key != key.lower():
            errors.append(fields.invalid(where, key, "must be lowercase"))
        domain, slash, _ = key.partition("/")
        if slash and any(domain == reserved or domain.endswith(f".{reserved}") for reserved in _RESERVED):
            detail = "k8s.io, kubernetes.io and their subdomains are reserved for Kubernetes use"
            errors.append(fields.invalid(where, key, detail))
        if key in seen:
            errors.append(fields.duplicate(where, key))
            continue
        seen.add(key)
        if not text:
            errors.append(fields.required(path.child("valueExpression")))
            continue
        expression, more = _expression(text, path.child("valueExpression"))
        errors += more
        if expression is not None:
            mapper.extra.append((key, expression))
    return errors


def _user_rules(rules: Sequence[FrozenObject], root: Path, mapper: Mapper) -> ErrorList:
    errors: ErrorList = []
    seen: set[str] = set()
    for i, rule in enumerate(rules):
        path, text = root.index(i).child("expression"), rule.get("expression") or ""
        if not text:
            errors.append(fields.required(path))
        elif text in seen:
            errors.append(fields.duplicate(path, text))
        else:
            seen.add(text)
            try:
                mapper.user_rules.append(of_user(text, rule.get("message") or ""))
            except ValueError as error:
                errors.append(fields.invalid(path, text, str(error)))
    return errors
