"""The instruction set as a table, in the manual's notation.

A line ``== family | pipe kind`` opens a family: the anchor of its section in NVIDIA's "Parallel Thread Execution ISA"
(docs.nvidia.com/cuda/parallel-thread-execution), the pipe that executes it and its kind for counters. Each line below
is one form, ``syntax | operands | pipe kind``, where the last column says what differs from the family.

Syntax: ``{.x}`` is optional, ``<name: alternatives>`` chooses one and calls it `name`; a word of `SETS` among the
alternatives stands for its set, and ``<name>`` alone for the set of that name.

Operands: ``d`` a destination, ``p`` a predicate destination, ``d|p`` one with an optional predicate beside it; other
letters are sources. ``[a]`` is an address, ``(d)`` a vector if the syntax has ``.v2``, ``{d}`` a scalar or a pack of
narrower registers, ``<d>`` a fragment of a matrix (`gpulab.ptx.matrix`), ``?`` marks what may be left out. ``:w`` has twice
the width of the operation's type, ``:s`` the source type, ``:u32`` that type, ``:imm`` is a constant, ``:size`` a number of
bytes or a predicate for none. ``h`` is there if the syntax has ``.L2::cache_hint``.

A row gives modifiers in the manual's order; ptxas takes them in any, and so does `opcodes.form`.
"""

from __future__ import annotations

SETS = {
    "int": "u16 u32 u64 s16 s32 s64",
    "integer": "u8 u16 u32 u64 s8 s16 s32 s64",
    "bits": "b16 b32 b64",
    "value": "b16 b32 b64 u16 u32 u64 s16 s32 s64 f32 f64",
    "mem": "b8 b16 b32 b64 b128 u8 u16 u32 u64 s8 s16 s32 s64 f32 f64",
    "rnd": "rn rz rm rp",
    "rint": "rni rzi rmi rpi",
    "scmp": "eq ne lt le gt ge",
    "ucmp": "eq ne lt le gt ge lo ls hi hs",
    "fcmp": "eq ne lt le gt ge equ neu ltu leu gtu geu num nan",
    "bool": "and or xor",
    "vec": "v2 v4",
    "half": "f16 f16x2",
    "bhalf": "bf16 bf16x2",
    "scope": "cta cluster gpu sys",
    "asem": "relaxed acquire release acq_rel",
    "rsem": "relaxed release",
    "window": "global shared shared::cta shared::cluster local const param param::entry",
    "source": "global shared shared::cta local const param param::entry param::func",
    "sink": "global shared shared::cta local param param::func",
    "common": "global shared shared::cta",
    "evict": "L1::evict_normal L1::evict_unchanged L1::evict_first L1::evict_last L1::no_allocate",
    "prefetch": "L2::64B L2::128B L2::256B",
    "prio": "L2::evict_last L2::evict_normal L2::evict_first L2::evict_unchanged",
    "rest": "L2::evict_first L2::evict_unchanged",
    "block": "shared shared::cta",
    "clustered": "shared shared::cta shared::cluster",
    "wmma16": "m16n16k16 m32n8k16 m8n32k16",
}

TABLE = """
== integer-arithmetic-instructions | int integer
add.<type: int>                                             | d, a, b
add.sat.<type: s32>                                         | d, a, b
add.<type: u16x2 s16x2>                                     | d, a, b
sub.<type: int>                                             | d, a, b
sub.sat.<type: s32>                                         | d, a, b
mul.<mode: lo hi>.<type: int>                               | d, a, b
mul.<mode: wide>.<type: u16 u32 s16 s32>                    | d:w, a, b
mad.<mode: lo hi>.<type: int>                               | d, a, b, c
mad.<mode: wide>.<type: u16 u32 s16 s32>                    | d:w, a, b, c:w
mad.<mode: hi>.sat.<type: s32>                              | d, a, b, c
mul24.<mode: lo hi>.<type: u32 s32>                         | d, a, b
mad24.<mode: lo hi>.<type: u32 s32>                         | d, a, b, c
mad24.<mode: hi>.sat.<type: s32>                            | d, a, b, c
sad.<type: int>                                             | d, a, b, c
div.<type: int>                                             | d, a, b
rem.<type: int>                                             | d, a, b
abs.<type: s16 s32 s64>                                     | d, a
neg.<type: s16 s32 s64>                                     | d, a
min.<type: int u16x2>                                       | d, a, b
min{.relu}.<type: s32 s16x2>                                | d, a, b
max.<type: int u16x2>                                       | d, a, b
max{.relu}.<type: s32 s16x2>                                | d, a, b
popc.<type: b32 b64>                                        | d:u32, a
clz.<type: b32 b64>                                         | d:u32, a
bfind{.shiftamt}.<type: u32 u64 s32 s64>                    | d:u32, a
brev.<type: b32 b64>                                        | d, a
fns.<type: b32>                                             | d, a, b, c:s32
bfe.<type: u32 u64 s32 s64>                                 | d, a, b:u32, c:u32
bfi.<type: b32 b64>                                         | d, a, b, c:u32, e:u32
szext.<mode: clamp wrap>.<type: u32 s32>                    | d, a, b:u32
bmsk.<mode: clamp wrap>.<type: b32>                         | d, a, b
dp4a.<type: u32 s32>.<stype: u32 s32>                       | d:b32, a:b32, b:b32, c:b32
dp2a.<mode: lo hi>.<type: u32 s32>.<stype: u32 s32>         | d:b32, a:b32, b:b32, c:b32

== extended-precision-arithmetic-instructions | int integer
add.cc.<type: u32 s32 u64 s64>                              | d, a, b
addc{.cc}.<type: u32 s32 u64 s64>                           | d, a, b
sub.cc.<type: u32 s32 u64 s64>                              | d, a, b
subc{.cc}.<type: u32 s32 u64 s64>                           | d, a, b
mad.<mode: lo hi>.cc.<type: u32 s32 u64 s64>                | d, a, b, c
madc.<mode: lo hi>{.cc}.<type: u32 s32 u64 s64>             | d, a, b, c

== floating-point-instructions | fp32 other
testp.<op: finite infinite number notanumber normal subnormal>.<type: f32 f64> | p, a
copysign.<type: f32 f64>                                    | d, a, b
add{.<rnd>}{.ftz}{.sat}.<type: f32>                         | d, a, b       | fp32 fadd
add{.<rnd>}.<type: f64>                                     | d, a, b       | fp64 dadd
add{.<rnd>}{.ftz}.<type: f32x2>                             | d, a, b       | fp32 fadd
add{.<rnd>}{.sat}.<type: f32>.<stype: f16 bf16>             | d, a:s, b     | fp32 fadd
sub{.<rnd>}{.ftz}{.sat}.<type: f32>                         | d, a, b       | fp32 fadd
sub{.<rnd>}.<type: f64>                                     | d, a, b       | fp64 dadd
sub{.<rnd>}{.ftz}.<type: f32x2>                             | d, a, b       | fp32 fadd
sub{.<rnd>}{.sat}.<type: f32>.<stype: f16 bf16>             | d, a:s, b     | fp32 fadd
mul{.<rnd>}{.ftz}{.sat}.<type: f32>                         | d, a, b       | fp32 fmul
mul{.<rnd>}{.ftz}.<type: f32x2>                             | d, a, b       | fp32 fmul
mul{.<rnd>}.<type: f64>                                     | d, a, b       | fp64 dmul
fma.<rnd>{.ftz}{.sat}.<type: f32>                           | d, a, b, c    | fp32 ffma
fma.<rnd>.<type: f64>                                       | d, a, b, c    | fp64 dfma
fma.<rnd>{.ftz}.<type: f32x2>                               | d, a, b, c    | fp32 ffma
fma.<rnd>{.sat}.<type: f32>.<stype: f16 bf16>               | d, a:s, b:s, c | fp32 ffma
mad.<rnd>{.ftz}{.sat}.<type: f32>                           | d, a, b, c    | fp32 ffma
mad.<rnd>.<type: f64>                                       | d, a, b, c    | fp64 dfma
div.<mode: approx full>{.ftz}.<type: f32>                   | d, a, b       | sfu special
div.<rnd>{.ftz}.<type: f32>                                 | d, a, b       | fp32 special
div.<rnd>.<type: f64>                                       | d, a, b       | fp64 special
abs{.ftz}.<type: f32>                                       | d, a
abs.<type: f64>                                             | d, a          | fp64 other
neg{.ftz}.<type: f32>                                       | d, a
neg.<type: f64>                                             | d, a          | fp64 other
min{.ftz}{.NaN}{.xorsign.abs}.<type: f32>                   | d, a, b
min{.ftz}{.NaN}{.abs}.<type: f32>                           | d, a, b, c
min.<type: f64>                                             | d, a, b       | fp64 other
max{.ftz}{.NaN}{.xorsign.abs}.<type: f32>                   | d, a, b
max{.ftz}{.NaN}{.abs}.<type: f32>                           | d, a, b, c
max.<type: f64>                                             | d, a, b       | fp64 other
rcp.<mode: approx>{.ftz}.<type: f32>                        | d, a          | sfu special
rcp.<rnd>{.ftz}.<type: f32>                                 | d, a          | fp32 special
rcp.<rnd>.<type: f64>                                       | d, a          | fp64 special
rcp.<mode: approx>.ftz.<type: f64>                          | d, a          | sfu special
sqrt.<mode: approx>{.ftz}.<type: f32>                       | d, a          | sfu special
sqrt.<rnd>{.ftz}.<type: f32>                                | d, a          | fp32 special
sqrt.<rnd>.<type: f64>                                      | d, a          | fp64 special
rsqrt.<mode: approx>{.ftz}.<type: f32 f64>                  | d, a          | sfu special
sin.<mode: approx>{.ftz}.<type: f32>                        | d, a          | sfu special
cos.<mode: approx>{.ftz}.<type: f32>                        | d, a          | sfu special
lg2.<mode: approx>{.ftz}.<type: f32>                        | d, a          | sfu special
ex2.<mode: approx>{.ftz}.<type: f32>                        | d, a          | sfu special
tanh.<mode: approx>.<type: f32>                             | d, a          | sfu special

== half-precision-floating-point-instructions | fp16 other
add{.<rnd: rn>}{.ftz}{.sat}.<type: half>                    | d, a, b       | fp16 hadd
add{.<rnd: rn>}.<type: bhalf>                               | d, a, b       | fp16 hadd
sub{.<rnd: rn>}{.ftz}{.sat}.<type: half>                    | d, a, b       | fp16 hadd
sub{.<rnd: rn>}.<type: bhalf>                               | d, a, b       | fp16 hadd
mul{.<rnd: rn>}{.ftz}{.sat}.<type: half>                    | d, a, b       | fp16 hmul
mul{.<rnd: rn>}.<type: bhalf>                               | d, a, b       | fp16 hmul
fma.<rnd: rn>{.ftz}{.sat}.<type: half>                      | d, a, b, c    | fp16 hfma
fma.<rnd: rn>{.ftz}.relu.<type: half>                       | d, a, b, c    | fp16 hfma
fma.<rnd: rn>{.relu}.<type: bhalf>                          | d, a, b, c    | fp16 hfma
neg{.ftz}.<type: half>                                      | d, a
neg.<type: bhalf>                                           | d, a
abs{.ftz}.<type: half>                                      | d, a
abs.<type: bhalf>                                           | d, a
min{.ftz}{.NaN}{.xorsign.abs}.<type: half>                  | d, a, b
min{.NaN}{.xorsign.abs}.<type: bhalf>                       | d, a, b
max{.ftz}{.NaN}{.xorsign.abs}.<type: half>                  | d, a, b
max{.NaN}{.xorsign.abs}.<type: bhalf>                       | d, a, b
ex2.<mode: approx>.<type: half>                             | d, a          | sfu special
ex2.<mode: approx>.ftz.<type: bhalf>                        | d, a          | sfu special
tanh.<mode: approx>.<type: half bhalf>                      | d, a          | sfu special

== comparison-and-selection-instructions | int integer
set.<cmp: eq ne>{.<bool>}.<type: u32 s32 f32>.<stype: bits>         | d, a:s, b:s, c:pred?
set.<cmp: scmp>{.<bool>}.<type: u32 s32 f32>.<stype: s16 s32 s64>   | d, a:s, b:s, c:pred?
set.<cmp: ucmp>{.<bool>}.<type: u32 s32 f32>.<stype: u16 u32 u64>   | d, a:s, b:s, c:pred?
set.<cmp: fcmp>{.<bool>}{.ftz}.<type: u32 s32 f32>.<stype: f32>     | d, a:s, b:s, c:pred? | fp32 other
set.<cmp: fcmp>{.<bool>}.<type: u32 s32 f32>.<stype: f64>           | d, a:s, b:s, c:pred? | fp64 other
setp.<cmp: eq ne>{.<bool>}.<type: bits>                     | p|q, a, b, c:pred?
setp.<cmp: scmp>{.<bool>}.<type: s16 s32 s64>               | p|q, a, b, c:pred?
setp.<cmp: ucmp>{.<bool>}.<type: u16 u32 u64>               | p|q, a, b, c:pred?
setp.<cmp: fcmp>{.<bool>}{.ftz}.<type: f32>                 | p|q, a, b, c:pred? | fp32 other
setp.<cmp: fcmp>{.<bool>}.<type: f64>                       | p|q, a, b, c:pred? | fp64 other
selp.<type: value>                                            | d, a, b, c:pred    | int move
slct.<type: value>.<stype: s32>                               | d, a, b, c:s       | int move
slct{.ftz}.<type: value>.<stype: f32>                         | d, a, b, c:s       | int move

== half-precision-comparison-instructions | fp16 other
set.<cmp: fcmp>{.<bool>}{.ftz}.<type: f16 u16 s16 u32 s32>.<stype: f16>  | d, a:s, b:s, c:pred?
set.<cmp: fcmp>{.<bool>}.<type: bf16 u16 s16 u32 s32>.<stype: bf16>      | d, a:s, b:s, c:pred?
set.<cmp: fcmp>{.<bool>}{.ftz}.<type: f16x2>.<stype: f16x2>              | d, a:s, b:s, c:pred?
set.<cmp: fcmp>{.<bool>}{.ftz}.<type: u32 s32>.<stype: f16x2>            | d, a:s, b:s, c:pred?
set.<cmp: fcmp>{.<bool>}.<type: u32 s32>.<stype: bf16x2>                 | d, a:s, b:s, c:pred?
set.<cmp: fcmp>{.<bool>}.<type: bf16x2>.<stype: bf16x2>                  | d, a:s, b:s, c:pred?
setp.<cmp: fcmp>{.<bool>}{.ftz}.<type: f16>                 | p, a, b, c:pred?
setp.<cmp: fcmp>{.<bool>}{.ftz}.<type: f16x2>               | p|q, a, b, c:pred?
setp.<cmp: fcmp>{.<bool>}.<type: bf16>                      | p, a, b, c:pred?
setp.<cmp: fcmp>{.<bool>}.<type: bf16x2>                    | p|q, a, b, c:pred?

== logic-and-shift-instructions | int integer
and.<type: pred bits>                                       | d, a, b
or.<type: pred bits>                                        | d, a, b
xor.<type: pred bits>                                       | d, a, b
not.<type: pred bits>                                       | d, a
cnot.<type: bits>                                           | d, a
lop3.<type: b32>                                            | d, a, b, c, e:imm
shf.<op: l r>.<mode: clamp wrap>.<type: b32>                | d, a, b, c:u32
shl.<type: bits>                                            | d, a, b:u32
shr.<type: bits int>                                        | d, a, b:u32

== data-movement-and-conversion-instructions | move move
mov.<type: pred value b128>                                 | {d}, {a}
shfl.sync.<mode: up down bfly idx>.<type: b32>              | d|p, a, b:u32, c:u32, e:u32 | lsu shuffle
prmt.<type: b32>{.<mode: f4e b4e rc8 ecl ecr rc16>}         | d, a, b, c    | int integer
ld{.<sem: weak>}{.<space: source>}{.<cache: ca cg cs lu cv>}{.L2::cache_hint}{.<prefetch>}{.<vec>}.<type: mem> | (d), [a], h:b64? | lsu load
ld{.<sem: weak>}{.<space: source>}.<evict>{.L2::cache_hint}{.<prefetch>}{.<vec>}.<type: mem> | (d), [a], h:b64? | lsu load
ld.<sem: volatile>{.<space: common>}{.<prefetch>}{.<vec>}.<type: mem>        | (d), [a]      | lsu load
ld.<sem: relaxed acquire>.<scope>{.<space: common>}{.<evict>}{.L2::cache_hint}{.<prefetch>}{.<vec>}.<type: mem> | (d), [a], h:b64? | lsu load
ld.mmio.<sem: relaxed>.<scope: sys>{.<space: global>}.<type: mem>    | (d), [a]      | lsu load
ld.<space: global>{.<cache: ca cg cs>}.nc{.L2::cache_hint}{.<prefetch>}{.<vec>}.<type: mem> | (d), [a], h:b64? | lsu load
ld.<space: global>.nc.<evict>{.L2::cache_hint}{.<prefetch>}{.<vec>}.<type: mem> | (d), [a], h:b64? | lsu load
ldu{.<space: global>}{.<vec>}.<type: mem>                   | (d), [a]      | lsu load
st{.<sem: weak>}{.<space: sink>}{.<cache: wb cg cs wt>}{.L2::cache_hint}{.<vec>}.<type: mem> | [a], (b), h:b64? | lsu store
st{.<sem: weak>}{.<space: sink>}.<evict>{.L2::cache_hint}{.<vec>}.<type: mem> | [a], (b), h:b64? | lsu store
st.<sem: volatile>{.<space: common>}{.<vec>}.<type: mem>                       | [a], (b)      | lsu store
st.<sem: relaxed release>.<scope>{.<space: common>}{.<evict>}{.L2::cache_hint}{.<vec>}.<type: mem> | [a], (b), h:b64? | lsu store
st.mmio.<sem: relaxed>.<scope: sys>{.<space: global>}.<type: mem>    | [a], (b)      | lsu store
cp.async.<cache: ca cg>.<sink: block>.<space: global>{.L2::cache_hint}{.<prefetch>} | [b], [a], c:imm, h:b64? | lsu load
cp.async.<cache: ca cg>.<sink: block>.<space: global>{.L2::cache_hint}{.<prefetch>} | [b], [a], c:imm, e:size, h:b64? | lsu load
cp.async.<mode: commit_group>                               |               | lsu other
cp.async.<mode: wait_group>                                 | a:imm         | lsu other
cp.async.<mode: wait_all>                                   |               | lsu other
cp.async.<mode: mbarrier>.arrive{.<op: noinc>}{.<space: block>}.<type: b64> | [a] | lsu atomic
prefetch{.<space: global local>}.<mode: L1 L2>              | [a]           | lsu other
prefetch{.<space: global>}.<mode: L2::evict_last L2::evict_normal> | [a]    | lsu other
prefetchu.<mode: L1>                                        | [a]           | lsu other
applypriority{.<space: global>}.<mode: L2::evict_normal>    | [a], b:imm    | lsu other
discard{.<space: global>}.<mode: L2>                        | [a], b:imm    | lsu other
createpolicy.<mode: fractional>.<prio>{.<rest>}.<type: b64> | d, a:f32?     | int other
createpolicy.<mode: range>{.<space: global>}.<prio>{.<rest>}.<type: b64> | d, [a], b:u32, c:u32 | int other
createpolicy.<mode: cvt>.L2.<type: b64>                     | d, a          | int other
isspacep.<space: window>                                    | p, a:u64      | int other
cvta.<space: window>.<type: u64>                            | d, a
cvta.<mode: to>.<space: window>.<type: u64>                 | d, a
cvt.<type: integer>.<stype: integer>                        | d, a:s        | convert conversion
cvt.sat.<type: u8>.<stype: u16 u32 u64 s8 s16 s32 s64>      | d, a:s        | convert conversion
cvt.sat.<type: u16>.<stype: u32 u64 s8 s16 s32 s64>         | d, a:s        | convert conversion
cvt.sat.<type: u32>.<stype: u64 s8 s16 s32 s64>             | d, a:s        | convert conversion
cvt.sat.<type: u64>.<stype: s8 s16 s32 s64>                 | d, a:s        | convert conversion
cvt.sat.<type: s8>.<stype: u8 u16 u32 u64 s16 s32 s64>      | d, a:s        | convert conversion
cvt.sat.<type: s16>.<stype: u16 u32 u64 s32 s64>            | d, a:s        | convert conversion
cvt.sat.<type: s32>.<stype: u32 u64 s64>                    | d, a:s        | convert conversion
cvt.sat.<type: s64>.<stype: u64>                            | d, a:s        | convert conversion
cvt.<rnd: rint>{.ftz}{.sat}.<type: integer>.<stype: f32>    | d, a:s        | convert conversion
cvt.<rnd: rint>{.sat}.<type: integer>.<stype: f64 f16>      | d, a:s        | convert conversion
cvt.<rnd: rint>.<type: integer>.<stype: bf16>               | d, a:s        | convert conversion
cvt.<rnd>{.ftz}{.sat}.<type: f32>.<stype: integer>          | d, a:s        | convert conversion
cvt.<rnd>{.sat}.<type: f16 f64>.<stype: integer>            | d, a:s        | convert conversion
cvt.<rnd>.<type: bf16>.<stype: integer f64>                 | d, a:s        | convert conversion
cvt{.<rnd>}.<type: bf16>.<stype: f16>                       | d, a:s        | convert conversion
cvt{.<rnd>}.<type: f16>.<stype: bf16>                       | d, a:s        | convert conversion
cvt{.ftz}{.sat}.<type: f64>.<stype: f32>                    | d, a:s        | convert conversion
cvt{.ftz}{.sat}.<type: f32>.<stype: f16>                    | d, a:s        | convert conversion
cvt{.sat}.<type: f64>.<stype: f16>                          | d, a:s        | convert conversion
cvt{.<rnd>}{.ftz}.<type: f32>.<stype: bf16>                 | d, a:s        | convert conversion
cvt{.<rnd>}.<type: f64>.<stype: bf16>                       | d, a:s        | convert conversion
cvt.<rnd>{.ftz}{.sat}.<type: f32>.<stype: f64>              | d, a:s        | convert conversion
cvt.<rnd>{.ftz}{.sat}.<type: f16>.<stype: f32>              | d, a:s        | convert conversion
cvt.<rnd>{.ftz}.<type: bf16>.<stype: f32>                   | d, a:s        | convert conversion
cvt.<rnd>{.sat}.<type: f16>.<stype: f64>                    | d, a:s        | convert conversion
cvt{.<rnd: rint>}{.ftz}{.sat}.<type: f32>.<stype: f32>      | d, a:s        | convert conversion
cvt{.<rnd: rint>}{.sat}.<type: f64>.<stype: f64>            | d, a:s        | convert conversion
cvt{.<rnd: rint>}{.sat}.<type: f16>.<stype: f16>            | d, a:s        | convert conversion
cvt{.<rnd: rint>}.<type: bf16>.<stype: bf16>                | d, a:s        | convert conversion
cvt.<rnd: rn rz>{.relu}{.satfinite}.<type: bf16 f16>.<stype: f32> | d, a:s        | convert conversion
cvt.<rnd: rn rz>{.relu}{.satfinite}.<type: f16x2 bf16x2>.<stype: f32> | d, a:s, b:s   | convert conversion
cvt.<rnd: rna>{.satfinite}.<type: tf32>.<stype: f32>        | d:b32, a:s    | convert conversion
cvt.<rnd: rn rz>{.relu}{.satfinite}.<type: tf32>.<stype: f32> | d:b32, a:s    | convert conversion
cvt.<rnd: rn>.satfinite{.relu}.<type: e4m3x2 e5m2x2>.<stype: f32> | d, a:s, b:s   | convert conversion
cvt.<rnd: rn>.satfinite{.relu}.<type: e4m3x2 e5m2x2>.<stype: f16x2> | d, a:s        | convert conversion
cvt.<rnd: rn>{.relu}.<type: f16x2>.<stype: e4m3x2 e5m2x2>   | d, a:s        | convert conversion
cvt.<mode: pack>.sat.<type: u16 s16>.<stype: s32>           | d:b32, a:s, b:s | convert conversion
cvt.<mode: pack>.sat.<type: u2 s2 u4 s4 u8 s8>.<stype: s32>.b32 | d:b32, a:s, b:s, c:b32 | convert conversion

== warp-level-matrix-instructions | tensor hmma
ldmatrix.sync.aligned.m8n8.<count: x1 x2 x4>{.<mode: trans>}{.<space: block>}.<type: b16> | <d>, [a] | lsu load
stmatrix.sync.aligned.m8n8.<count: x1 x2 x4>{.<mode: trans>}{.<space: block>}.<type: b16> | [a], <b> | lsu store
movmatrix.sync.aligned.m8n8.<mode: trans>.<type: b16>       | d:b32, a:b32  | lsu shuffle
mma.sync.aligned.<shape: m16n8k8 m16n8k16>.row.col.<type: f16 f32>.<atype: f16>.<btype: f16>.<ctype: f16 f32> | <d>, <a>, <b>, <c>
mma.sync.aligned.<shape: m16n8k8 m16n8k16>.row.col.<type: f32>.<atype: bf16>.<btype: bf16>.<ctype: f32> | <d>, <a>, <b>, <c>
mma.sync.aligned.<shape: m16n8k4 m16n8k8>.row.col.<type: f32>.<atype: tf32>.<btype: tf32>.<ctype: f32> | <d>, <a>, <b>, <c>
mma.sync.aligned.<shape: m16n8k16 m16n8k32>.row.col.<type: f16 f32>.<atype: e4m3 e5m2>.<btype: e4m3 e5m2>.<ctype: f16 f32> | <d>, <a>, <b>, <c>
mma.sync.aligned.<shape: m8n8k4 m16n8k4 m16n8k8 m16n8k16>.row.col.<type: f64>.<atype: f64>.<btype: f64>.<ctype: f64>{.rn} | <d>, <a>, <b>, <c> | tensor dmma
mma.sync.aligned.<shape: m8n8k16 m16n8k16 m16n8k32>.row.col{.satfinite}.<type: s32>.<atype: s8 u8>.<btype: s8 u8>.<ctype: s32> | <d>, <a>, <b>, <c> | tensor imma
mma.sync.aligned.<shape: m8n8k32 m16n8k32 m16n8k64>.row.col{.satfinite}.<type: s32>.<atype: s4 u4>.<btype: s4 u4>.<ctype: s32> | <d>, <a>, <b>, <c> | tensor imma
mma.sync.aligned.<shape: m8n8k128 m16n8k128 m16n8k256>.row.col.<type: s32>.<atype: b1>.<btype: b1>.<ctype: s32>.<op: xor and>.popc | <d>, <a>, <b>, <c> | tensor bmma
wmma.<mode: load>.<fragment: a b>.sync.aligned.<layout: row col>.<shape: wmma16>{.<space: common>}.<type: f16 bf16 s8 u8> | <d>, [a], e:u32? | lsu load
wmma.<mode: load>.<fragment: a b>.sync.aligned.<layout: row col>.<shape: m16n16k8>{.<space: common>}.<type: tf32> | <d>, [a], e:u32? | lsu load
wmma.<mode: load>.<fragment: a b>.sync.aligned.<layout: row col>.<shape: m8n8k4>{.<space: common>}.<type: f64> | <d>, [a], e:u32? | lsu load
wmma.<mode: load>.<fragment: a>.sync.aligned.<layout: row>.<shape: m8n8k32>{.<space: common>}.<type: s4 u4> | <d>, [a], e:u32? | lsu load
wmma.<mode: load>.<fragment: b>.sync.aligned.<layout: col>.<shape: m8n8k32>{.<space: common>}.<type: s4 u4> | <d>, [a], e:u32? | lsu load
wmma.<mode: load>.<fragment: a>.sync.aligned.<layout: row>.<shape: m8n8k128>{.<space: common>}.<type: b1> | <d>, [a], e:u32? | lsu load
wmma.<mode: load>.<fragment: b>.sync.aligned.<layout: col>.<shape: m8n8k128>{.<space: common>}.<type: b1> | <d>, [a], e:u32? | lsu load
wmma.<mode: load>.<fragment: c>.sync.aligned.<layout: row col>.<shape: wmma16>{.<space: common>}.<type: f16 f32 s32> | <d>, [a], e:u32? | lsu load
wmma.<mode: load>.<fragment: c>.sync.aligned.<layout: row col>.<shape: m16n16k8>{.<space: common>}.<type: f32> | <d>, [a], e:u32? | lsu load
wmma.<mode: load>.<fragment: c>.sync.aligned.<layout: row col>.<shape: m8n8k4>{.<space: common>}.<type: f64> | <d>, [a], e:u32? | lsu load
wmma.<mode: load>.<fragment: c>.sync.aligned.<layout: row col>.<shape: m8n8k32 m8n8k128>{.<space: common>}.<type: s32> | <d>, [a], e:u32? | lsu load
wmma.<mode: store>.<fragment: d>.sync.aligned.<layout: row col>.<shape: wmma16>{.<space: common>}.<type: f16 f32 s32> | [a], <b>, e:u32? | lsu store
wmma.<mode: store>.<fragment: d>.sync.aligned.<layout: row col>.<shape: m16n16k8>{.<space: common>}.<type: f32> | [a], <b>, e:u32? | lsu store
wmma.<mode: store>.<fragment: d>.sync.aligned.<layout: row col>.<shape: m8n8k4>{.<space: common>}.<type: f64> | [a], <b>, e:u32? | lsu store
wmma.<mode: store>.<fragment: d>.sync.aligned.<layout: row col>.<shape: m8n8k32 m8n8k128>{.<space: common>}.<type: s32> | [a], <b>, e:u32? | lsu store
wmma.<mode: mma>.sync.aligned.<alayout: row col>.<blayout: row col>.<shape: wmma16>.<type: f16 f32>.<ctype: f16 f32> | <d>, <a>, <b>, <c>
wmma.<mode: mma>.sync.aligned.<alayout: row col>.<blayout: row col>.<shape: wmma16>.<type: f32>.<atype: bf16>.<btype: bf16>.<ctype: f32> | <d>, <a>, <b>, <c>
wmma.<mode: mma>.sync.aligned.<alayout: row col>.<blayout: row col>.<shape: m16n16k8>.<type: f32>.<atype: tf32>.<btype: tf32>.<ctype: f32> | <d>, <a>, <b>, <c>
wmma.<mode: mma>.sync.aligned.<alayout: row col>.<blayout: row col>.<shape: m8n8k4>.<type: f64>.<atype: f64>.<btype: f64>.<ctype: f64>{.rn} | <d>, <a>, <b>, <c> | tensor dmma
wmma.<mode: mma>.sync.aligned.<alayout: row col>.<blayout: row col>.<shape: wmma16>.<type: s32>.<atype: s8>.<btype: s8>.<ctype: s32>{.satfinite} | <d>, <a>, <b>, <c> | tensor imma
wmma.<mode: mma>.sync.aligned.<alayout: row col>.<blayout: row col>.<shape: wmma16>.<type: s32>.<atype: u8>.<btype: u8>.<ctype: s32>{.satfinite} | <d>, <a>, <b>, <c> | tensor imma
wmma.<mode: mma>.sync.aligned.row.col.<shape: m8n8k32>.<type: s32>.<atype: s4>.<btype: s4>.<ctype: s32>{.satfinite} | <d>, <a>, <b>, <c> | tensor imma
wmma.<mode: mma>.sync.aligned.row.col.<shape: m8n8k32>.<type: s32>.<atype: u4>.<btype: u4>.<ctype: s32>{.satfinite} | <d>, <a>, <b>, <c> | tensor imma
wmma.<mode: mma>.<op: xor and>.popc.sync.aligned.row.col.<shape: m8n8k128>.<type: s32>.<atype: b1>.<btype: b1>.<ctype: s32> | <d>, <a>, <b>, <c> | tensor bmma

== control-flow-instructions | control branch
bra{.uni}                                                   | label
brx.<mode: idx>{.uni}                                       | a:u32, list
call{.uni}                                                  | (returns), target, (arguments), prototype?
ret{.uni}                                                   |
exit                                                        |

== parallel-synchronization-and-communication-instructions | barrier barrier
bar{.cta}.<mode: sync>                                      | a:u32, b:u32?
bar{.cta}.<mode: arrive>                                    | a:u32, b:u32
bar{.cta}.<mode: red>.<op: popc>.<type: u32>                | d, a:u32, c:pred
bar{.cta}.<mode: red>.<op: popc>.<type: u32>                | d, a:u32, b:u32, c:pred
bar{.cta}.<mode: red>.<op: and or>.<type: pred>             | p, a:u32, c:pred
bar{.cta}.<mode: red>.<op: and or>.<type: pred>             | p, a:u32, b:u32, c:pred
barrier{.cta}.<mode: sync>{.aligned}                        | a:u32, b:u32?
barrier{.cta}.<mode: arrive>{.aligned}                      | a:u32, b:u32
barrier{.cta}.<mode: red>.<op: popc>{.aligned}.<type: u32>  | d, a:u32, c:pred
barrier{.cta}.<mode: red>.<op: popc>{.aligned}.<type: u32>  | d, a:u32, b:u32, c:pred
barrier{.cta}.<mode: red>.<op: and or>{.aligned}.<type: pred> | p, a:u32, c:pred
barrier{.cta}.<mode: red>.<op: and or>{.aligned}.<type: pred> | p, a:u32, b:u32, c:pred
bar.<mode: warp>.sync                                       | a:u32         | control vote
membar.<scope: cta gl sys>                                  |               | lsu other
fence{.<sem: sc acq_rel acquire release>}.<scope>           |               | lsu other
fence.proxy.<mode: alias async async.global async.shared::cta async.shared::cluster> |               | lsu other
fence.<mode: mbarrier_init>.release.cluster                 |               | lsu other
mbarrier.<mode: init>{.<space: block>}.<type: b64>          | [a], b:u32    | lsu atomic
mbarrier.<mode: inval>{.<space: block>}.<type: b64>         | [a]           | lsu atomic
mbarrier.<mode: expect_tx complete_tx>{.<sem: relaxed>.<scope: cta cluster>}{.<space: clustered>}.<type: b64> | [a], b:u32 | lsu atomic
mbarrier.<mode: arrive arrive_drop>{.<sem: release relaxed>.<scope: cta cluster>}{.<space: clustered>}.<type: b64> | d, [a], b:u32? | lsu atomic
mbarrier.<mode: arrive arrive_drop>.<op: expect_tx>{.<sem: release relaxed>.<scope: cta cluster>}{.<space: clustered>}.<type: b64> | d, [a], b:u32 | lsu atomic
mbarrier.<mode: arrive arrive_drop>.<op: noComplete>{.<sem: release>.<scope: cta>}{.<space: block>}.<type: b64> | d, [a], b:u32 | lsu atomic
mbarrier.<mode: test_wait>{.<sem: acquire relaxed>.<scope: cta cluster>}{.<space: block>}.<type: b64> | p, [a], b | lsu load
mbarrier.<mode: test_wait>.<op: parity>{.<sem: acquire relaxed>.<scope: cta cluster>}{.<space: block>}.<type: b64> | p, [a], b:u32 | lsu load
mbarrier.<mode: try_wait>{.<sem: acquire relaxed>.<scope: cta cluster>}{.<space: block>}.<type: b64> | p, [a], b, c:u32? | lsu load
mbarrier.<mode: try_wait>.<op: parity>{.<sem: acquire relaxed>.<scope: cta cluster>}{.<space: block>}.<type: b64> | p, [a], b:u32, c:u32? | lsu load
mbarrier.<mode: pending_count>.<type: b64>                  | d:u32, a      | lsu other
atom{.<sem: asem>}{.<scope>}{.<space: common>}.<op: and or xor exch>{.L2::cache_hint}.<type: b32 b64> | d, [a], b, h:b64? | lsu atomic
atom{.<sem: asem>}{.<scope>}{.<space: common>}.<op: exch>{.L2::cache_hint}.<type: b128> | d, [a], b, h:b64? | lsu atomic
atom{.<sem: asem>}{.<scope>}{.<space: common>}.<op: cas>.<type: bits b128> | d, [a], b, c | lsu atomic
atom{.<sem: asem>}{.<scope>}{.<space: common>}.<op: add>{.L2::cache_hint}.<type: u32 s32 u64 f32 f64> | d, [a], b, h:b64? | lsu atomic
atom{.<sem: asem>}{.<scope>}{.<space: common>}.<op: add>.noftz{.L2::cache_hint}.<type: half bhalf> | d, [a], b, h:b64? | lsu atomic
atom{.<sem: asem>}{.<scope>}{.<space: common>}.<op: inc dec>{.L2::cache_hint}.<type: u32> | d, [a], b, h:b64? | lsu atomic
atom{.<sem: asem>}{.<scope>}{.<space: common>}.<op: min max>{.L2::cache_hint}.<type: u32 s32 u64 s64> | d, [a], b, h:b64? | lsu atomic
atom{.<sem: asem>}{.<scope>}{.<space: global>}.<op: add>{.L2::cache_hint}.<vec>.<type: f32> | (d), [a], (b), h:b64? | lsu atomic
atom{.<sem: asem>}{.<scope>}{.<space: global>}.<op: add min max>.noftz{.L2::cache_hint}.<vec: v2 v4 v8>.<type: f16 bf16> | (d), [a], (b), h:b64? | lsu atomic
atom{.<sem: asem>}{.<scope>}{.<space: global>}.<op: add min max>.noftz{.L2::cache_hint}.<vec>.<type: f16x2 bf16x2> | (d), [a], (b), h:b64? | lsu atomic
red{.<sem: rsem>}{.<scope>}{.<space: common>}.<op: and or xor>{.L2::cache_hint}.<type: b32 b64> | [a], b, h:b64? | lsu reduction
red{.<sem: rsem>}{.<scope>}{.<space: common>}.<op: add>{.L2::cache_hint}.<type: u32 s32 u64 f32 f64> | [a], b, h:b64? | lsu reduction
red{.<sem: rsem>}{.<scope>}{.<space: common>}.<op: add>.noftz{.L2::cache_hint}.<type: half bhalf> | [a], b, h:b64? | lsu reduction
red{.<sem: rsem>}{.<scope>}{.<space: common>}.<op: inc dec>{.L2::cache_hint}.<type: u32> | [a], b, h:b64? | lsu reduction
red{.<sem: rsem>}{.<scope>}{.<space: common>}.<op: min max>{.L2::cache_hint}.<type: u32 s32 u64 s64> | [a], b, h:b64? | lsu reduction
red{.<sem: rsem>}{.<scope>}{.<space: global>}.<op: add>{.L2::cache_hint}.<vec>.<type: f32> | [a], (b), h:b64? | lsu reduction
red{.<sem: rsem>}{.<scope>}{.<space: global>}.<op: add min max>.noftz{.L2::cache_hint}.<vec: v2 v4 v8>.<type: f16 bf16> | [a], (b), h:b64? | lsu reduction
red{.<sem: rsem>}{.<scope>}{.<space: global>}.<op: add min max>.noftz{.L2::cache_hint}.<vec>.<type: f16x2 bf16x2> | [a], (b), h:b64? | lsu reduction
vote.sync.<mode: all any uni>.<type: pred>                  | p, a, e:u32   | control vote
vote.sync.<mode: ballot>.<type: b32>                        | d, a:pred, e:u32 | control vote
match.<mode: any>.sync.<type: b32 b64>                      | d:b32, a, e:u32 | control vote
match.<mode: all>.sync.<type: b32 b64>                      | d|p:b32, a, e:u32 | control vote
activemask.<type: b32>                                      | d             | control vote
redux.sync.<op: add min max>.<type: u32 s32>                | d, a, e:u32   | int vote
redux.sync.<op: and or xor>.<type: b32>                     | d, a, e:u32   | int vote
elect.sync                                                  | d|p:b32, e:u32 | control vote

== miscellaneous-instructions | control other
trap                                                        |
brkpt                                                       |
nanosleep.<type: u32>                                       | a
pmevent{.mask}                                              | a:imm
griddepcontrol.<mode: launch_dependents wait>               |
"""
