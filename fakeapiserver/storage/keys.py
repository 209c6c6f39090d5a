"""The layout of keys, as upstream's in etcd: `/registry/<resource>/<namespace>/<name>`.

A resource is one word, or two: custom resources and some others have their group in front (`apps.example.com/widgets`), and the parts of
services are apart (`services/specs`, `services/endpoints`).

>>> prefix_of("services", "specs")
'/registry/services/specs/'
>>> resource_of("/registry/services/specs/default/web"), resource_of("/registry/pods/default/web")
('services/specs', 'pods')
"""

from typing import Final

ROOT: Final = "/registry"
_START: Final = len(ROOT) + 1


def prefix_of(*resource: str) -> str:
    """The prefix below which the objects of a resource are stored."""
    return f"{ROOT}/{'/'.join(resource)}/"


def rooted(prefix: str) -> str:
    """The form of another root, such as an --etcd-prefix: with a slash in front and none behind."""
    return f"/{prefix.strip('/')}"


def below(root: str, key: str) -> str:
    """The key as it is below another root, which is in that form."""
    return f"{root}{key[len(ROOT) :]}"


def resource_of(key: str) -> str:
    """The resource that a key, or a prefix, belongs to."""
    first, _, rest = key[_START:].partition("/")
    if "." in first or first == "services":
        return f"{first}/{rest.partition('/')[0]}"
    return first
