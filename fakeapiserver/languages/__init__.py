"""Languages that Kubernetes objects contain: CEL, jq and Go templates. Pure."""
