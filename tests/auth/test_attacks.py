"""Attacks that must fail, as they fail on a real server (compared with kube-apiserver 1.36.3 one by one).

More tokens are in test_service_account_tokens.py and test_oidc.py, who would hold the server up in test_holding_up.py, what no Go
server takes for HTTP in tests/server/http/test_edge.py, and who may write which role in conformance/exchanges/auth."""

import asyncio
import base64
import hmac
import json
import logging
import ssl
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

from fakeapiserver import Cluster
from fakeapiserver.apimachinery.errors import StatusError
from fakeapiserver.auth.authenticators.x509 import X509
from fakeapiserver.auth.interfaces import Credentials

# ------------------------------------------------------------------- certificates

DAY = timedelta(days=1)
NOW = datetime.now(UTC)
NO_VALUE = b"\5\0"


@dataclass
class Certified:
    certificate: x509.Certificate
    key: ec.EllipticCurvePrivateKey

    @property
    def der(self) -> bytes:
        return self.certificate.public_bytes(Encoding.DER)


def name(common: str, *organizations: str) -> x509.Name:
    groups = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, item) for item in organizations]
    return x509.Name([*groups, x509.NameAttribute(NameOID.COMMON_NAME, common)])


def issued(
    by: Certified | None,
    subject: x509.Name,
    *critical: x509.ExtensionType,
    usage: ObjectIdentifier | None = ExtendedKeyUsageOID.CLIENT_AUTH,
    begins: timedelta = -DAY,
    ends: timedelta = DAY,
    digest: Any = None,
) -> Certified:
    key = ec.generate_private_key(ec.SECP256R1())
    builder = x509.CertificateBuilder(
        issuer_name=by.certificate.subject if by else subject,
        subject_name=subject,
        public_key=key.public_key(),
        serial_number=x509.random_serial_number(),
        not_valid_before=NOW + begins,
        not_valid_after=NOW + ends,
    )
    if usage is not None:
        builder = builder.add_extension(x509.ExtendedKeyUsage([usage]), critical=False)
    for extension in critical:
        builder = builder.add_extension(extension, critical=True)
    return Certified(builder.sign(by.key if by else key, digest or hashes.SHA256()), key)


def may(*, sign: bool) -> x509.KeyUsage:
    return x509.KeyUsage(not sign, False, False, False, False, sign, False, False, False)


def authority(common: str, by: Certified | None = None, *more: x509.ExtensionType, **how: Any) -> Certified:
    basic = [] if any(isinstance(item, x509.BasicConstraints) for item in more) else [x509.BasicConstraints(True, None)]
    return issued(by, name(common), *basic, *more, usage=how.pop("usage", None), **how)


ROOT = authority("root", None, may(sign=True))
SHALLOW = authority("shallow", None, x509.BasicConstraints(True, 0))
UNMARKED = issued(None, name("unmarked"), may(sign=True), usage=None)
MUTE = authority("mute", None, may(sign=False))
EXPIRED = authority("expired", begins=-3 * DAY, ends=-DAY)
SERVERS_ONLY = authority("servers", usage=ExtendedKeyUsageOID.SERVER_AUTH)
NARROW = authority("narrow", None, x509.NameConstraints([x509.DNSName("good.example")], None))
BY_DIRECTORY = authority("directory", None, x509.NameConstraints([x509.DirectoryName(name("jane"))], None))
TRUSTED = (ROOT, SHALLOW, UNMARKED, MUTE, EXPIRED, SERVERS_ONLY, NARROW, BY_DIRECTORY)
JANE = name("jane", "devs")


def through(*steps: Certified, subject: x509.Name = JANE) -> tuple[Certified, ...]:
    """A client's certificate of the last of some authorities, and those authorities as the client sends them."""
    return issued(steps[-1], subject), *reversed(steps)


def deep(length: int) -> tuple[Certified, ...]:
    steps = [ROOT]
    for number in range(length):
        steps.append(authority(f"step {number}", steps[-1]))
    return through(*steps[1:])


def alternative(*names: x509.GeneralName) -> x509.SubjectAlternativeName:
    return x509.SubjectAlternativeName(names)


def found(chain: Sequence[Certified]) -> tuple[str, tuple[str, ...]] | None:
    bundle = b"".join(item.certificate.public_bytes(Encoding.PEM) for item in TRUSTED)
    leaf, *others = (item.der for item in chain)
    user = asyncio.run(X509(bundle).authenticate(Credentials(peer_certificate=leaf, peer_chain=tuple(others))))
    return (user.name, user.groups) if user else None


ACCEPTED = {
    "of the authority": (issued(ROOT, JANE),),
    "for any usage": (issued(ROOT, JANE, usage=ExtendedKeyUsageOID.ANY_EXTENDED_KEY_USAGE),),
    "for no usage in particular": (issued(ROOT, JANE, usage=None),),
    "by an authority in between": through(authority("between", ROOT)),
    "by the last authority of a short path": (issued(SHALLOW, JANE),),
    "within name constraints": (issued(NARROW, JANE, alternative(x509.DNSName("a.good.example"))),),
    "without names to constrain": (issued(NARROW, JANE),),
    "with a policy nobody asks for": (
        issued(ROOT, JANE, x509.CertificatePolicies([x509.PolicyInformation(ObjectIdentifier("1.2.3.4"), None)])),
    ),
}
REFUSED = {
    "expired": (issued(ROOT, JANE, begins=-3 * DAY, ends=-DAY),),
    "not valid yet": (issued(ROOT, JANE, begins=DAY, ends=2 * DAY),),
    "of another authority with the same name": (issued(authority("root"), name("jane", "system:masters")),),
    "its own authority": (issued(None, name("jane", "system:masters")),),
    "a server's": (issued(ROOT, JANE, usage=ExtendedKeyUsageOID.SERVER_AUTH),),
    "for signing code": (issued(ROOT, JANE, usage=ExtendedKeyUsageOID.CODE_SIGNING),),
    "by an authority that has expired": (issued(EXPIRED, JANE),),
    "by an authority that isn't marked as one": (issued(UNMARKED, JANE),),
    "by an authority that may not sign": (issued(MUTE, JANE),),
    "by an authority for servers": (issued(SERVERS_ONLY, JANE),),
    "by a client": through(issued(ROOT, JANE), subject=name("boss", "system:masters")),
    "by what is no authority": through(issued(ROOT, name("x"), x509.BasicConstraints(False, None), may(sign=True))),
    "by what has only the key usage of one": through(issued(ROOT, name("x"), may(sign=True), usage=None)),
    "by an authority in between that may not sign": through(authority("x", ROOT, may(sign=False))),
    "by an authority in between for servers": through(authority("x", ROOT, usage=ExtendedKeyUsageOID.SERVER_AUTH)),
    "by an authority in between that has expired": through(authority("x", ROOT, begins=-3 * DAY, ends=-DAY)),
    "without the authority in between": through(authority("between", ROOT))[:1],
    "a path that is too long": through(authority("between", SHALLOW)),
    "a chain of 101": deep(101),
    "outside name constraints": (issued(NARROW, JANE, alternative(x509.DNSName("bad.example"))),),
    "with constraints nobody understands": (issued(BY_DIRECTORY, name("jane")),),
    "signed with SHA-224": (issued(ROOT, JANE, digest=hashes.SHA224()),),
    "with an extension nobody understands": (
        issued(ROOT, JANE, x509.UnrecognizedExtension(ObjectIdentifier("1.2.3.4"), NO_VALUE)),
    ),
    "with critical names nobody understands": (issued(ROOT, JANE, alternative(x509.DirectoryName(name("x")))),),
    "with a policy that must be there and isn't": (issued(ROOT, JANE, x509.PolicyConstraints(0, 0)),),
    "with a critical extension that OpenSSL knows and Go doesn't": (issued(ROOT, JANE, x509.OCSPNoCheck()),),
}


@pytest.mark.parametrize("chain", ACCEPTED.values(), ids=list(ACCEPTED))
def test_a_good_certificate_is_its_users(chain: tuple[Certified, ...]) -> None:
    assert found(chain) == ("jane", ("devs", "system:authenticated"))


@pytest.mark.parametrize("chain", REFUSED.values(), ids=list(REFUSED))
def test_a_bad_certificate_is_nobodys(chain: tuple[Certified, ...]) -> None:
    with pytest.raises(StatusError) as refused:
        found(chain)
    assert refused.value.status["code"] == 401
    assert refused.value.status["message"] == "Unauthorized"


def test_a_certificate_without_a_name_is_no_credential() -> None:
    nameless = x509.Name([x509.NameAttribute(NameOID.ORGANIZATION_NAME, "system:masters")])
    assert found([issued(ROOT, nameless)]) is None


# ------------------------------------------------------------------- requests, through TLS

REVIEW = b'{"apiVersion":"authentication.k8s.io/v1","kind":"SelfSubjectReview"}'
REVIEWS = b"POST /apis/authentication.k8s.io/v1/selfsubjectreviews HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
REVIEWS += b"Content-Type: application/json\r\n"
SECRETS = b"/api/v1/secrets"


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    with Cluster(controllers=()) as running:
        yield running


def ask(cluster: Cluster, request: bytes) -> list[tuple[int, dict[str, Any]]]:
    """The status and the body of every answer. `TOKEN` stands for the administrator's."""

    async def main() -> bytes:
        context = ssl.create_default_context(cadata=cluster.ca.decode())
        port = int(cluster.url.rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context)
        writer.write(request.replace(b"TOKEN", cluster.token.encode()))
        try:
            return await asyncio.wait_for(reader.read(), 60)
        finally:
            writer.close()

    answers = []
    for answer in asyncio.run(main()).split(b"HTTP/1.1 ")[1:]:
        head, _, body = answer.partition(b"\r\n\r\n")
        answers.append((int(head[:3]), json.loads(body) if body.startswith(b"{") else {"message": body.decode()}))
    return answers


def who(cluster: Cluster, headers: bytes) -> tuple[int, str]:
    """Returns the user of a request with these headers, or the reason for its rejection."""
    request = b"%b%bContent-Length: %d\r\n\r\n%b" % (REVIEWS, headers, len(REVIEW), REVIEW)
    [(status, answer)] = ask(cluster, request)
    return status, answer["status"]["userInfo"]["username"] if status == 201 else answer["message"]


ADMIN = b"Authorization: Bearer TOKEN\r\n"
AS_JANE = ADMIN + b"Impersonate-User: jane\r\n"
SOCKET = b"Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Protocol: v4, "
SUBPROTOCOL = b"base64url.bearer.authorization.k8s.io."
NOBODY = (
    403,
    'selfsubjectreviews.authentication.k8s.io is forbidden: User "system:anonymous" cannot create resource '
    '"selfsubjectreviews" in API group "authentication.k8s.io" at the cluster scope',
)
UNAUTHORIZED = (401, "Unauthorized")


@pytest.mark.parametrize(
    ("headers", "expected"),
    [
        (b"", NOBODY),
        (b"X-Remote-User: boss\r\nX-Remote-Group: system:masters\r\n", NOBODY),
        (b"x_remote_user: boss\r\nX-Forwarded-User: boss\r\nCookie: token=TOKEN\r\n", NOBODY),
        (b"Proxy-Authorization: Bearer TOKEN\r\n", NOBODY),
        (b"Authorization: Basic YTpi\r\n", NOBODY),
        (b"Authorization: Bearer\r\n", NOBODY),
        (b"Authorization: Bearer  TOKEN\r\n", NOBODY),
        (b"Authorization: Bearer\tTOKEN\r\n", NOBODY),
        (b"Authorization: Bearer TOKE\r\n", UNAUTHORIZED),
        (b'Authorization: Bearer "TOKEN"\r\n', UNAUTHORIZED),
        (b"Authorization: Bearer TOKEN,\r\n", UNAUTHORIZED),
        (b"Authorization: Bearer %b\r\n" % (b"a" * 900_000), UNAUTHORIZED),
        (b"Authorization: Bearer nope\r\n" + ADMIN, UNAUTHORIZED),
        (SOCKET + SUBPROTOCOL + b"bm9wZQ\r\n", UNAUTHORIZED),
        (SOCKET + SUBPROTOCOL + b"_w\r\n", UNAUTHORIZED),
        (b"Authorization: Basic YTpi\r\n" + SOCKET + SUBPROTOCOL + b"bm9wZQ\r\n", UNAUTHORIZED),
        (SOCKET + b", ".join([SUBPROTOCOL] * 2) + b"\r\n", UNAUTHORIZED),
        (b"Sec-WebSocket-Protocol: v4, " + SUBPROTOCOL + b"bm9wZQ\r\n", NOBODY),
        (b"Authorization: Bearer nope\r\nImpersonate-User: jane\r\n", UNAUTHORIZED),
        (AS_JANE, (201, "jane")),
        (AS_JANE + b"Impersonate-User: bob\r\n", (201, "jane")),
        (ADMIN + b"iMPERSONATE-uSER: jane\r\n", (201, "jane")),
        (AS_JANE + b"Connection: Impersonate-User\r\n", (201, "jane")),
        (ADMIN + "Impersonate-User: jäne\r\n".encode(), (201, "jäne")),
        (ADMIN + b"Impersonate-User: j\xe4ne\r\n", (201, "j\ufffdne")),
        (ADMIN + b"Impersonate-User : jane\r\n", (400, "400 Bad Request: invalid header name")),
        (ADMIN + b"Impersonate-User: ja\0ne\r\n", (400, "400 Bad Request")),
        (ADMIN + b"Impersonate-User: ja\rne\r\n", (400, "400 Bad Request")),
    ],
)
def test_headers_name_no_other_user(cluster: Cluster, headers: bytes, expected: tuple[int, str]) -> None:
    assert who(cluster, headers) == expected


@pytest.mark.parametrize("trailer", [ADMIN, AS_JANE, b"Host: y\r\nContent-Length: 3\r\n"])
def test_bytes_after_a_body_name_no_user(cluster: Cluster, trailer: bytes) -> None:
    chunk = b"%x\r\n%b\r\n0\r\n" % (len(REVIEW), REVIEW)
    request = REVIEWS + b"Transfer-Encoding: chunked\r\n\r\n" + chunk + trailer + b"\r\n"
    [(status, answer)] = ask(cluster, request)
    assert (status, answer["message"]) == NOBODY


def no_list(user: str) -> str:
    return f'secrets is forbidden: User "{user}" cannot list resource "secrets" in API group "" at the cluster scope'


def no_path(path: str) -> str:
    return f'forbidden: User "jane" cannot get path "{path}"'


@pytest.mark.parametrize(
    ("target", "status", "message"),
    [
        (SECRETS, 403, no_list("jane")),
        (b"/api/v1/%73ecrets", 403, no_list("jane")),
        (b"//api/v1/secrets", 403, no_list("jane")),
        (b"/api/v1/secrets/", 403, no_list("jane")),
        (b"http://elsewhere/api/v1/secrets", 403, no_list("jane")),
        (b"/api/v1/secrets?watch=false", 403, no_list("jane")),
        (b"/api/v1/secrets?Watch=1", 403, no_list("jane")),
        (b"/api/v1/secrets?watch", 403, no_list("jane").replace("list", "watch")),
        (b"/api/v1/watch/secrets", 403, no_list("jane").replace("list", "watch")),
        (b"/API/v1/secrets", 403, no_path("/API/v1/secrets")),
        (b"/healthz/../api/v1/secrets", 403, no_path("/healthz/../api/v1/secrets")),
        (b"/healthz/%2e%2e/api/v1/secrets", 403, no_path("/healthz/../api/v1/secrets")),
        (b"/healthz;/../metrics", 403, no_path("/healthz;/../metrics")),
        (b"/healthz%00", 403, no_path("/healthz\\x00")),
        (b"/%2fhealthz", 403, no_path("//healthz")),
        (b"/api/v1/%zz", 400, "400 Bad Request"),
    ],
)
def test_no_way_of_writing_a_path_opens_it(cluster: Cluster, target: bytes, status: int, message: str) -> None:
    head = b"GET %b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" % target
    [(code, answer)] = ask(cluster, head + AS_JANE + b"\r\n")
    assert (code, answer["message"]) == (status, message)


@pytest.mark.parametrize("target", [b"//api/v1/secrets", b"/apis//v1/secrets", b"/apis//v1", b"/apis//"])
def test_paths_with_extra_slashes_are_not_served(cluster: Cluster, target: bytes) -> None:
    [(code, _)] = ask(cluster, b"GET %b HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" % target + ADMIN + b"\r\n")
    assert code == 404


@pytest.mark.parametrize("header", ["X-HTTP-Method-Override", "X-HTTP-Method", "X-Method-Override", "X-Original-URL"])
def test_no_header_changes_what_is_asked(cluster: Cluster, header: str) -> None:
    head = f"GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\nConnection: close\r\n{header}: /healthz\r\n".encode()
    [(code, answer)] = ask(cluster, head + b"\r\n")
    assert (code, answer["message"]) == (403, no_list("system:anonymous"))


@pytest.mark.parametrize("protocol", [b"SPDY/3.1", b"websocket", b"h2c"])
@pytest.mark.parametrize("target", [b"POST /api/v1/namespaces/default/pods/x/exec", b"GET /api/v1/nodes/n/proxy/run"])
def test_a_refused_upgrade_leaves_no_tunnel(cluster: Cluster, protocol: bytes, target: bytes) -> None:
    """A rejected upgrade is followed by a request like any other, with its own credentials."""
    upgrade = b"%b HTTP/1.1\r\nHost: x\r\nUpgrade: %b\r\nConnection: Upgrade\r\n" % (target, protocol)
    behind = b"GET /api/v1/secrets HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    answers = ask(cluster, upgrade + AS_JANE + b"\r\n" + behind)
    assert [code for code, _ in answers] == [403, 403]
    assert answers[1][1]["message"] == no_list("system:anonymous")


# ------------------------------------------------------------------- forged tokens, through TLS

ACCOUNTS = "/api/v1/namespaces/default/serviceaccounts"


def post(cluster: Cluster, path: str, body: object) -> dict[str, Any]:
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(data)}\r\n".encode()
    [(code, answer)] = ask(cluster, head + ADMIN + b"Content-Type: application/json\r\n\r\n" + data)
    assert code == 201, answer
    return answer


@dataclass
class Token:
    """A good one, in pieces; `pem` and `jwk` are the server's public key, `stranger` a key of the same kind."""

    head: dict[str, Any]
    claims: dict[str, Any]
    signature: str
    jwk: dict[str, Any]
    pem: bytes
    stranger: ec.EllipticCurvePrivateKey

    def made(self, head: object = None, claims: object = None, signature: str | None = None) -> str:
        parts = [segment(self.head if head is None else head), segment(self.claims if claims is None else claims)]
        return ".".join([*parts, self.signature if signature is None else signature])

    def forged(self, head: dict[str, Any] | None = None, claims: dict[str, Any] | None = None) -> str:
        """Signed by the stranger."""
        from jwt import api_jws

        return api_jws.encode(
            json.dumps(self.claims | (claims or {})).encode(), self.stranger, "ES256", self.head | (head or {})
        )

    def symmetric(self, secret: bytes) -> str:
        """Signed with what everybody knows."""
        text = self.made({**self.head, "alg": "HS256"}, signature="")[:-1]
        return f"{text}.{encoded(hmac.digest(secret, text.encode(), 'sha256'))}"


def encoded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def segment(value: object) -> str:
    return encoded(value.encode() if isinstance(value, str) else json.dumps(value).encode())


@pytest.fixture(scope="module")
def token(cluster: Cluster) -> Token:
    post(cluster, ACCOUNTS, {"metadata": {"name": "robot"}})
    answer = post(cluster, f"{ACCOUNTS}/robot/token", {"spec": {}})
    head, claims, signature = answer["status"]["token"].split(".")
    [(_, found)] = ask(cluster, b"GET /openid/v1/jwks HTTP/1.1\r\nHost: x\r\nConnection: close\r\n" + ADMIN + b"\r\n")
    [jwk] = found["keys"]
    numbers = (int.from_bytes(base64.urlsafe_b64decode(jwk[name] + "==")) for name in "xy")
    public = ec.EllipticCurvePublicNumbers(*numbers, ec.SECP256R1()).public_key()
    pem = public.public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    read = [json.loads(base64.urlsafe_b64decode(part + "==")) for part in (head, claims)]
    return Token(*read, signature, jwk, pem, ec.generate_private_key(ec.SECP256R1()))


FORGERIES: dict[str, Callable[[Token], str]] = {
    "no algorithm": lambda token: token.made({**token.head, "alg": "none"}, signature=""),
    "no algorithm, in another case": lambda token: token.made({**token.head, "alg": "nOnE"}, signature=""),
    "no algorithm, signed all the same": lambda token: token.made({**token.head, "alg": "none"}),
    "no signature": lambda token: token.made(signature=""),
    "the public key for a secret": lambda token: token.symmetric(token.pem),
    "the public key's JSON for a secret": lambda token: token.symmetric(json.dumps(token.jwk).encode()),
    "an empty secret": lambda token: token.symmetric(b""),
    "another algorithm of the same key": lambda token: token.made({**token.head, "alg": "ES384"}),
    "another cluster's key": lambda token: token.forged(),
    "another cluster's key by its own name": lambda token: token.forged({"kid": "another"}),
    "another cluster's key without a name": lambda token: token.forged({"kid": ""}),
    "a key's name that is a path": lambda token: token.forged({"kid": "../../../../dev/null"}),
    "a key's name that asks a database": lambda token: token.forged({"kid": "x' UNION SELECT 'key"}),
    "a key's name that is a command": lambda token: token.forged({"kid": "key|/bin/true"}),
    "a key's name that is a URL": lambda token: token.forged({"kid": "https://127.0.0.1:1/key"}),
    "a key it brings along": lambda token: token.forged({"jwk": token.jwk}),
    "a place where its key is": lambda token: token.forged({"jku": "https://127.0.0.1:1/jwks"}),
    "a place where its certificate is": lambda token: token.forged({"x5u": "https://127.0.0.1:1/chain"}),
    "a header that must be understood": lambda token: token.made({**token.head, "crit": ["exp"]}),
    "a payload that isn't encoded": lambda token: token.made({**token.head, "b64": False, "crit": ["b64"]}),
    "a payload that is packed": lambda token: token.made({**token.head, "zip": "DEF"}, encoded(b"\x03\x00")),
    "another account": lambda token: token.made(
        claims={**token.claims, "sub": "system:serviceaccount:kube-system:root"}
    ),
    "a later end": lambda token: token.made(claims={**token.claims, "exp": 1 << 40}),
    "the administrators' group": lambda token: token.forged(claims={"groups": ["system:masters"]}),
    "a claim twice": lambda token: token.made(claims=json.dumps(token.claims)[:-1] + ',"sub":"root"}'),
    "a token in a token": lambda token: token.made({**token.head, "cty": "JWT"}, token.made()),
    "cut off": lambda token: token.made()[:-10],
    "without its last letter": lambda token: token.made()[:-1],
    "a longer signature": lambda token: token.made() + "AAAA",
    "a signature of nothing": lambda token: token.made(signature=encoded(bytes(64))),
    "with padding": lambda token: token.made() + "==",
    "with a part too many": lambda token: token.made() + ".e30",
    "in ordinary base64": lambda token: token.made() + "+",
    "huge": lambda token: token.made(claims={**token.claims, "x": "x" * 600_000}),
    "deep": lambda token: token.made(claims='{"iss":' + "[" * 100_000 + "]" * 100_000 + "}"),
    "many dots": lambda token: "." * 500_000,
    "many numbers": lambda token: token.made(claims='{"exp":' + "9" * 100_000 + "}"),
}


@pytest.mark.parametrize("forge", FORGERIES.values(), ids=list(FORGERIES))
def test_a_forged_token_is_nobodys(cluster: Cluster, token: Token, forge: Callable[[Token], str]) -> None:
    assert who(cluster, b"Authorization: Bearer %b\r\n" % forge(token).encode()) == UNAUTHORIZED


@pytest.mark.usefixtures("token")
def test_a_token_that_is_not_forged_is_its_accounts(cluster: Cluster) -> None:
    good = post(cluster, f"{ACCOUNTS}/robot/token", {"spec": {}})["status"]["token"]
    assert who(cluster, b"Authorization: Bearer %b\r\n" % good.encode()) == (201, "system:serviceaccount:default:robot")


# ------------------------------------------------------------------- who signs, who approves

REQUESTS = "/apis/certificates.k8s.io/v1/certificatesigningrequests"
APPROVED = [{"type": "Approved", "status": "True"}]


def patch(cluster: Cluster, path: str, body: object) -> tuple[int, dict[str, Any]]:
    data = json.dumps(body).encode()
    head = (
        f"PATCH {REQUESTS}/{path} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(data)}\r\n".encode()
    )
    [answer] = ask(cluster, head + ADMIN + b"Content-Type: application/merge-patch+json\r\n\r\n" + data)
    return answer


@pytest.fixture(scope="module")
def asked(cluster: Cluster) -> str:
    """A request for a certificate."""
    builder = x509.CertificateSigningRequestBuilder(JANE).sign(ec.generate_private_key(ec.SECP256R1()), hashes.SHA256())
    pem = base64.b64encode(builder.public_bytes(Encoding.PEM)).decode()
    spec = {"request": pem, "signerName": "example.com/a", "usages": ["client auth"]}
    data = json.dumps({"metadata": {"name": "jane"}, "spec": spec}).encode()
    head = f"POST {REQUESTS} HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: {len(data)}\r\n".encode()
    [(code, answer)] = ask(cluster, head + ADMIN + b"Content-Type: application/json\r\n\r\n" + data)
    assert code == 201, answer
    return "jane"


@pytest.mark.parametrize(
    ("subresource", "status", "why"),
    [
        ("status", {"conditions": APPROVED}, 'updates may not add a condition of type "Approved"'),
        ("status", {"certificate": "eA=="}, "must contain at least one CERTIFICATE PEM block"),
        ("approval", {"conditions": [*APPROVED, {"type": "Denied", "status": "True"}]}, "must specify at most one of"),
        ("approval", {"conditions": [{"type": "Approved", "status": "False"}]}, 'Unsupported value: "False"'),
    ],
)
def test_a_signer_decides_nothing_and_a_decision_is_one(
    cluster: Cluster, asked: str, subresource: str, status: object, why: str
) -> None:
    code, answer = patch(cluster, f"{asked}/{subresource}?dryRun=All", {"status": status})
    assert code == 422
    assert why in answer["message"]


def test_who_approves_changes_neither_what_is_asked_nor_the_certificate(cluster: Cluster, asked: str) -> None:
    attack = {
        "spec": {"username": "boss", "groups": ["system:masters"], "signerName": "kubernetes.io/kubelet-serving"},
        "status": {"conditions": APPROVED, "certificate": "eA=="},
    }
    code, answer = patch(cluster, f"{asked}/approval?dryRun=All", attack)
    assert code == 200
    assert answer["spec"]["signerName"] == "example.com/a"
    assert answer["spec"]["username"] != "boss"
    assert "certificate" not in answer["status"]


# ------------------------------------------------------------- what tokens and logs reveal


def test_what_was_tried_is_in_no_log_and_on_no_page(cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    secret = "c2VjcmV0LW9mLXRoaXMtdGVzdA=="
    body = json.dumps({"metadata": {"name": "kept"}, "data": {"a": secret}, "type": 5}).encode()
    length = b"Content-Type: application/json\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % len(body)
    path = b"POST /api/v1/namespaces/default/secrets?access_token=query-token HTTP/1.1\r\nHost: x\r\n"
    for credentials in (ADMIN, b"Authorization: Bearer header-token\r\n", b"Authorization: Basic basic-token\r\n"):
        [(code, answer)] = ask(cluster, path + credentials + length + body)
        assert code in (400, 401, 403)
        assert secret not in json.dumps(answer)
    pages = [f"GET {page} HTTP/1.1\r\nHost: x\r\n".encode() for page in ("/metrics", "/flagz", "/statusz")]
    told = [answer for page in pages for answer in ask(cluster, page + b"Connection: close\r\n" + ADMIN + b"\r\n")]
    assert [code for code, _ in told] == [200, 200, 200]
    for word in (secret, cluster.token, "query-token", "header-token", "basic-token"):
        assert word not in caplog.text
        assert word not in str(told)
