"""Files of the library: checksums, writes in one move, and locks."""

import contextlib
import hashlib
import os
import secrets
from collections.abc import Iterable
from pathlib import Path

from filelock import FileLock, Timeout

#: end of the names of files that are being written, as a regular expression
UNFINISHED = r"\.\d+-[0-9a-f]{8}\.part"


def checksum(*parts: bytes | memoryview) -> str:
    """Sha256 of all parts together, in hexadecimal digits."""
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part)
    return digest.hexdigest()


def replace(path: Path, parts: Iterable[bytes | memoryview]) -> None:
    """Write a file in one move: if a write fails, the former file is whole, and nothing else is left."""
    unfinished = path.with_name(f"{path.name}.{os.getpid()}-{secrets.token_hex(4)}.part")
    try:
        with unfinished.open("xb") as file:
            file.writelines(parts)
            file.flush()
            os.fsync(file.fileno())
        unfinished.replace(path)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def locked(path: Path, what: str) -> FileLock:
    """Lock a file; the system releases it when the process ends, also if it is killed.

    Raises
    ------
    RuntimeError
        If it is locked already.
    """
    lock = FileLock(path, is_singleton=False)
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise RuntimeError(f"{what} is in use by another fit. Wait until it has ended, or use another path.") from None
    return lock


def unlock(lock: FileLock) -> None:
    """Release a lock and remove its file; filelock notices where another process has opened it meanwhile."""
    with contextlib.suppress(OSError):  # Windows does not remove an open file
        os.unlink(lock.lock_file)
    lock.release()
