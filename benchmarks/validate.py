"""Write VALIDATION.md: gpulab's counters and times beside published ones, and beside those of a CUDA GPU where one is at hand.

python benchmarks/validate.py                      # everything
python benchmarks/validate.py --only counters      # this part; the others stay as they are
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Sequence

from validation.counters_part import counters_part
from validation.pages import PAGE, assembled

PARTS: dict[str, Callable[[], str]] = {"counters": counters_part}


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the parts that are asked for, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(PARTS), help="make only this part anew")
    chosen = parser.parse_args(arguments).only or list(PARTS)
    made = {}
    for name in chosen:
        start = time.perf_counter()
        made[name] = PARTS[name]()
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    old = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    PAGE.write_text(assembled(old, made, list(PARTS)), encoding="utf-8")


if __name__ == "__main__":
    main()
