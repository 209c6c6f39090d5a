"""The test control: what a test may do to a running server over HTTP, in any language."""
