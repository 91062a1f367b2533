"""The kernel ladders. A ladder is one topic file and its ``.cu``; it is found by itself.

``gpulab.kernels()`` lists the ladders, ``gpulab.kernels.ladder("transpose")`` finds one.
"""

from __future__ import annotations

import difflib
import functools
import importlib
import pkgutil

from gpulab.callable_package import make_callable
from gpulab.errors import GpulabError
from gpulab.kernels.claim import Claim
from gpulab.kernels.parameters import Parameter
from gpulab.kernels.problem import Attempt, Problem, Verdict
from gpulab.kernels.records import Case, Formula, Ladder, Rung, Step

__all__ = [
    "Attempt",
    "Case",
    "Claim",
    "Formula",
    "Ladder",
    "Parameter",
    "Problem",
    "Rung",
    "Step",
    "Verdict",
    "kernels",
    "ladder",
]


@functools.cache
def _ladders() -> dict[str, Ladder]:
    modules = (importlib.import_module(f"{__name__}.{item.name}") for item in pkgutil.iter_modules(__path__))
    found = [module.LADDER for module in modules if hasattr(module, "LADDER")]
    return {ladder.name: ladder for ladder in sorted(found, key=lambda ladder: ladder.name)}


def kernels() -> list[Ladder]:
    """All ladders, by name. Each has `name`, `technique`, `rungs` and `parameters`."""
    return list(_ladders().values())


def ladder(name: str) -> Ladder:
    """The ladder of this name.

    Raises
    ------
    GpulabError
        If there is none; near names are suggested.
    """
    ladders = _ladders()
    if name in ladders:
        return ladders[name]
    near = difflib.get_close_matches(str(name).lower(), ladders, n=3, cutoff=0.5)
    hint = f"Did you mean {' or '.join(map(repr, near))}? " if near else ""
    raise GpulabError(f"There is no ladder {name!r}. {hint}The ladders are: {', '.join(ladders)}.")


make_callable(__name__, kernels)
