"""Where an API server is, and as whom it is asked."""

from fakeapiserver.transport.rest_config import DEFAULT_USER_AGENT, ExecConfig, ImpersonationConfig, RESTConfig

__all__ = ["DEFAULT_USER_AGENT", "ExecConfig", "ImpersonationConfig", "RESTConfig"]
