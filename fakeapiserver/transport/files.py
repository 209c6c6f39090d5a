"""Files that a configuration names, and Go's words for those that can't be read."""

from pathlib import Path


def read_file(path: Path) -> bytes:
    """OSError as os.ReadFile has it: `open /no/file: no such file or directory`."""
    try:
        return path.read_bytes()
    except IsADirectoryError as error:
        raise OSError(f"read {path}: {_reason(error)}") from None
    except OSError as error:
        raise OSError(f"open {path}: {_reason(error)}") from None


def _reason(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
