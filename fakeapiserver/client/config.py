"""The address of an API server, and the credentials for it."""

from fakeapiserver.transport.rest_config import DEFAULT_USER_AGENT, ExecConfig, ImpersonationConfig, RESTConfig

__all__ = ["DEFAULT_USER_AGENT", "ExecConfig", "ImpersonationConfig", "RESTConfig"]
