"""Values that the random flags and files of a start share: addresses, keys, broken PEM."""

import random
from typing import Any, Final

from conformance.random.authorization_files import pick

ISSUER: Final = "https://kubernetes.default.svc.cluster.local"
URLS: Final = (
    "https://issuer",
    "https://issuer/",
    "https://issuer/path",
    "http://issuer",
    "issuer",
    "https://user:pw@issuer",
    "https://user@issuer",
    "https://issuer?a=b",
    "https://issuer?",
    "https://issuer#x",
    "https://issuer#",
    "https://[::1]:80",
    "https://[::1",
    "https://issuer:port",
    "https://issuer:99999",
    "https://is suer",
    "https://issuer/%zz",
    "https://issuer/%2e",
    "https://%41",
    "https://iss\tuer",
    "https:issuer",
    "https://",
    "https:///x",
    "HTTPS://issuer",
    "://x",
    ":",
    "",
    " ",
    "ünïcode",
    "https://ünïcode",
    ISSUER,
    "https://a:b:c",
    "//issuer",
    "1https://x",
    "https://issuer\u007f",
)
ODD: Final[tuple[Any, ...]] = (None, "", "x", 5, 1.5, True, [], {}, [None], [1], ["x"], [{}], {"x": 1}, [[]])
BAD_PEM: Final = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"


def spoilt_text(rng: random.Random, text: str) -> str:
    """Returns a text that isn't a valid document of its kind."""
    place = rng.randrange(len(text))
    return str(
        pick(
            rng,
            text[:place],
            text[:place] + rng.choice("{}[]:,\"'\t\n-#&*!%@`\x00") + text[place:],
            "",
            "\n",
            "---\n" + text,
            text + "\n---\n" + text,
            "\ufeff" + text,
            text.replace("kind: AuthenticationConfiguration", "kind: Other"),
            text.replace("apiserver.config.k8s.io/v1", "apiserver.config.k8s.io/v2"),
            text.replace("apiVersion", "apiversion"),
            text + "\njwt: []\n",
            "x",
            "[]",
            "null",
            "5",
        )
    )


ENCRYPTED: Final = (
    "-----BEGIN RSA PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,00112233445566778899AABBCCDDEEFF\n\n"
    "AAAAAAAAAAAAAAAAAAAAAA==\n-----END RSA PRIVATE KEY-----\n"
)
CURVE: Final = (
    "-----BEGIN PUBLIC KEY-----\n"
    "ME4wEAYHKoZIzj0CAQYFK4EEACEDOgAEtwz1ZOV8kbp0gkG7XkQfVQ3XJ8k6qZ0J\nAAAA\n-----END PUBLIC KEY-----\n"
)
ED25519: Final = (
    "-----BEGIN PUBLIC KEY-----\n"
    "MCowBQYDK2VwAyEAGb9ECWmEzf6FQbrBZ9w7lshQhqowtrbLDFw4rXAxZuE=\n-----END PUBLIC KEY-----\n"
)
ED25519_KEY: Final = (
    "-----BEGIN PRIVATE KEY-----\n"
    "MC4CAQAwBQYDK2VwBCIEINTuctv5E1hK1bbY8fdp+K06/nwoy/HU++CXqI9EdVhC\n-----END PRIVATE KEY-----\n"
)
