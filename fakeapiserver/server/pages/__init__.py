"""The paths that are not resources: health, version, status, metrics, debug and OpenID pages."""
