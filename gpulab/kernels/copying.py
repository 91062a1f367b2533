"""copying: which thread touches which element. The same bytes, five ways to walk them.

Every rung copies all `n` floats of `x` to `y`; only the assignment of elements to threads differs. What the 32 lanes of
a warp touch at the same moment decides how many 32-byte sectors move. (The ladder is called ``copy``; a file of that
name would hide Python's own module `copy` from programs that run in this folder.)
"""

from __future__ import annotations

from typing import Any

import numpy as np

from gpulab import cuda
from gpulab.kernels.claim import Claim
from gpulab.kernels.parameters import Parameter, Values
from gpulab.kernels.records import Case, Data, Formula, Ladder, Rung, Step, blocks_for

FIELDS = 4  # floats of a particle: x, y, z and mass


@cuda.jit
def strided(x, y, stride):
    """Neighboring threads are `stride` elements apart; a row of blocks copies one column."""
    row, column = cuda.grid(2)
    i = row * stride + column
    if i < x.size:
        y[i] = x[i]


@cuda.jit
def aos(x, y):
    """Thread t copies particle t, FIELDS neighboring floats."""
    particle = cuda.grid(1)
    for field in range(FIELDS):
        i = particle * FIELDS + field
        if i < x.size:
            y[i] = x[i]


@cuda.jit
def soa(x, y):
    """Thread t copies particle t, whose fields lie in FIELDS arrays."""
    particle = cuda.grid(1)
    particles = (x.size + FIELDS - 1) // FIELDS
    if particle < particles:
        for field in range(FIELDS):
            i = field * particles + particle
            if i < x.size:
                y[i] = x[i]


@cuda.jit
def offset(x, y, shift):
    """Neighbors copy neighbors, from `shift` elements on; the first elements come last."""
    i = cuda.grid(1)
    if i < x.size:
        j = i + shift
        if j >= x.size:
            j -= x.size
        y[j] = x[j]


@cuda.jit
def coalesced(x, y):
    """Thread i copies element i."""
    i = cuda.grid(1)
    if i < x.size:
        y[i] = x[i]


def _one_each(parameters: Values) -> Step:
    return Step(blocks_for(parameters["n"], parameters["block"]), parameters["block"])


def _one_particle_each(parameters: Values) -> Step:
    particles = blocks_for(parameters["n"], FIELDS)
    return Step(blocks_for(particles, parameters["block"]), parameters["block"])


def _one_column_a_grid_row(parameters: Values) -> Step:
    rows = blocks_for(parameters["n"], parameters["stride"])
    return Step((blocks_for(rows, parameters["block"]), parameters["stride"]), (parameters["block"], 1))


def _make_data(parameters: Values, kind: str, rng: np.random.Generator) -> dict[str, Any]:
    x = rng.random(parameters["n"], np.float32)
    if kind == "special":
        x[::3] = rng.choice(np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, 3.4e38], np.float32), len(x[::3]))
    return {"x": x, "y": np.full_like(x, -1.0)}


def _reference(data: Data, parameters: Values) -> dict[str, Any]:
    return {"y": data["x"]}


def _exact(data: Data, parameters: Values) -> dict[str, Any]:
    return {}


LOAD_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
ALL_SECTORS = f"{LOAD_SECTORS} + l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"

LADDER = Ladder(
    name="copy",
    technique="coalescing: neighboring threads touch neighboring addresses",
    problem="Copy n float32 from x to y.",
    module=__name__,
    parameters=(
        Parameter(name="n", default=1 << 22, meaning="elements", range=(1, 1 << 24), scale="log2"),
        Parameter(
            name="block",
            default=256,
            meaning="threads per block",
            values=(32, 64, 128, 256, 512, 1024),
            why="Whole warps; a block has at most 1,024 threads.",
        ),
        Parameter(
            name="stride",
            default=32,
            meaning="elements between the elements of neighboring threads, in `strided`",
            range=(1, 64),
        ),
        Parameter(
            name="offset",
            default=1,
            meaning="elements by which the first thread is off the start, in `offset`",
            range=(0, 64),
            constraint=lambda parameters: parameters["offset"] <= parameters["n"],
            why="At most n, since what runs over the end continues at the start.",
        ),
    ),
    rungs=(
        Rung(
            name="strided",
            paragraph=(
                "Neighboring threads are `stride` elements apart, as when the threads of a warp walk down a column of "
                "a row-major matrix. A request moves whole 32-byte sectors: from a stride of 8 floats on, each lane "
                "needs a sector of its own, 32 for 128 useful bytes. The other 28 bytes of a sector are useful later, "
                "to other warps; if the L2 cache still has them then, DRAM is spared, but L1 and L2 have moved them "
                "all."
            ),
            launch=_one_column_a_grid_row,
            arguments={"numba": ("x", "y", "stride"), "cuda": ("x", "y", "n", "stride")},
        ),
        Rung(
            name="aos",
            paragraph=(
                f"An array of structures: thread t copies particle t, {FIELDS} neighboring floats, one after another. "
                f"It looks tidy, but in one request the lanes are {FIELDS} floats apart: 16 sectors where 4 would do. "
                "The loads of the next fields mostly hit in L1; the stores have no such luck, each goes to L2. One "
                "16-byte vector access per particle would help too."
            ),
            launch=_one_particle_each,
            claim=Claim(ALL_SECTORS, "lower", 1.9, "strided"),
        ),
        Rung(
            name="soa",
            paragraph=(
                "A structure of arrays: all x, then all y, and so on. Thread t copies the same fields of particle t, "
                "now from one array each, so that the 32 lanes of a request are neighbors: 4 sectors. It does not "
                "help where a thread picks particles at random: there the structure brings all fields in one or two "
                "sectors."
            ),
            launch=_one_particle_each,
            claim=Claim(ALL_SECTORS, "lower", 3.9, "aos"),
        ),
        Rung(
            name="offset",
            paragraph=(
                "Neighbors again, but the first thread starts `offset` elements off the 32-byte boundary: each "
                "request straddles one more sector, 5 in place of 4, 80 % used. The neighbor warp needs the same "
                "sector, so L1 and L2 hide most of it: on hardware this costs a few percent. An offset that is a "
                "multiple of 8 floats costs nothing."
            ),
            launch=_one_each,
            claim=Claim(ALL_SECTORS, "lower", 6.0, "strided"),
            arguments={"numba": ("x", "y", "offset"), "cuda": ("x", "y", "n", "offset")},
        ),
        Rung(
            name="coalesced",
            paragraph=(
                "Thread i copies element i, from an aligned start: 32 lanes, 128 bytes, 4 sectors, nothing wasted. "
                "Now only the bandwidth of DRAM counts. What is left to gain is small: 16 bytes a thread saves "
                "instructions."
            ),
            launch=_one_each,
            claim=Claim(ALL_SECTORS, "lower", 1.2, "offset"),
        ),
    ),
    arguments={"numba": ("x", "y"), "cuda": ("x", "y", "n")},
    make_data=_make_data,
    outputs=("y",),
    reference=_reference,
    tolerance=_exact,
    useful_flop=Formula("0", lambda parameters: 0),
    useful_bytes=Formula("8 n", lambda parameters: 8 * parameters["n"]),
    cases=(
        Case("even", {"n": 1 << 14}),
        Case("one element", {"n": 1, "block": 32}),
        Case("less than a warp", {"n": 31, "stride": 5, "offset": 31}),
        Case("ragged", {"n": 10_007, "block": 64, "stride": 7, "offset": 13}),
        Case("special values", {"n": 1_501, "block": 128, "stride": 33, "offset": 64}, "special"),
    ),
    kinds=("random", "special"),
)
