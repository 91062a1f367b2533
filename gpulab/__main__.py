"""``python -m gpulab`` is the command line."""

from __future__ import annotations

from gpulab.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
