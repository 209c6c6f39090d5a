"""The contents of kubeconfig files, under their own names; the documentation of kubeconfig.v1 describes each."""

from collections.abc import Mapping, Sequence
from typing import TypedDict


class ExecEnvVar(TypedDict, total=False):
    name: str
    value: str


class ExecPlugin(TypedDict, total=False):
    command: str
    args: Sequence[str]
    env: Sequence[ExecEnvVar]
    apiVersion: str
    installHint: str
    provideClusterInfo: bool
    interactiveMode: str


class AuthProvider(TypedDict, total=False):
    name: str
    config: Mapping[str, str]


class Extension(TypedDict, total=False):
    name: str
    extension: object


Cluster = TypedDict(
    "Cluster",
    {
        "server": str,
        "tls-server-name": str,
        "insecure-skip-tls-verify": bool,
        "certificate-authority": str,
        "certificate-authority-data": str,
        "proxy-url": str,
        "disable-compression": bool,
        "extensions": Sequence[Extension],
    },
    total=False,
)
AuthInfo = TypedDict(
    "AuthInfo",
    {
        "client-certificate": str,
        "client-certificate-data": str,
        "client-key": str,
        "client-key-data": str,
        "token": str,
        "tokenFile": str,
        "username": str,
        "password": str,
        "as": str,
        "as-uid": str,
        "as-groups": Sequence[str],
        "as-user-extra": Mapping[str, Sequence[str]],
        "auth-provider": AuthProvider,
        "exec": ExecPlugin,
    },
    total=False,
)


class Context(TypedDict, total=False):
    cluster: str
    user: str
    namespace: str
