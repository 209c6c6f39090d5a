"""Memory that was freed after a burst: the C library keeps it for the process until it is asked to return it to the system."""

import ctypes


def trim() -> None:
    """Returns whole pages that are free to the system. Does nothing where the C library has no function for it (all but glibc)."""
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
