"""A content-addressed disk cache for what compilers make.

An entry is named by the SHA-256 of everything that decides its content (source, options, compiler version), so it
never goes stale and needs no invalidation. The cache is a convenience: if its folder cannot be read or written, the
caller simply compiles again.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

import gpulab

FORMAT = 2  # goes into every key: raise it when the meaning of entries changes


def folder() -> Path:
    """The cache folder: ``$GPULAB_CACHE``, else ``gpulab`` in the user's cache folder. It may not exist yet."""
    chosen = os.environ.get("GPULAB_CACHE")
    if chosen:
        return Path(chosen)
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or str(Path.home() / "AppData" / "Local")
    else:
        base = os.environ.get("XDG_CACHE_HOME") or str(Path.home() / ".cache")
    return Path(base) / "gpulab"


def key(kind: str, **parts: Any) -> str:
    """The name of an entry: a digest of `kind` and of all `parts`, which must be JSON-like (tuples count as lists)."""
    content = json.dumps([FORMAT, gpulab.__version__, kind, parts], sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(content.encode()).hexdigest()


def read(entry: str) -> dict[str, Any] | None:
    """The entry's content, or None if it is not there or unreadable."""
    try:
        value = json.loads(_path(entry).read_text(encoding="utf-8"))
    except (OSError, ValueError, RuntimeError):  # RuntimeError: no home folder to look in
        return None
    return value if isinstance(value, dict) else None


def write(entry: str, value: dict[str, Any]) -> bool:
    """Store a JSON-like `value`; return whether it could be stored. Other processes never see half an entry."""
    content = json.dumps(value)
    try:
        path = _path(entry)
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".new-")
    except (OSError, RuntimeError):  # a read-only disk only costs the next process a compilation
        return False
    try:
        with os.fdopen(handle, "w", encoding="utf-8") as file:
            file.write(content)
        os.replace(temporary, path)
    except OSError:  # so does a full one
        with contextlib.suppress(OSError):
            os.unlink(temporary)
        return False
    return True


def _path(entry: str) -> Path:
    return folder() / "toolchain" / entry[:2] / f"{entry[2:]}.json"
