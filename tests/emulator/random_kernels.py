"""Random kernels that any engine must run alike: arithmetic, nested divergence, loops, barriers, shuffles, memory.

`random_kernel(choose)` makes one from a `random.Random`. The kernels are free of what CUDA leaves undefined, by the way
they are made: barriers and full-mask shuffles stand only where control flow is uniform, indices are masked into their
arrays, loops are bounded, and what different threads write in one phase they read only behind a barrier.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field

import numpy as np
from ptx_harness import Run, kernel, run

INTEGERS = [f"%r{number}" for number in range(1, 7)]
FLOATS = [f"%f{number}" for number in range(1, 5)]
LONGS = [f"%rd{number}" for number in range(10, 13)]
ELEMENTS = 64
CELLS = 4
MAX_THREADS = 96

_INTEGER_OPERATIONS = (
    "add.s32 {d}, {a}, {b};", "sub.s32 {d}, {a}, {b};", "mul.lo.s32 {d}, {a}, {b};", "mad.lo.s32 {d}, {a}, {b}, {c};",
    "xor.b32 {d}, {a}, {b};", "and.b32 {d}, {a}, {b};", "or.b32 {d}, {a}, {b};", "not.b32 {d}, {a};", "min.s32 {d}, {a}, {b};",
    "max.u32 {d}, {a}, {b};", "shl.b32 {d}, {a}, {k};", "shr.s32 {d}, {a}, {k};", "shr.u32 {d}, {a}, {b};", "div.u32 {d}, {a}, {b};",
    "rem.s32 {d}, {a}, {b};", "popc.b32 {d}, {a};", "bfe.s32 {d}, {a}, {k}, 9;", "prmt.b32 {d}, {a}, {b}, {c};", "mul.hi.u32 {d}, {a}, {b};",
    "shf.l.wrap.b32 {d}, {a}, {b}, {c};", "abs.s32 {d}, {a};", "add.s32 {d}, {a}, {k};", "mov.b32 {d}, {f};", "cvt.rzi.s32.f32 {d}, {f};",
    "cvt.u32.u64 {d}, {l};", "lop3.b32 {d}, {a}, {b}, {c}, 0x6A;", "mov.u32 {d}, {s};", "sad.u32 {d}, {a}, {b}, {c};",
    "mul.lo.s32 {d}, {a}, {i};", "mad.lo.s32 {d}, {a}, {i}, {b};", "add.s32 {d}, {a}, {i};", "sub.s32 {d}, {i}, {a};", "and.b32 {d}, {a}, {i};",
    "mad.lo.s32 {d}, {a}, {b}, {i};", "shr.s32 {d}, {a}, 31;", "neg.s32 {d}, {a};", "min.s32 {d}, {a}, {i};", "div.u32 {d}, {a}, {i};",
    "mov.u32 {d}, {s}; mad.lo.s32 {d}, {d}, {i}, {a};", "mov.u32 {d}, %tid.x; mul.lo.s32 {d}, {d}, {i};",
)  # fmt: skip
_FLOAT_OPERATIONS = (
    "add.f32 {d}, {f}, {g};", "sub.f32 {d}, {f}, {g};", "mul.f32 {d}, {f}, {g};", "fma.rn.f32 {d}, {f}, {g}, {h};",
    "min.f32 {d}, {f}, {g};", "max.ftz.f32 {d}, {f}, {g};", "cvt.rn.f32.s32 {d}, {a};", "neg.f32 {d}, {f};", "abs.f32 {d}, {f};",
    "add.rz.f32 {d}, {f}, {g};", "rcp.approx.f32 {d}, {f};", "ex2.approx.ftz.f32 {d}, {f};", "sqrt.rn.f32 {d}, {f};",
    "mul.ftz.f32 {d}, {f}, {g};", "div.rn.f32 {d}, {f}, {g};", "cvt.rn.f32.u64 {d}, {l};", "add.sat.f32 {d}, {f}, {g};",
)  # fmt: skip
_LONG_OPERATIONS = (
    "add.s64 {d}, {l}, {m};", "mul.wide.u32 {d}, {a}, {b};", "mad.wide.s32 {d}, {a}, {b}, {l};", "cvt.s64.s32 {d}, {a};", "xor.b64 {d}, {l}, {m};",
    "shr.s64 {d}, {l}, {k};", "mul.lo.s64 {d}, {l}, {m};", "mov.b64 {d}, {{{a}, {b}}};", "shl.b64 {d}, {l}, {a};", "min.u64 {d}, {l}, {m};",
    "mul.wide.u32 {d}, {a}, {i};", "mul.wide.s32 {d}, {a}, {i};", "mad.wide.u32 {d}, {a}, {i}, {l};", "cvt.u64.u32 {d}, {a};",
    "add.s64 {d}, {l}, {i};", "mul.lo.s64 {d}, {l}, {i};", "shr.s64 {d}, {l}, 63; and.b64 {d}, {d}, {m}; add.s64 {d}, {d}, {l};", "sub.s64 {d}, {i}, {l};",
    "cvt.s64.s32 {d}, {a}; shr.s64 {d}, {d}, 63; and.b64 {d}, {d}, 64;", "neg.s64 {d}, {l};", "mov.u64 {d}, {i};",
)  # fmt: skip
_SPECIALS = ("%tid.x", "%tid.y", "%ctaid.x", "%ntid.x", "%laneid", "%nctaid.x", "%warpid", "%lanemask_lt")
_IMMEDIATES = (0, 1, -1, 2, -3, 4, 5, 8, 32, -128, 1000003, 0x7FFFFFFF, -0x80000000, 0xFFFFFFFB, -858993459, 0x40000000)
_COMPARISONS = ("lt.s32", "ge.u32", "eq.s32", "ne.u32", "gt.s32", "le.s32")


@dataclass
class Writer:
    """Writes one kernel.

    Attributes
    ----------
    choose : random.Random
    lines : list of str
    uniform : bool
        Whether all live threads of the block pass here together.
    depth : int
        Nesting of ifs and loops.
    loops : list of (str, str)
        Labels for `continue` and `break` of the loops around.
    """

    choose: random.Random
    lines: list[str] = field(default_factory=list)
    uniform: bool = True
    depth: int = 0
    loops: list[tuple[str, str]] = field(default_factory=list)
    labels: int = 0
    counters: int = 0

    def emit(self, template: str, **names: object) -> None:
        """Write an instruction, its free operands chosen at random."""
        pick = self.choose.choice
        operands = {
            "a": pick(INTEGERS), "b": pick(INTEGERS), "c": pick(INTEGERS), "f": pick(FLOATS), "g": pick(FLOATS), "h": pick(FLOATS),
            "l": pick(LONGS), "m": pick(LONGS), "k": self.choose.randrange(40), "s": pick(_SPECIALS),
            "i": pick(_IMMEDIATES),
        }  # fmt: skip
        self.lines.append("    " + template.format(**{**operands, **names}))

    def label(self, name: str) -> str:
        """A new label."""
        self.labels += 1
        return f"{name}{self.labels}"

    def statement(self) -> None:
        """Write one statement of any kind that is allowed here."""
        kinds = [self.compute] * 8 + [self.load, self.local, self.atomic, self.predicated, self.warp_operation]
        if self.depth < 3:
            kinds += [self.branch, self.branch, self.loop]
        if self.loops:
            kinds += [self.leave_loop]
        if self.uniform:
            kinds += [self.exchange, self.shuffle, self.reducing_barrier]
        if self.depth == 0:
            kinds += [self.early_return]
        self.choose.choice(kinds)()

    def statements(self, count: int) -> None:
        """Write several statements."""
        for _ in range(count):
            self.statement()

    # ---- straight lines

    def compute(self) -> None:
        operations, registers = self.choose.choice(
            [
                (_INTEGER_OPERATIONS, INTEGERS),
                (_INTEGER_OPERATIONS, INTEGERS),
                (_FLOAT_OPERATIONS, FLOATS),
                (_LONG_OPERATIONS, LONGS),
            ]
        )
        self.emit(self.choose.choice(operations), d=self.choose.choice(registers))

    def predicated(self) -> None:
        self.emit("setp.{cmp} %p1, {a}, {b};", cmp=self.choose.choice(_COMPARISONS))
        self.emit(
            "@{sign}%p1 " + self.choose.choice(_INTEGER_OPERATIONS),
            d=self.choose.choice(INTEGERS),
            sign=self.choose.choice(["", "!"]),
        )
        self.emit("selp.b32 {d}, {a}, {b}, %p1;", d=self.choose.choice(INTEGERS))

    def load(self) -> None:
        self.emit("and.b32 %r20, {a}, {mask};", mask=ELEMENTS - 1)
        self.emit("mad.wide.u32 %rd20, %r20, 4, %rd1;")
        self.emit("ld.global.u32 {d}, [%rd20];", d=self.choose.choice(INTEGERS))

    def local(self) -> None:
        self.emit("and.b32 %r20, {a}, 7;")
        self.emit("mov.u64 %rd20, mine; mad.wide.u32 %rd20, %r20, 4, %rd20;")
        self.emit("st.local.u32 [%rd20], {b};")
        self.emit(
            "ld.local.u32 {d}, [mine+{place}];", d=self.choose.choice(INTEGERS), place=4 * self.choose.randrange(8)
        )

    def atomic(self) -> None:
        # Without their old values, operations that commute leave the same sum in any order.
        operation = self.choose.choice(["add.u32", "min.s32", "max.u32", "xor.b32", "or.b32"])
        cell = ["add.u32", "min.s32", "max.u32", "xor.b32", "or.b32"].index(operation)
        self.emit("red.global.{operation} [%rd3+{place}], {a};", operation=operation, place=4 * cell)

    def warp_operation(self) -> None:
        destination = self.choose.choice(INTEGERS)
        self.emit("activemask.b32 %r20;")
        self.emit("setp.{cmp} %p1, {a}, {b};", cmp=self.choose.choice(_COMPARISONS))
        self.emit(
            self.choose.choice([
                "vote.sync.ballot.b32 {d}, %p1, %r20;", "match.any.sync.b32 {d}, {a}, %r20;", "redux.sync.add.s32 {d}, {a}, %r20;",
                "redux.sync.max.u32 {d}, {a}, %r20;", "shfl.sync.idx.b32 {d}|%p2, {a}, {b}, 31, %r20;",
                "shfl.sync.bfly.b32 {d}, {a}, 5, 31, %r20;", "vote.sync.any.pred %p2, %p1, %r20; selp.b32 {d}, {a}, {b}, %p2;",
                "mov.b32 {d}, %r20;",
            ]),
            d=destination,
        )  # fmt: skip

    # ---- uniform places

    def exchange(self) -> None:
        """Write the own place of shared memory, meet, read another's, meet."""
        self.emit("mov.u32 %r20, tile; mad.lo.u32 %r21, %r19, 4, %r20; st.shared.u32 [%r21], {a}; bar.sync 0;")
        self.emit("rem.u32 %r22, {a}, {count}; mad.lo.u32 %r22, %r22, 4, %r20;", count=MAX_THREADS)
        self.emit("ld.shared.u32 {d}, [%r22]; bar.sync 0;", d=self.choose.choice(INTEGERS))

    def shuffle(self) -> None:
        mode, clamp = self.choose.choice(
            [("down", 31), ("up", 0), ("bfly", 31), ("idx", 31), ("down", 0x181F), ("up", 0x1800)]
        )
        # Lanes that returned may be named; so may lanes that were never launched.
        self.emit(
            "shfl.sync.{mode}.b32 {d}|%p2, {a}, {k}, {clamp}, -1;", mode=mode, clamp=clamp,
            d=self.choose.choice(INTEGERS), k=self.choose.randrange(33),
        )  # fmt: skip
        self.emit("selp.b32 {d}, {a}, {b}, %p2;", d=self.choose.choice(INTEGERS))

    def reducing_barrier(self) -> None:
        self.emit("setp.{cmp} %p1, {a}, {b};", cmp=self.choose.choice(_COMPARISONS))
        self.emit(
            self.choose.choice(
                ["bar.red.popc.u32 {d}, 0, %p1;", "bar.red.or.pred %p2, 0, !%p1; selp.b32 {d}, {a}, {b}, %p2;"]
            ),
            d=self.choose.choice(INTEGERS),
        )

    def early_return(self) -> None:
        self.emit("setp.gt.u32 %p1, %r19, {bound};", bound=self.choose.choice([20, 45, 70]))
        self.emit("@%p1 bra DONE;")

    # ---- control flow

    def branch(self) -> None:
        """An if, perhaps with an else; by the block's number it is uniform, else lanes part."""
        other, join = self.label("ELSE"), self.label("JOIN")
        uniform = self.choose.random() < 0.2
        if uniform:
            self.emit("mov.u32 %r20, %ctaid.x; setp.eq.u32 %p1, %r20, {k};", k=self.choose.randrange(3))
        else:
            self.emit("setp.{cmp} %p1, {a}, {b};", cmp=self.choose.choice(_COMPARISONS))
        with_else = self.choose.random() < 0.5
        self.emit("@{sign}%p1 bra {target};", sign=self.choose.choice(["", "!"]), target=other if with_else else join)
        self._nested(uniform, self.choose.randrange(1, 4))
        if with_else:
            self.emit("bra.uni {join};", join=join)
            self.lines.append(f"{other}:")
            self._nested(uniform, self.choose.randrange(1, 4))
        self.lines.append(f"{join}:")

    def loop(self) -> None:
        """A loop of at most six rounds; each lane may have its own number of them."""
        head, again, out = self.label("HEAD"), self.label("AGAIN"), self.label("OUT")
        self.counters += 1
        counter, bound = f"%count{self.counters}", f"%bound{self.counters}"
        uniform = self.choose.random() < 0.3
        if uniform:
            self.emit("mov.u32 {bound}, {rounds};", bound=bound, rounds=self.choose.randrange(1, 4))
        else:
            self.emit("and.b32 {bound}, {a}, 3;", bound=bound)
        self.emit("mov.u32 {counter}, 0;", counter=counter)
        self.lines.append(f"{head}:")
        self.loops.append((again, out) if not uniform else ("", ""))
        self._nested(uniform, self.choose.randrange(1, 4))
        self.loops.pop()
        self.lines.append(f"{again}:")
        self.emit("add.u32 {counter}, {counter}, 1; setp.lt.u32 %p3, {counter}, {bound}; @%p3 bra {head};",
                  counter=counter, bound=bound, head=head)  # fmt: skip
        self.lines.append(f"{out}:")

    def leave_loop(self) -> None:
        """`continue` or `break` of any loop around that is not uniform."""
        inner = []
        for labels in reversed(self.loops):
            if not labels[0]:
                break
            inner.append(labels)
        if inner:
            self.emit("setp.{cmp} %p1, {a}, {b};", cmp=self.choose.choice(_COMPARISONS))
            self.emit("@%p1 bra {target};", target=self.choose.choice(self.choose.choice(inner)))

    def _nested(self, uniform: bool, count: int) -> None:
        before, self.uniform = self.uniform, self.uniform and uniform
        self.depth += 1
        self.statements(count)
        self.depth -= 1
        self.uniform = before


def random_kernel(choose: random.Random, statements: int = 10) -> str:
    """PTX of a random kernel with the parameters input, output, cells."""
    writer = Writer(choose)
    writer.statements(statements)
    counters = "".join(f".reg .b32 %count{n}, %bound{n};" for n in range(1, writer.counters + 1))
    start = [
        "ld.param.u64 %rd1, [input]; ld.param.u64 %rd2, [output]; ld.param.u64 %rd3, [cells];",
        "mov.u32 %r20, %tid.y; mov.u32 %r21, %ntid.x; mov.u32 %r22, %tid.x; mad.lo.u32 %r19, %r20, %r21, %r22;",
        "mov.u32 %r20, %ntid.y; mul.lo.u32 %r20, %r20, %r21; mov.u32 %r21, %ctaid.x; mad.lo.u32 %r18, %r20, %r21, %r19;",
        *(f"mad.lo.u32 {name}, %r18, {7 * n + 1}, {n};" for n, name in enumerate(INTEGERS)),
        *(
            f"cvt.rn.f32.s32 {name}, {INTEGERS[n]}; mul.f32 {name}, {name}, 0f3F19999A;"
            for n, name in enumerate(FLOATS)
        ),
        *(f"mul.wide.s32 {name}, {INTEGERS[n]}, -12345;" for n, name in enumerate(LONGS)),
    ]
    size = 4 * (len(INTEGERS) + len(FLOATS)) + 8 * len(LONGS)
    end = [f"mad.wide.u32 %rd2, %r18, {size}, %rd2;"]
    end += [f"st.global.b32 [%rd2+{4 * n}], {name};" for n, name in enumerate(INTEGERS + FLOATS)]
    end += [f"st.global.b64 [%rd2+{size - 8 * len(LONGS) + 8 * n}], {name};" for n, name in enumerate(LONGS)]
    body = "\n".join(["    " + line for line in start] + writer.lines + ["    " + line for line in end] + ["DONE:"])
    variables = f".shared .align 4 .b8 tile[{4 * MAX_THREADS}]; .local .align 4 .b8 mine[32];"
    return kernel("u64 input, u64 output, u64 cells", body, registers=counters, variables=variables)


@dataclass(frozen=True)
class Outcome:
    """What a run left behind."""

    ran: Run
    integers: np.ndarray
    floats: np.ndarray
    longs: np.ndarray
    cells: np.ndarray


def run_random_kernel(engine: str, text: str, grid: int, block: tuple[int, int]) -> Outcome:
    """Run a random kernel; outputs have one row for each thread."""
    threads = grid * block[0] * block[1]
    source = (np.arange(ELEMENTS, dtype=np.uint32) * 2654435761) ^ 0x5A
    width = len(INTEGERS) + len(FLOATS) + 2 * len(LONGS)
    output, cells = np.zeros((threads, width), np.uint32), np.zeros(8, np.uint32)
    ran = run(engine, text, source, output, cells, grid=grid, block=block)
    first, second = len(INTEGERS), len(INTEGERS) + len(FLOATS)
    return Outcome(ran, output[:, :first], output[:, first:second].view(np.float32), output[:, second:], cells)


def differences(mine: Outcome, theirs: Outcome) -> list[str]:
    """In what two runs of a kernel differ; NaNs are alike whatever their payload."""
    found = [
        name
        for name in ("integers", "longs", "cells")
        if not np.array_equal(getattr(mine, name), getattr(theirs, name))
    ]
    if not np.array_equal(mine.floats, theirs.floats, equal_nan=True) or not np.array_equal(
        np.signbit(mine.floats) & ~np.isnan(mine.floats), np.signbit(theirs.floats) & ~np.isnan(theirs.floats)
    ):
        found.append("floats")
    return found + [
        f"counter {name}: {pair}" for name, pair in mine.ran.counters.differences(theirs.ran.counters).items()
    ]
