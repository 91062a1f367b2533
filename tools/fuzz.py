"""Fuzzing: damaged PTX and nonsensical launches must end in a `GpulabError`, never in a crash, a hang or another error.

Any Python with gpulab runs it: ``python tools/fuzz.py --minutes 30``. Cases run in processes of their own, so that a
crash is seen and the run goes on; each has a number, and ``--case N`` runs that one again in this process.
"""

from __future__ import annotations

import argparse
import contextlib
import faulthandler
import io
import os
import random
import re
import resource
import subprocess
import sys
import tempfile
import time
import traceback
import warnings
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np

import gpulab
from gpulab.errors import GpulabError
from gpulab.ptx.isa import SETS
from gpulab.ptx.opcodes import rows

HANG_S = 90
MEMORY_BYTES = 12 << 30
TIME_LIMIT_S = "1"
REPOSITORY = Path(__file__).parents[1]
SOURCES = REPOSITORY / "gpulab" / "kernels", REPOSITORY / "tests" / "corpus"
VARIETY = r"""
#include <cuda_fp16.h>
extern "C" __global__ void variety(float* x, int* k, double* d, int n) {
    __shared__ float tile[256];
    extern __shared__ int more[];
    int i = blockIdx.x * blockDim.x + threadIdx.x, t = threadIdx.x;
    float local[8];
    for (int j = 0; j < 8; ++j) local[(j * 3 + t) & 7] = j * 0.5f;
    tile[t & 255] = i < n ? x[i] : 0.0f;
    __syncthreads();
    for (int s = 128; s > 0; s >>= 1) { if (t < s) tile[t & 255] += tile[(t + s) & 255]; __syncthreads(); }
    if (i >= n) return;
    float v = tile[0] + local[t & 7] + sinf(x[i]) / (1.0f + expf(x[i])) + __half2float(__float2half(x[i]));
    v += __shfl_down_sync(__activemask(), v, 1);
    switch (k[i] & 7) { case 0: v += 1; break; case 1: v *= 2; break; case 2: v -= 3; break; case 5: v = -v; break; }
    long long big = (long long)k[i] * 12345678901LL;
    atomicAdd(&k[0], __popc(i) + (int)(big >> 40));
    atomicMax(&k[n / 2], __clz(i));
    d[i] = sqrt(d[i] * d[i] + 1.0) + fmod((double)v, 3.0) + (double)(big % (i + 1));
    if (k[i] == 77) printf("%d %f\n", i, v);
    x[i] = v + __dp4a(i, t, k[i]) + __ballot_sync(__activemask(), v > 0);
}
"""


# ---- material


class Material:
    """Valid PTX to damage, and the words that replacements are taken from."""

    def __init__(self) -> None:
        sources = [path.read_text() for folder in SOURCES for path in sorted(folder.glob("*.cu"))]
        self.texts: list[str] = []
        for source in (*sources, VARIETY):
            # One kernel's module has all kernels of its file.
            for name in re.findall(r"__global__\s+void\s+(\w+)", source):
                with contextlib.suppress(GpulabError):  # a template has no kernel of its plain name
                    self.texts.append(gpulab.RawKernel(source, name).compile((), (8, 0)).text)
                    break
        self.words = sorted({word for text in self.texts for word in re.findall(r"[%.\w]+", text)})
        self.rows = [row for entries in rows().values() for row in entries]


def spelling(row: Any, chance: random.Random) -> str:
    """A random spelling of a row of the instruction table."""

    def pick(match: re.Match[str]) -> str:
        inner = match[1] or match[2]
        if match[1] is not None and chance.random() < 0.5:
            return ""
        return (
            re.sub(r"<([^<>]*)>", lambda m: chance.choice(_alternatives(m[1])), inner)
            if match[1]
            else chance.choice(_alternatives(inner))
        )

    return re.sub(r"\{([^{}]*)\}|<([^<>]*)>", pick, row.syntax)


def _alternatives(choice: str) -> list[str]:
    name, _, words = choice.partition(":")
    return " ".join(SETS.get(word, word) for word in (words or name).split()).split()


def operand(material: Material, chance: random.Random) -> str:
    """Something that may or may not fit."""
    register = f"%{chance.choice(['r', 'rd', 'f', 'p', 'rs', 'fd', 'h'])}{chance.randrange(12)}"
    number = str(
        chance.choice(
            [0, 1, -1, 31, 32, 255, 2**31 - 1, 2**32, -(2**63), 2**64, "0f3F800000", "0d0", "0x7fffffff", "1.5", "-0.0"]
        )
    )
    return chance.choice(
        [
            register,
            register,
            number,
            f"[{register}]",
            f"[{register}+{chance.choice([4, -8, 2**31])}]",
            f"{{{register}, {register}}}",
            chance.choice(material.words),
        ]
    )


REGISTERS = {
    "f32": "f",
    "f64": "fd",
    "b64": "rd",
    "u64": "rd",
    "s64": "rd",
    "b16": "rs",
    "u16": "rs",
    "s16": "rs",
    "f16": "rs",
    "pred": "p",
}

DECLARED = "".join(
    f".reg .{type_name} %z{name}<8>; "
    for name, type_name in {"r": "b32", "rd": "b64", "rs": "b16", "f": "f32", "fd": "f64", "p": "pred"}.items()
)


def instruction(material: Material, chance: random.Random) -> str:
    """Any instruction of the table; its operands mostly fit."""
    row = chance.choice(material.rows)
    spelled = spelling(row, chance)
    kind = REGISTERS.get(spelled.rsplit(".", 1)[-1], "r")
    operands = []
    for role in (row.operands if isinstance(row.operands, str) else "").split(","):
        role = role.strip()
        register = f"%z{'p' if role[:1] in 'pq' or ':pred' in role else kind}{1 + chance.randrange(6)}"
        if not role or (role.endswith("?") and chance.random() < 0.5):
            continue
        if chance.random() < 0.08:
            operands.append(operand(material, chance))
        elif role.startswith("["):
            operands.append(f"[%{chance.choice(['z', ''])}rd{1 + chance.randrange(7)}]")
        elif ":imm" in role or (":u32" in role and chance.random() < 0.7):
            operands.append(str(chance.choice([0, 1, 7, 31, 32, 255, -1])))
        else:
            operands.append(register)
    return f"{chance.choice(['', '', '@%zp1 ', '@!%zp2 '])}{spelled} {', '.join(operands)};"


def damage(material: Material, chance: random.Random) -> str:
    """A valid module with a few things changed."""
    # Registers of the inserted instructions, beside those of the kernel.
    lines = re.sub(r"^\{$", "{\n" + DECLARED, chance.choice(material.texts), flags=re.M).split("\n")
    for _ in range(chance.choice([1, 1, 2, 3, 8])):
        at = chance.randrange(len(lines))
        kind = chance.randrange(9)
        if kind == 0:
            del lines[at]
        elif kind == 1:
            lines.insert(at, chance.choice(lines))
        elif kind == 2:
            other = chance.randrange(len(lines))
            lines[at], lines[other] = lines[other], lines[at]
        elif kind in (3, 4):
            words = list(re.finditer(r"[%.\w]+", lines[at]))
            if words:
                word = chance.choice(words)
                lines[at] = lines[at][: word.start()] + chance.choice(material.words) + lines[at][word.end() :]
        elif kind == 5 and lines[at]:
            place = chance.randrange(len(lines[at]))
            lines[at] = (
                lines[at][:place]
                + chance.choice(["", ";", "{", "}", "[", ",", "@", "%", '"', "\0", "é", "//", "/*"])
                + lines[at][place + chance.randrange(2) :]
            )
        elif kind in (6, 7):
            lines.insert(at, instruction(material, chance))
        else:
            lines[at] = re.sub(
                r"\b\d+\b", lambda _: str(chance.choice([0, 1, 3, 4, 1024, 2**31, 2**40, 10**30])), lines[at], count=1
            )
        if not lines:
            lines = [""]
    return "\n".join(lines)


# ---- launches


def dims(chance: random.Random) -> Any:
    """A grid or a block, often wrong."""
    sane = [1, 2, 32, 64, (2, 3), (16, 16), (4, 4, 4), 33]
    wild = [
        0,
        -1,
        1025,
        (32, 33),
        (),
        (1, 2, 3, 4),
        2**31,
        2**40,
        1.5,
        "1",
        None,
        np.int64(8),
        (np.int32(3), 2),
        [4, 4],
        True,
        (0, 1),
        (1, 70000),
        float("nan"),
    ]
    return chance.choice(sane if chance.random() < 0.93 else wild)


def value(chance: random.Random) -> Any:
    """An argument, often wrong."""
    n = chance.choice([0, 1, 5, 100, 4096])
    sane = [
        lambda: np.ones(n, np.float32), lambda: np.arange(n, dtype=np.int32), lambda: np.ones(n), lambda: n, lambda: 3, lambda: np.int32(n),
        lambda: np.float32(1.5), lambda: np.ones((4, 32), np.float32), lambda: np.zeros(n, np.float16),
    ]  # fmt: skip
    wild = [
        lambda: None, lambda: "text", lambda: 2**40, lambda: -(2**70), lambda: float("nan"), lambda: object(), lambda: [1, 2, 3], lambda: (1.0,), dict,
        lambda: np.ones((3, 4), np.float32)[:, ::2], lambda: np.ones(8, np.float32)[::-1], lambda: np.array(5.0), lambda: np.ones(4, complex),
        lambda: np.array(["a", "b"]), lambda: np.array([None, 1]), lambda: np.ones(3, dtype=[("x", "f4"), ("y", "i8")]), lambda: np.datetime64("2020-01-01"),
        lambda: np.broadcast_to(np.float32(1), (64,)), lambda: _read_only(), lambda: _freed(), lambda: gpulab.cuda.to_device(np.ones(n, np.float32)),
        lambda: np.ones((2,) * 9, np.float32), lambda: b"bytes", lambda: 1j, lambda: np.ones(n, ">f4"), lambda: True, lambda: np.longdouble(1), lambda: int,
        lambda: range(4), lambda: np.frombuffer(b"abcdefg", np.uint8)[1:], lambda: memoryview(b"abc"),
    ]  # fmt: skip
    return chance.choice(sane if chance.random() < 0.8 else wild)()


def _ptx_kernel(text: str, chance: random.Random) -> gpulab.PtxKernel:
    """One of the module's kernels."""
    names = re.findall(r"\.entry\s+([\w$]+)", text)
    return gpulab.PtxKernel(text, chance.choice(names) if names else None)


def parameter_types(kernel: Any) -> list[str]:
    """PTX types of a kernel's parameters; of a Numba kernel what it would take."""
    text = getattr(kernel, "text", None)
    if text is None:
        return ["u64", "u64"] if "copy" in kernel.name else ["u64", "u64", "s32"]
    entry = re.search(rf"\.entry\s+{re.escape(kernel.name)}\s*\(([^)]*)\)", text)
    return re.findall(r"\.param\s+\.(\w+)", entry[1]) if entry else []


def fitting(type_name: str, chance: random.Random) -> Any:
    """An argument for a parameter of this type, now and then another one."""
    if chance.random() < 0.06:
        return value(chance)
    if type_name in ("u64", "b64"):
        n = chance.choice([1, 64, 4096, 20_000])
        return np.arange(n, dtype=chance.choice([np.float32, np.float32, np.int32, np.float64, np.float16]))
    if type_name.startswith("f"):
        return chance.choice([1.5, 0.0, float("inf"), np.float32(2)])
    return chance.choice([1, 5, 64, 100, 4096, 0, -1, np.int32(33)])


def _read_only() -> np.ndarray:
    array = np.ones(64, np.float32)
    array.flags.writeable = False
    return array


def _freed() -> Any:
    array = gpulab.cuda.to_device(np.ones(64, np.float32))
    array.buffer.free()
    return array


def numba_kernels() -> list[Any]:
    """A few kernels that take any types."""

    def add(x, y, n):  # noqa: ANN001, ANN202
        i = gpulab.cuda.grid(1)
        if i < n:
            y[i] = x[i] + y[i]

    def copy(x, y):  # noqa: ANN001, ANN202
        i, j = gpulab.cuda.grid(2)
        if i < x.shape[0] and j < x.shape[1]:
            y[i, j] = x[i, j]

    return [gpulab.cuda.jit(add), gpulab.cuda.jit(copy), gpulab.cuda.jit(debug=True, opt=False)(add)]


class Fuzzer:
    """Runs cases by number."""

    def __init__(self) -> None:
        self.material = Material()
        self.numba = numba_kernels()
        self.outcomes: Counter[str] = Counter()

    def run(self, number: int) -> None:
        """One case; raises what is no `GpulabError`."""
        chance = random.Random(number)
        gpulab.use(chance.choice(["A100", "H100"]))
        try:
            with contextlib.redirect_stdout(io.StringIO()), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                self._launch(chance)
            self.outcomes["ran"] += 1
        except GpulabError as error:
            self.outcomes[type(error).__name__] += 1

    def _launch(self, chance: random.Random) -> None:
        kind = chance.randrange(10)
        if kind < 7:
            kernel = _ptx_kernel(damage(self.material, chance), chance)
        elif kind == 7:
            kernel = _ptx_kernel(chance.choice(self.material.texts), chance)
        else:
            kernel = chance.choice(self.numba)
        arguments = [fitting(type_name, chance) for type_name in parameter_types(kernel)]
        if chance.random() < 0.05:
            arguments = arguments[:-1] if chance.random() < 0.5 else [*arguments, 1]
        grid, block = dims(chance), dims(chance)
        shared = chance.choice([0] * 12 + [1024, 48 << 10, 1 << 20, -1, 2**33, None, 1.5])
        bound = kernel[grid, block, None, shared] if shared != 0 else kernel[grid, block]
        action = chance.randrange(4)
        if action == 0:
            bound(*arguments)
        elif action == 1 and hasattr(gpulab, "check"):
            report = gpulab.check(bound, *arguments)
            _ = repr(report), report._repr_html_(), report.to_json()
        else:
            sample = chance.choice([None, None, 1, 3, 64, 0, -1, "x"])
            profile = gpulab.profile(bound, *arguments, sample_blocks=sample)
            _ = repr(profile), profile.to_json(), profile.on("H100"), profile._repr_html_()


# ---- processes


def worker(first: int, step: int, log: Path, seconds: float) -> None:
    """Run cases first, first + step, …; `log` always names the one that runs, and what went wrong."""
    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    fuzzer, end, number = Fuzzer(), time.monotonic() + seconds, first
    while time.monotonic() < end:
        log.write_text(str(number))
        try:
            fuzzer.run(number)
        except Exception:  # noqa: BLE001 (that is what is looked for)
            print(f"case {number}:\n{traceback.format_exc()}", flush=True)
            fuzzer.outcomes["FAILED"] += 1
        number += step
    print(f"{sum(fuzzer.outcomes.values())} cases: {dict(fuzzer.outcomes.most_common())}", flush=True)


def watch(first: int, step: int, seconds: float) -> int:
    """Run a worker, and another behind the case at which it crashed or hung. Returns how often that was."""
    end, lost = time.monotonic() + seconds, 0
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "case"
        while (left := end - time.monotonic()) > 1:
            log.write_text(str(first))
            command = [
                sys.executable,
                __file__,
                "--worker",
                str(first),
                "--step",
                str(step),
                "--log",
                str(log),
                "--minutes",
                str(left / 60),
            ]
            process = subprocess.Popen(command, env={**os.environ, "GPULAB_TIME_LIMIT_S": TIME_LIMIT_S})
            while process.poll() is None:
                time.sleep(0.5)
                if time.time() - log.stat().st_mtime > HANG_S:
                    process.kill()
                    process.wait()
                    print(f"case {log.read_text()}: HANG", flush=True)
            if process.returncode == 0:
                break
            lost += 1
            print(f"case {log.read_text()}: worker ended with {process.returncode}", flush=True)
            first = int(log.read_text()) + step
    return lost


def main() -> None:
    """Run one case here, or many in processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=30)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--case", type=int, help="run this case alone, in this process")
    parser.add_argument("--worker", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--step", type=int, default=1, help=argparse.SUPPRESS)
    parser.add_argument("--log", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.case is not None:
        os.environ["GPULAB_TIME_LIMIT_S"] = TIME_LIMIT_S
        fuzzer = Fuzzer()
        fuzzer.run(options.case)
        print(dict(fuzzer.outcomes))
    elif options.worker is not None:
        worker(options.worker, options.step, options.log, 60 * options.minutes)
    else:
        sys.exit(1 if watch(options.first, options.step, 60 * options.minutes) else 0)


if __name__ == "__main__":
    main()
