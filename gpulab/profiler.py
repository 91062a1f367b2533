"""The one door for notebooks, panels, labs and the command line: `profile` and `compare`."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from gpulab.devices import device_for
from gpulab.devices.current import current
from gpulab.devices.protocol import Device, LaunchRecord
from gpulab.errors import ArgumentError, CompileError, GpulabError, KernelFault, TimeLimitError
from gpulab.gpus import Gpu
from gpulab.kernels import Ladder, Problem, Rung
from gpulab.kernels import ladder as find_ladder
from gpulab.launchables.base import BoundLaunch, plain_arguments
from gpulab.profiling import CheckReport, Comparison, Profile, RungResult
from gpulab.profiling.judged import judge

__all__ = ["CheckReport", "Comparison", "Profile", "RungResult", "check", "compare", "profile"]

if TYPE_CHECKING:
    Which = str | os.PathLike[str] | Gpu | Device | None


def profile(
    bound: BoundLaunch, *args: Any, gpu: Which = None, sample_blocks: int | None = None, check: bool = False
) -> Profile:
    """Run a kernel once, count what it does, and judge it.

    Parameters
    ----------
    bound : BoundLaunch
        The kernel with its launch configuration: ``scale[4096, 256]``.
    *args
        Its arguments; arrays hold the results afterwards.
    gpu : str, path, Gpu or None
        The GPU to judge for; the current one if None. A name of the catalog stands for an emulated GPU.
    sample_blocks : int, optional
        Run only so many blocks, from the start, the middle, the end and the edges of the grid, and extrapolate the counters
        to all: for launches that are too large to emulate whole. The profile says which arrays are incomplete then.
    check : bool
        Check it first, on copies of the arguments: the profile's `check` has the report, and so has the error if the kernel
        does not come to its end.

    Returns
    -------
    Profile

    Raises
    ------
    GpulabError
        Whatever a launch raises: `CompileError`, `ArgumentError`, `LaunchError`, `KernelFault`, `TimeLimitError`.
    """
    if not isinstance(bound, BoundLaunch):
        raise ArgumentError(
            f"profile needs a kernel with its launch, then the arguments: profile(kernel[grid, block], x, y), "
            f"but {bound!r} came."
        )
    device = _device(gpu)
    values = plain_arguments(args)
    if not check:
        return _profiled(device, bound, values, sample_blocks)
    report = _checked_beside(device, bound, values)
    try:
        profile = _profiled(device, bound, values, sample_blocks)
    except GpulabError as error:
        error.add_note(repr(report))
        raise
    profile.check = report
    return profile


def _profiled(device: Device, bound: BoundLaunch, values: Sequence[Any], sample_blocks: int | None) -> Profile:
    if device.kind == "emulated":
        record = device.launch(bound, values, count=True, sample_blocks=sample_blocks)
        return Profile((judge(record, device.gpu),))
    counted, notes = _counted_beside(device, bound, values, sample_blocks)
    record = device.launch(bound, values, count=True)
    if counted is not None:
        record = dataclasses.replace(record, program=counted.program, counters=counted.counters)
    return Profile((judge(record, device.gpu),), notes)


def compare(
    ladder: str | Ladder, gpu: Which = None, language: str | None = None, **parameters: int | float | str
) -> Comparison:
    """Run every rung of a ladder on the same data, check each against the reference, and set them side by side.

    Parameters
    ----------
    ladder : str or Ladder
        A name of `gpulab.kernels()`.
    gpu : str, path, Gpu or None
        As for `profile`.
    language : str, optional
        ``numba`` or ``cuda``; the first that the ladder has if None.
    **parameters
        Of the ladder; its defaults else.

    Returns
    -------
    Comparison
        A rung whose results are wrong is in it with ``correct=False`` and the first mismatch.

    Raises
    ------
    GpulabError
        If the ladder, the language or the GPU does not exist, or a parameter is not allowed.
    """
    found = find_ladder(ladder) if isinstance(ladder, str) else ladder
    chosen = _language(found, language)
    device = _device(gpu)
    problem = found.at(**parameters)
    rungs = tuple(_run_rung(problem, rung, chosen, device) for rung in found.rungs if chosen in rung.languages)
    return Comparison(found.name, device.gpu, dict(problem.parameters), rungs)


def check(bound: BoundLaunch, *args: Any, gpu: Which = None) -> CheckReport:
    """Run a kernel once and find what is wrong with it: a memory, race, barrier and initialization checker in one.

    The run goes on behind a fault where it can: a faulty access is left out, and loads 0. It counts nothing. On a CUDA GPU the
    emulated twin of the GPU checks, on copies of the arguments.

    Parameters
    ----------
    bound : BoundLaunch
        The kernel with its launch configuration: ``scale[4096, 256]``.
    *args
        Its arguments; arrays hold the results afterwards, as after a launch.
    gpu : str, path, Gpu or None
        As for `profile`.

    Returns
    -------
    CheckReport
        With ``ok``, ``faults`` and ``notes``. Nothing that the kernel does is raised.

    Raises
    ------
    GpulabError
        `CompileError` or `ArgumentError`: then there is nothing to run.
    """
    if not isinstance(bound, BoundLaunch):
        raise ArgumentError(
            f"check needs a kernel with its launch, then the arguments: check(kernel[grid, block], x, y), "
            f"but {bound!r} came."
        )
    device, values = _device(gpu), plain_arguments(args)
    if device.kind == "emulated":
        return CheckReport(device.check(bound, values))
    return _checked_beside(device, bound, values)


def _checked_beside(device: Device, bound: BoundLaunch, values: Sequence[Any]) -> CheckReport:
    """A check on copies of the arguments, which leaves them as they are."""
    twin = device_for(device.gpu)
    return CheckReport(twin.check(bound, [_copied(value, twin) for value in values]))


def _device(gpu: Which) -> Device:
    return current() if gpu is None else device_for(gpu)


def _language(ladder: Ladder, language: str | None) -> str:
    if language is None:
        return ladder.languages[0]
    if language not in ladder.languages:
        raise ArgumentError(
            f"The ladder {ladder.name!r} is written in {', '.join(ladder.languages)}, but language={language!r} came."
        )
    return language


def _run_rung(problem: Problem, rung: Rung, language: str, device: Device) -> RungResult:
    attempt = problem.attempt(rung, language)
    try:
        profiles = [profile(bound, *arguments, gpu=device) for bound, arguments in attempt.launches]
    except (CompileError, KernelFault, TimeLimitError) as error:
        return RungResult(rung.name, language, False, float("inf"), str(error), None)
    launches = tuple(launch for one in profiles for launch in one.launches)
    verdict = problem.judge(attempt.arrays)
    together = Profile(launches, profiles[0].remarks)
    return RungResult(rung.name, language, verdict.correct, verdict.max_error, verdict.message, together)


def _counted_beside(
    device: Device, bound: BoundLaunch, args: Sequence[Any], sample_blocks: int | None
) -> tuple[LaunchRecord | None, tuple[str, ...]]:
    """The same launch on copies of the arguments, on the emulated twin of a CUDA GPU: it counts, the GPU measures."""
    try:
        twin = device_for(device.gpu)
        copies = [_copied(value, twin) for value in args]
        return twin.launch(bound, copies, count=True, sample_blocks=sample_blocks), ()
    except GpulabError as error:
        return None, (f"Nothing was counted, because the emulated twin of this GPU could not run it: {error}",)


def _copied(value: Any, twin: Device) -> Any:
    if isinstance(value, np.ndarray):
        return value.copy(order="K")
    if hasattr(value, "copy_to_host"):
        return twin.to_device(value)
    return value.get() if hasattr(value, "get") and hasattr(value, "__cuda_array_interface__") else value
