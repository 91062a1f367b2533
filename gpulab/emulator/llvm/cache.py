"""Native code and programs on disk: one file for each, named by a hash of everything that it depends on.

The folder is ``$GPULAB_CACHE/native`` or ``~/.cache/gpulab/native``. A folder that cannot be read or written, and a file
that is cut short, only mean that code is compiled again. What is found there is run, so nobody else should be able to write there.
"""

from __future__ import annotations

import functools
import hashlib
import os
import tempfile
from pathlib import Path

_GENERATORS = ("emulator", "ptx", "models/access.py")
"""What of the package decides what is kept here."""

_DIGEST_BYTES = 32


def folder() -> Path:
    """Where native code is kept."""
    root = os.environ.get("GPULAB_CACHE")
    return (Path(root) if root else Path.home() / ".cache" / "gpulab") / "native"


def key(*parts: str) -> str:
    """File name for code that depends on exactly these texts."""
    digest = hashlib.sha256()
    for part in parts:
        data = part.encode()
        digest.update(len(data).to_bytes(8, "little") + data)
    return digest.hexdigest()


@functools.cache
def generators() -> str:
    """A digest of the modules that make what is kept here, so that what another version of them made is not found.

    It is kept as well: to ask when the files were changed takes less time than to read them.
    """
    package = Path(__file__).parents[2]
    files = [path for name in _GENERATORS for path in sorted((package / name).rglob("*.py")) or [package / name]]
    name = key(
        "generators", *(f"{path} {found.st_mtime_ns} {found.st_size}" for path in files for found in [path.stat()])
    )
    known = load(name)
    if known is None:
        known = hashlib.sha256(b"".join(path.read_bytes() for path in files)).digest()
        save(name, known)
    return known.hex()


def load(name: str) -> bytes | None:
    """The stored code, or None if it is not there, cannot be read or is damaged."""
    try:
        data = (folder() / name).read_bytes()
    except (OSError, RuntimeError):  # RuntimeError: no home folder is known
        return None
    digest, code = data[:_DIGEST_BYTES], data[_DIGEST_BYTES:]
    return code if hashlib.sha256(code).digest() == digest else None


def save(name: str, code: bytes) -> bool:
    """Store code; False if the folder cannot be written."""
    try:
        where = folder()
        where.mkdir(parents=True, exist_ok=True)
        # Written aside and renamed, so that another process never sees half a file.
        handle, temporary = tempfile.mkstemp(dir=where)
        with os.fdopen(handle, "wb") as file:
            file.write(hashlib.sha256(code).digest() + code)
        os.replace(temporary, where / name)
    except (OSError, RuntimeError):
        return False
    return True
