"""What works on this machine, what doesn't, and what to do about it.

Compilers are judged by compiling a small kernel, not by being there.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import os
import platform
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

import gpulab

CUDA_SOURCE = """extern "C" __global__ void twice(float *x, int n) {
    int i = blockIdx.x * blockDim.x + threadIdx.x;
    if (i < n) x[i] = 2.0f * x[i];
}
"""
#: The oldest driver that runs what CUDA 12's wheels make, as the driver reports it (12.0).
OLDEST_DRIVER = 12000
_REINSTALL = "Run ./lab again, or: pip install -c constraints.txt -e ."


@dataclass(frozen=True, slots=True)
class Check:
    """One thing that was looked at.

    Attributes
    ----------
    name : str
    status : str
        ``ok``; ``missing`` or ``broken`` where the labs need it; ``absent`` where they don't.
    found : str
        What is there, with its version, or what went wrong.
    remedy : str or None
        What to do, if there is something to do.
    """

    name: str
    status: str
    found: str
    remedy: str | None = None

    @property
    def is_problem(self) -> bool:
        """Whether labs can't work because of it."""
        return self.status in ("missing", "broken")


@dataclass(frozen=True, slots=True)
class Report:
    """All checks, and in one sentence what they mean.

    Attributes
    ----------
    summary : str
    gpu : str or None
        The CUDA GPU that labs can use, as the driver calls it.
    checks : tuple of Check
    """

    summary: str
    gpu: str | None
    checks: tuple[Check, ...]

    @property
    def works(self) -> bool:
        """Whether all labs work here."""
        return not any(check.is_problem for check in self.checks)

    def to_json(self) -> dict[str, object]:
        """``{"works", "summary", "gpu", "version", "checks": [{"name", "status", "found", "remedy"}]}``."""
        return {
            "works": self.works,
            "summary": self.summary,
            "gpu": self.gpu,
            "version": gpulab.__version__,
            "checks": [asdict(check) for check in self.checks],
        }


def examine() -> Report:
    """Look at everything that labs need. Takes a few seconds, because compilers really run."""
    name, gpu_checks = examine_gpu()
    checks = (check_python(), *check_packages(), *check_compilers(), check_cache(), *gpu_checks)
    return Report(summarize(checks, name), name, checks)


def check_compilers() -> tuple[Check, ...]:
    """Every compiler and the emulator, each at work on a small kernel."""
    with _empty_cache():
        return (
            attempt("CUDA C++ compiler", compile_cuda, _REINSTALL),
            attempt("Numba compiler", compile_numba, _REINSTALL),
            attempt("ptxas", assemble, _REINSTALL),
            attempt("nvdisasm", disassemble, _REINSTALL),
            attempt("emulated GPU", run_kernel, _REINSTALL),
        )


@contextlib.contextmanager
def _empty_cache() -> Iterator[None]:
    """What was compiled before proves nothing about the compilers that are here now."""
    before = os.environ.get("GPULAB_CACHE")
    with tempfile.TemporaryDirectory() as folder:
        os.environ["GPULAB_CACHE"] = folder
        try:
            yield
        finally:
            del os.environ["GPULAB_CACHE"]
            if before is not None:
                os.environ["GPULAB_CACHE"] = before


def summarize(checks: tuple[Check, ...], gpu: str | None) -> str:
    """The first line: do the labs work here, and on what."""
    problems = [check.name for check in checks if check.is_problem]
    if problems:
        return f"Not all labs work here: {', '.join(problems)} must be repaired first; the lines below say how."
    if gpu:
        return f"All labs work here: kernels run on an emulated GPU, and on this machine's {gpu}."
    return "All labs work here: this machine has no CUDA GPU, so kernels run on an emulated one."


def attempt(name: str, action: Callable[[], str], remedy: str) -> Check:
    """Run `action`, which returns what it found; whatever it raises is the finding of a broken thing."""
    try:
        return Check(name, "ok", action())
    except Exception as error:  # noqa: BLE001 (whatever is broken is what the reader asks for)
        lines = str(error).strip().splitlines()
        return Check(name, "broken", f"{type(error).__name__}: {lines[0] if lines else 'no message'}", remedy)


def check_python() -> Check:
    """The interpreter, by the range that the package's own metadata states."""
    found = f"{platform.python_version()} on {platform.system()} {platform.machine()} ({sys.prefix})"
    if sys.platform == "darwin":
        return Check("Python", "broken", found, "NVIDIA ships no compilers for macOS: use a Linux container or Binder.")
    return Check("Python", "ok", found)


def check_packages() -> Iterator[Check]:
    """Every package that the base installation needs, against the range that the metadata states."""
    from packaging.requirements import Requirement

    try:
        lines = importlib.metadata.requires("gpulab") or []
    except importlib.metadata.PackageNotFoundError:
        yield Check("gpulab", "missing", "the package is not installed, only its folder is there", _REINSTALL)
        return
    for requirement in map(Requirement, lines):
        if requirement.marker is None or requirement.marker.evaluate({"extra": ""}):
            yield _check_package(requirement.name, str(requirement.specifier), requirement.specifier.contains)


def _check_package(name: str, wanted: str, fits: Callable[[str], bool]) -> Check:
    remedy = f'pip install "{name}{wanted}"'
    try:
        version = importlib.metadata.version(name)
    except importlib.metadata.PackageNotFoundError:
        return Check(name, "missing", "not installed", remedy)
    if not fits(version):
        return Check(name, "broken", f"{version}, but {wanted} is needed", remedy)
    return Check(name, "ok", version)


def compile_cuda() -> str:
    """Compile CUDA C++ to PTX and say by what."""
    from gpulab.toolchain import nvrtc

    return f"{nvrtc.compile_kernel(CUDA_SOURCE, 'twice').compiler} compiles for compute capability 8.0"


def compile_numba() -> str:
    """Compile a Python kernel to PTX and say by what."""
    import numpy as np

    from gpulab import cuda

    @cuda.jit
    def twice(x):  # noqa: ANN001, ANN202 (a kernel's types come from its arguments)
        i = cuda.grid(1)
        if i < x.size:
            x[i] = 2 * x[i]

    made = twice.compile((np.zeros(1, np.float32),), (8, 0))
    return f"{made.compiler} compiles for compute capability 8.0"


def assemble() -> str:
    """Assemble PTX and say how many registers the kernel takes."""
    registers = _assembled().registers_per_thread
    if registers is None:
        raise gpulab.GpulabError("ptxas ran but reported no registers.")
    return f"assembles; the test kernel takes {registers} registers per thread"


def disassemble() -> str:
    """Disassemble and say how long the listing is."""
    sass = _assembled().sass
    if not sass:
        raise gpulab.GpulabError("nvdisasm gave no listing.")
    return f"lists SASS ({sum('/*' in line for line in sass.splitlines())} lines for the test kernel)"


def _assembled() -> object:
    from gpulab.toolchain import assemble, nvrtc

    text = nvrtc.compile_kernel(CUDA_SOURCE, "twice")
    return assemble(text.text, text.compute_capability)


def run_kernel() -> str:
    """Run a kernel on an emulated GPU and compare what it computed."""
    import numpy as np

    kernel = gpulab.RawKernel(CUDA_SOURCE, "twice")
    values = np.arange(100, dtype=np.float32)
    profile = gpulab.profile(kernel[1, 128], values, np.int32(values.size), gpu="A100")
    if not np.array_equal(values, 2 * np.arange(100, dtype=np.float32)):
        raise gpulab.GpulabError("The test kernel computed something else than NumPy.")
    return f"runs the test kernel as an A100 ({profile.time.source} time, exact counters)"


def check_cache() -> Check:
    """The folder where compiled kernels are kept: handy, not needed."""
    from gpulab.toolchain import cache

    folder = cache.folder()
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with tempfile.NamedTemporaryFile(dir=folder):
            return Check("cache", "ok", f"{_short(folder)} keeps compiled kernels")
    except OSError as error:
        found = f"{_short(folder)} can't be written ({error.strerror}): kernels compile anew in each process"
        return Check("cache", "absent", found, "Set GPULAB_CACHE to a folder that you can write.")


def _short(path: Path) -> str:
    with contextlib.suppress(ValueError, RuntimeError):
        return str(Path("~") / path.relative_to(Path.home()))
    return str(path)


def examine_gpu() -> tuple[str | None, tuple[Check, ...]]:
    """Name of the usable CUDA GPU or None, and the checks of driver and CuPy."""
    from gpulab.devices.detect import find_driver, why_no_cuda

    driver = find_driver()
    if driver is None:
        return None, (Check("CUDA driver", "absent", "none, and the labs need none"),)
    shown = f"for CUDA {driver.version // 1000}.{driver.version % 1000 // 10}; {', '.join(driver.gpus) or 'no GPU'}"
    if driver.version < OLDEST_DRIVER:
        return None, (Check("CUDA driver", "absent", shown, "Update the NVIDIA driver to 525 or newer."),)
    if not driver.gpus:
        return None, (Check("CUDA driver", "absent", shown, "Is the GPU hidden by CUDA_VISIBLE_DEVICES?"),)
    reason = why_no_cuda()
    if reason is not None:
        return None, (Check("CUDA driver", "ok", shown), Check("CuPy", "absent", reason))
    return driver.gpus[0], (Check("CUDA driver", "ok", shown), Check("CuPy", "ok", _cupy_version()))


def _cupy_version() -> str:
    names = importlib.metadata.packages_distributions().get("cupy", ())
    return ", ".join(f"{name} {importlib.metadata.version(name)}" for name in names)
