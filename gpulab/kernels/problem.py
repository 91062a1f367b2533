"""`Problem`: a ladder at given parameters, with its data, what must come out, and the launches of every rung."""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from gpulab.errors import ArgumentError, GpulabError
from gpulab.kernels.parameters import Value
from gpulab.kernels.records import Ladder, Rung, Step


@dataclass(frozen=True, slots=True)
class Verdict:
    """Whether a rung's results are right.

    Attributes
    ----------
    correct : bool
        Every element within the error that rounding explains.
    max_error : float
        Largest absolute difference from the reference; inf where one side is NaN or infinite and the other is not.
    message : str
        Empty if correct; else the first wrong element, what came and what must come.
    """

    correct: bool
    max_error: float
    message: str = ""


@dataclass(frozen=True, slots=True)
class Attempt:
    """One rung, ready to run on its own fresh outputs.

    Attributes
    ----------
    rung : Rung
    language : str
    launches : tuple of (BoundLaunch, tuple)
        What to launch, in order: ``kernel[grid, block]`` and its arguments.
    arrays : mapping
        The data of this attempt; after the launches the outputs hold the results.
    """

    rung: Rung
    language: str
    launches: tuple[tuple[Any, tuple[Any, ...]], ...]
    arrays: Mapping[str, Any]


class Problem:
    """A ladder at given parameters. Inputs are made once and shared by all rungs; outputs are fresh for each."""

    def __init__(self, ladder: Ladder, parameters: dict[str, Value], kind: str = "random") -> None:
        if kind not in ladder.kinds:
            raise ArgumentError(
                f"The ladder {ladder.name!r} has data of the kinds {', '.join(ladder.kinds)}, but {kind!r} came."
            )
        self.ladder = ladder
        self.parameters = parameters
        self.kind = kind

    @cached_property
    def data(self) -> dict[str, Any]:
        """All arrays and scalars, outputs with their initial contents. The same in every process."""
        seed = zlib.crc32(f"{self.ladder.name}/{self.kind}".encode())
        return self.ladder.make_data(self.parameters, self.kind, np.random.default_rng(seed))

    @cached_property
    def expected(self) -> dict[str, Any]:
        """What must come out, by name."""
        return self.ladder.reference(self.data, self.parameters)

    @cached_property
    def tolerance(self) -> dict[str, Any]:
        """Absolute error that rounding explains, by name: a number or an array of the result's shape."""
        return self.ladder.tolerance(self.data, self.parameters)

    @property
    def useful_flop(self) -> int:
        """FLOP that the problem itself needs."""
        return self.ladder.useful_flop(self.parameters)

    @property
    def useful_bytes(self) -> int:
        """Bytes of global memory that the problem itself must read and write."""
        return self.ladder.useful_bytes(self.parameters)

    def attempt(self, rung: Rung | str, language: str) -> Attempt:
        """Fresh outputs, and the launches of this rung in this language.

        Raises
        ------
        GpulabError
            If the rung does not exist, or not in this language.
        """
        rung = self.ladder.rung(rung) if isinstance(rung, str) else rung
        if language not in rung.languages:
            raise GpulabError(
                f"The rung {rung.name!r} of {self.ladder.name!r} is written in {', '.join(rung.languages)}, "
                f"but {language!r} was asked for."
            )
        arrays = self._fresh()
        launches = tuple(self._launch(rung, step, language, arrays) for step in rung.steps(self.parameters))
        return Attempt(rung, language, launches, arrays)

    def _fresh(self) -> dict[str, Any]:
        copies = {name: self.data[name].copy(order="K") for name in self.ladder.outputs}
        return {**self.data, **copies}

    def _launch(self, rung: Rung, step: Step, language: str, arrays: Mapping[str, Any]) -> tuple[Any, tuple[Any, ...]]:
        constants = {name: self.parameters[name] for name in rung.constants}
        kernel = self.ladder.kernel(step.kernel or rung.name, language, constants)
        names = (step.arguments or rung.arguments or self.ladder.arguments)[language]
        values = tuple(arrays[name] if name in arrays else self.parameters[name] for name in names)
        return kernel[step.grid, step.block, 0, step.dynamic_shared_bytes], values

    def judge(self, arrays: Mapping[str, Any]) -> Verdict:
        """Compare the results in an attempt's `arrays` with the reference."""
        results = self.ladder.result(arrays, self.parameters) if self.ladder.result else arrays
        verdicts = [
            _judge_array(name, np.asarray(results[name]), np.asarray(expected), self.tolerance.get(name, 0.0))
            for name, expected in self.expected.items()
        ]
        wrong = [verdict.message for verdict in verdicts if not verdict.correct]
        return Verdict(not wrong, max(verdict.max_error for verdict in verdicts), " ".join(wrong))


def _judge_array(name: str, got: np.ndarray, expected: np.ndarray, tolerance: float | np.ndarray) -> Verdict:
    if got.shape != expected.shape:
        return Verdict(False, np.inf, f"{name} must have the shape {expected.shape}, but {got.shape} came.")
    errors = absolute_errors(got, expected)
    wrong = errors > tolerance
    worst = float(errors.max(initial=0.0))
    if not wrong.any():
        return Verdict(True, worst)
    first = tuple(int(axis[0]) for axis in np.nonzero(np.atleast_1d(wrong)))
    place = ", ".join(map(str, first))
    came, must = np.atleast_1d(got)[first], np.atleast_1d(expected)[first]
    count = int(np.count_nonzero(wrong))
    return Verdict(
        False, worst, f"{name}[{place}] must be {must:.9g}, but {came:.9g} came ({count:,} of {wrong.size:,} wrong)."
    )


def absolute_errors(got: np.ndarray, expected: np.ndarray) -> np.ndarray:
    """|got - expected| in float64, 0 where both are the same infinity or both NaN, inf where only one is."""
    got, expected = np.asarray(got, np.float64), np.asarray(expected, np.float64)
    with np.errstate(invalid="ignore", over="ignore"):
        errors = np.abs(got - expected)
    same = (got == expected) | (np.isnan(got) & np.isnan(expected))
    return np.where(same, 0.0, np.where(np.isnan(errors), np.inf, errors))
