"""Write VALIDATION.md: gpulab's counters and times beside published ones, and beside those of a CUDA GPU where one is at hand.

python benchmarks/validate.py                           # everything
python benchmarks/validate.py --only counters           # this part; the others stay as they are
python benchmarks/validate.py --json times.json         # all modeled times with their terms, for other tools
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

from validation.counters_part import counters_part
from validation.judge import Verdict
from validation.measured_part import measured_part
from validation.pages import PAGE, assembled
from validation.times_part import ladders_part, microbenchmarks_part

PARTS: dict[str, Callable[[], tuple[str, list[Verdict]]]] = {
    "counters": lambda: (counters_part(), []),
    "ladders": ladders_part,
    "microbenchmarks": microbenchmarks_part,
    "measured": measured_part,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Make the parts that are asked for, and write the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", action="append", choices=list(PARTS), help="make only this part anew")
    parser.add_argument("--json", type=Path, help="also write all modeled times to this file")
    options = parser.parse_args(arguments)
    made: dict[str, str] = {}
    verdicts: list[Verdict] = []
    for name in options.only or list(PARTS):
        start = time.perf_counter()
        made[name], found = PARTS[name]()
        verdicts += found
        print(f"{name}: {time.perf_counter() - start:.0f} s", file=sys.stderr, flush=True)
    old = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
    PAGE.write_text(assembled(old, made, list(PARTS)), encoding="utf-8")
    if options.json:
        options.json.write_text(json.dumps([verdict.to_json() for verdict in verdicts], indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
