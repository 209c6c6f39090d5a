"""The one write loop and the read paths."""
