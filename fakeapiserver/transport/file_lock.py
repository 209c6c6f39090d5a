"""Locks of files, which end with the process that holds them, however it ends: flock, or on Windows the C runtime's locking."""

import os
import sys

if sys.platform == "win32":
    import msvcrt

    def lock_file(descriptor: int) -> None:
        """Locks the file, until its descriptor is closed. Raises BlockingIOError if another process holds the lock, and OSError
        if the file system has no locks."""
        os.lseek(descriptor, 0, os.SEEK_SET)
        try:
            msvcrt.locking(descriptor, msvcrt.LK_NBLCK, 1)
        except PermissionError as error:
            raise BlockingIOError(*error.args) from None

else:
    import fcntl

    def lock_file(descriptor: int) -> None:
        """Locks the file, until its descriptor is closed. Raises BlockingIOError if another process holds the lock, and OSError
        if the file system has no locks."""
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
