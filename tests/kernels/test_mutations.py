"""A claim must be earned: undo the idea of a rung by editing its source, and the claim fails, the result stays right."""

from __future__ import annotations

import functools
import importlib.util
import re
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import gpulab
from gpulab.kernels import Ladder
from gpulab.profiler import profile

GPU = "A100"


@dataclass(frozen=True)
class Mutation:
    """Edits of one kernel's source; with kernel "", of the whole file."""

    ladder: str
    rung: str
    language: str
    kernel: str
    edits: tuple[tuple[str, str], ...]

    def __str__(self) -> str:
        return f"{self.ladder}-{self.rung}-{self.language}"


MUTATIONS = (
    # Structures so large that each lane needs a sector of its own.
    Mutation("copy", "aos", "numba", "", (("FIELDS = 4 ", "FIELDS = 8 "),)),
    Mutation("copy", "aos", "cuda", "", (("define FIELDS 4 ", "define FIELDS 8 "), ("FIELDS = 4 ", "FIELDS = 8 "))),
    # The structure of arrays laid out as an array of structures again.
    Mutation("copy", "soa", "numba", "soa", (("field * particles + particle", "particle * FIELDS + field"),)),
    Mutation("copy", "soa", "cuda", "soa", (("field * particles + particle", "particle * FIELDS + field"),)),
    # A shift, and neighbors 32 elements apart.
    Mutation("copy", "offset", "numba", "offset", (("i + shift", "i % 512 * 32 + i // 512 + shift"),)),
    Mutation("copy", "offset", "cuda", "offset", (("i + shift", "i % 512 * 32 + i / 512 + shift"),)),
    # One element off the boundary.
    Mutation("copy", "coalesced", "numba", "coalesced", (("cuda.grid(1)", "(cuda.grid(1) + 1) % x.size"),)),
    Mutation("copy", "coalesced", "cuda", "coalesced", (("if (i < n)", "i = (i + 1) % n;\n    if (i < n)"),)),
    # Read a row of the tile and write it down a column of the result.
    Mutation(
        "transpose",
        "tiled",
        "numba",
        "tiled",
        (("out[row + y, column] = tile[x, y]", "out[row + x, column - x + y] = tile[y, x]"),),
    ),
    Mutation(
        "transpose",
        "tiled",
        "cuda",
        "tiled",
        (
            (
                "out[(row + y) * rows + column] = tile[x][y]",
                "out[(row + x) * rows + column - x + y] = tile[y][x]",
            ),
        ),
    ),
    # No padding.
    Mutation("transpose", "padded", "numba", "", (("PITCH = TILE + 1", "PITCH = TILE"),)),
    Mutation("transpose", "padded", "cuda", "padded", (("TILE + 1", "TILE"),)),
    # The working threads spread over all warps again.
    Mutation(
        "reduction",
        "sequential",
        "numba",
        "sequential",
        (
            ("thread < step", "thread % (cuda.blockDim.x // step) == 0"),
            ("shared[thread + step]", "shared[thread + cuda.blockDim.x // step // 2]"),
        ),
    ),
    Mutation(
        "reduction",
        "sequential",
        "cuda",
        "sequential",
        (
            ("thread < step", "thread % (blockDim.x / step) == 0"),
            ("shared[thread + step]", "shared[thread + blockDim.x / step / 2]"),
        ),
    ),
    # Lanes exchange through shared memory.
    Mutation(
        "reduction",
        "shuffle",
        "numba",
        "warp_sum",
        (
            ("step = WARP // 2", "scratch = cuda.shared.array(MAX_BLOCK, np.float32)\n    step = WARP // 2"),
            (
                "value += cuda.shfl_down_sync(ALL_LANES, value, step)",
                "scratch[cuda.threadIdx.x] = value\n        cuda.syncwarp()\n"
                "        value += scratch[cuda.threadIdx.x // WARP * WARP + (cuda.threadIdx.x + step) % WARP]\n"
                "        cuda.syncwarp()",
            ),
        ),
    ),
    Mutation(
        "reduction",
        "shuffle",
        "cuda",
        "warp_sum",
        (
            ("for (int step", "__shared__ float scratch[MAX_BLOCK];\n    for (int step"),
            (
                "value += __shfl_down_sync(ALL_LANES, value, step);",
                "{ scratch[threadIdx.x] = value; __syncwarp();"
                " value += scratch[threadIdx.x / WARP * WARP + (threadIdx.x + step) % WARP]; __syncwarp(); }",
            ),
        ),
    ),
    # The axes of the threads swapped back.
    Mutation("matmul", "coalesced", "numba", "coalesced", (("column, row =", "row, column ="),)),
    Mutation(
        "matmul",
        "coalesced",
        "cuda",
        "coalesced",
        (
            ("column = blockIdx.x * blockDim.x + threadIdx.x", "column = blockIdx.y * blockDim.y + threadIdx.y"),
            ("row = blockIdx.y * blockDim.y + threadIdx.y", "row = blockIdx.x * blockDim.x + threadIdx.x"),
        ),
    ),
    # The tile is filled, but not used.
    Mutation(
        "matmul",
        "tiled",
        "numba",
        "tiled",
        (("a_tile[y, k] * b_tile[k, x]", "a[row, start + k] * b[start + k, column]"),),
    ),
    Mutation(
        "matmul",
        "tiled",
        "cuda",
        "tiled",
        (("a_tile[y][i] * b_tile[i][x]", "a[row * k + start + i] * b[(start + i) * m + column]"),),
    ),
)


def _edited(text: str, mutation: Mutation) -> str:
    """The text with the edits made in the kernel's function only, or wherever they apply if no kernel is named."""
    if not mutation.kernel:
        for old, new in mutation.edits:
            text = text.replace(old, new)
        return text
    start = re.search(rf"\b(def|void|float) {mutation.kernel}\(", text)
    assert start is not None
    next_function = re.compile(r"^(@|extern|__device__|def _)", re.MULTILINE).search(text, start.end())
    stop = next_function.start() if next_function else len(text)
    body = text[start.start() : stop]
    for old, new in mutation.edits:
        assert old in body, f"{mutation}: {old!r} is not in the source any more"
        body = body.replace(old, new)
    return text[: start.start()] + body + text[stop:]


def _mutated(mutation: Mutation, folder: Path) -> Ladder:
    """The ladder, from edited copies of its two files."""
    original = gpulab.kernels.ladder(mutation.ladder)
    sources = {"numba": original.cuda_file.with_suffix(".py"), "cuda": original.cuda_file}
    for language, path in sources.items():
        text = path.read_text(encoding="utf-8")
        changed = _edited(text, mutation) if language == mutation.language or not mutation.kernel else text
        assert language != mutation.language or changed != text
        (folder / path.name).write_text(changed, encoding="utf-8")
    name = f"mutated_{mutation}".replace("-", "_")
    spec = importlib.util.spec_from_file_location(name, folder / sources["numba"].name)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module.LADDER


@functools.cache
def _base(ladder_name: str, rung_name: str, language: str, metric_of: str) -> float:
    ladder = gpulab.kernels.ladder(ladder_name)
    return _value(ladder, rung_name, language, metric_of)


def _value(ladder: Ladder, rung_name: str, language: str, metric_of: str) -> float:
    claim = ladder.rung(metric_of).claim
    assert claim is not None
    case = ladder.cases[0]
    problem = ladder.at(case.kind, **case.parameters)
    attempt = problem.attempt(rung_name, language)
    profiles = [profile(bound, *arguments, gpu=GPU) for bound, arguments in attempt.launches]
    verdict = problem.judge(attempt.arrays)
    assert verdict.correct, verdict.message
    return sum(claim.value(one.metrics, one.time.terms) for one in profiles)


@pytest.mark.parametrize("mutation", MUTATIONS, ids=str)
def test_without_its_idea_a_rung_breaks_its_claim(mutation: Mutation, tmp_path: Path) -> None:
    gpulab.use(GPU)
    ladder = _mutated(mutation, tmp_path)
    claim = ladder.rung(mutation.rung).claim
    assert claim is not None
    value = _value(ladder, mutation.rung, mutation.language, mutation.rung)
    base = _base(mutation.ladder, claim.against, mutation.language, mutation.rung)
    assert not claim.holds(value, base), f"{claim.sentence()} although the idea is undone: {value} against {base}"


def test_every_claim_has_its_mutation_in_every_language() -> None:
    claims = {
        f"{ladder.name}-{rung.name}-{language}"
        for ladder in gpulab.kernels()
        for rung in ladder.rungs
        if rung.claim
        for language in rung.languages
    }
    assert claims == {str(mutation) for mutation in MUTATIONS}
