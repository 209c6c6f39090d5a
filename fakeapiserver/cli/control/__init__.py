"""Commands that act on a server in the background through its test control."""
