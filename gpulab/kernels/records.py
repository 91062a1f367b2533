"""The records of a ladder: one problem, its rungs from naive to best, and what each rung claims to move.

A ladder lives in two files. ``<topic>.py`` holds the Numba kernels, the data, the reference and one `Ladder` named
``LADDER``; ``<topic>.cu`` holds the same kernels in CUDA C++. A rung names its kernel; it has the same name in both.
Nothing is compiled before a kernel is launched.
"""

from __future__ import annotations

import functools
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from gpulab.errors import GpulabError
from gpulab.kernels.claim import Claim
from gpulab.kernels.parameters import Parameter, Value, Values, checked, objections, resolve

if TYPE_CHECKING:
    from gpulab.kernels.problem import Problem

Data = Mapping[str, Any]
LANGUAGES = ("numba", "cuda")


@dataclass(frozen=True, slots=True)
class Formula:
    """A count as a formula: `text` for people (``"2 m n k"``), `count` for the machine."""

    text: str
    count: Callable[[Values], int]

    def __call__(self, parameters: Values) -> int:
        """The count for these parameters."""
        return self.count(parameters)


@dataclass(frozen=True, slots=True)
class Step:
    """One launch of a rung; most rungs have one.

    Attributes
    ----------
    grid, block : int or tuple of int
        As a launch takes them.
    dynamic_shared_bytes : int
    kernel : str or None
        Name of the kernel; the rung's name if None.
    arguments : mapping or None
        Language to argument names (of arrays, scalars or parameters); the ladder's if None.
    """

    grid: int | tuple[int, ...]
    block: int | tuple[int, ...]
    dynamic_shared_bytes: int = 0
    kernel: str | None = None
    arguments: Mapping[str, tuple[str, ...]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Rung:
    """One way to solve the problem.

    Attributes
    ----------
    name : str
        Also the name of its kernel in both languages, unless its steps say otherwise.
    paragraph : str
        What changed against the rung before, why it helps, and when it does not.
    launch : callable
        ``launch(parameters) -> Step`` or a tuple of them, run in this order.
    claim : Claim or None
        None for the rung that the others are compared with.
    arguments : mapping or None
        Language to argument names; the ladder's if None.
    constants : tuple of str
        Parameters that must be known when the kernel is compiled. In CUDA C++ each is a macro of the upper-case name;
        in Numba the kernel's name is a function that takes them and returns the kernel.
    languages : tuple of str
    """

    name: str
    paragraph: str
    launch: Callable[[Values], Step | tuple[Step, ...]]
    claim: Claim | None = None
    arguments: Mapping[str, tuple[str, ...]] | None = None
    constants: tuple[str, ...] = ()
    languages: tuple[str, ...] = LANGUAGES

    def steps(self, parameters: Values) -> tuple[Step, ...]:
        """The launches, in order, for these parameters."""
        planned = self.launch(parameters)
        return (planned,) if isinstance(planned, Step) else planned


@dataclass(frozen=True, slots=True)
class Case:
    """A set of parameters and a kind of data that every rung must get right.

    Attributes
    ----------
    name : str
    parameters : mapping
        What differs from the defaults.
    kind : str
        Passed to the ladder's `make_data`: ``"random"``, or another kind that it knows.
    """

    name: str
    parameters: Values
    kind: str = "random"


@dataclass(frozen=True, slots=True, kw_only=True)
class Ladder:
    """One problem with its rungs, from naive to best.

    Attributes
    ----------
    name, technique, problem : str
        What it is called, what it teaches, and what is computed, in a sentence.
    module : str
        The topic's module (``__name__``), where the Numba kernels are; the CUDA C++ file lies beside it.
    parameters : tuple of Parameter
    rungs : tuple of Rung
    arguments : mapping
        Language to the names of a kernel's arguments, in order: arrays or scalars of the data, or parameters.
    make_data : callable
        ``make_data(parameters, kind, rng) -> dict`` of all arrays and scalars, outputs with their initial contents.
    outputs : tuple of str
        The arrays that kernels write; each rung gets fresh ones.
    reference : callable
        ``reference(data, parameters) -> dict`` of what must come out, in higher precision where it matters.
    tolerance : callable
        ``tolerance(data, parameters) -> dict`` of the absolute errors that rounding explains; missing names: exact.
    result : callable or None
        ``result(data, parameters) -> dict`` to be compared with the reference; None for the outputs themselves.
    useful_flop, useful_bytes : Formula
        What the problem itself needs, whatever a rung does: FLOP, and bytes of global memory read and written once.
    cases : tuple of Case
        Small ones for tests: even, ragged and adversarial. The first is the one that claims are tested on.
    kinds : tuple of str
        The kinds of data that `make_data` knows.
    """

    name: str
    technique: str
    problem: str
    module: str
    parameters: tuple[Parameter, ...]
    rungs: tuple[Rung, ...]
    arguments: Mapping[str, tuple[str, ...]]
    make_data: Callable[[Values, str, np.random.Generator], dict[str, Any]]
    outputs: tuple[str, ...]
    reference: Callable[[Data, Values], dict[str, Any]]
    tolerance: Callable[[Data, Values], dict[str, Any]]
    useful_flop: Formula
    useful_bytes: Formula
    cases: tuple[Case, ...]
    result: Callable[[Data, Values], dict[str, Any]] | None = None
    kinds: tuple[str, ...] = ("random",)

    def __repr__(self) -> str:
        rungs = ", ".join(rung.name for rung in self.rungs)
        return f"<ladder {self.name}: {self.problem} Rungs: {rungs}>"

    def rung(self, name: str) -> Rung:
        """The rung of this name.

        Raises
        ------
        GpulabError
            If there is none.
        """
        for rung in self.rungs:
            if rung.name == name:
                return rung
        raise GpulabError(
            f"The ladder {self.name!r} has the rungs {', '.join(rung.name for rung in self.rungs)}, but {name!r} came."
        )

    @property
    def languages(self) -> tuple[str, ...]:
        """Languages in which it has rungs, the preferred one first."""
        return tuple(name for name in LANGUAGES if any(name in rung.languages for rung in self.rungs))

    def defaults(self) -> dict[str, Value]:
        """Every parameter at its default."""
        return resolve(self.parameters, {})

    def objections(self, **parameters: Value) -> list[str]:
        """Why these parameters can't be used, a sentence each; empty if they can. For sweeps."""
        return objections(self.parameters, resolve(self.parameters, parameters))

    def at(self, kind: str = "random", **parameters: Value) -> Problem:
        """The problem at these parameters (defaults else): data, reference, launches and check.

        Raises
        ------
        ArgumentError
            If a parameter is unknown or a value not allowed.
        """
        from gpulab.kernels.problem import Problem

        return Problem(self, checked(f"The ladder {self.name!r}", self.parameters, parameters), kind)

    def kernel(self, name: str, language: str, constants: Values | None = None) -> Any:
        """The kernel of this name: a Numba kernel or a `RawKernel`, not compiled yet.

        `constants` are the compile-time parameters of its rung, if it has any.
        """
        constants = constants or {}
        if language == "numba":
            found = getattr(sys.modules[self.module], name)
            return found(**constants) if constants else found
        options = tuple(f"-D{key.upper()}={value}" for key, value in constants.items())
        return _raw_kernel(self.cuda_file, name, options)

    @property
    def cuda_file(self) -> Path:
        """The CUDA C++ file."""
        return Path(str(sys.modules[self.module].__file__)).with_suffix(".cu")

    def to_json(self) -> dict[str, object]:
        """Name, technique, rungs with languages and claims, parameters: plain data."""
        return {
            "name": self.name,
            "technique": self.technique,
            "problem": self.problem,
            "rungs": [
                {
                    "name": rung.name,
                    "languages": list(rung.languages),
                    "claim": rung.claim.to_json() if rung.claim else None,
                    "paragraph": rung.paragraph,
                }
                for rung in self.rungs
            ],
            "parameters": {parameter.name: parameter.to_json() for parameter in self.parameters},
        }

    def __str__(self) -> str:
        return f"{self.name}: {self.technique} ({', '.join(rung.name for rung in self.rungs)})"


@functools.cache
def _raw_kernel(path: Path, name: str, options: tuple[str, ...]) -> Any:
    from gpulab.launchables import RawKernel

    return RawKernel(path.read_text(encoding="utf-8"), name, options=options, file=str(path))


def blocks_for(count: int, per_block: int) -> int:
    """Blocks needed so that every one of `count` items has a place, `per_block` each."""
    return -(-count // per_block)
