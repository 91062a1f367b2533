"""Programs: layout of parameters, shared and local memory, and what is refused when a kernel is loaded."""

from __future__ import annotations

import numpy as np
import pytest
from ptx_harness import HEADER, kernel

from gpulab.emulator import Memory, load, place_variables
from gpulab.errors import GpulabError, UnsupportedInstruction
from gpulab.ptx import parse


def loaded(text: str):
    module = parse(text)
    return load(module, module.entries[0])


def test_parameters_have_their_natural_alignment() -> None:
    found = loaded(kernel("u8 a, u64 b, u16 c, f32 d, align 16 .b8 e[20]", ""))
    assert found.parameters == {"a": (0, 1), "b": (8, 8), "c": (16, 2), "d": (20, 4), "e": (32, 20)}
    assert found.parameter_bytes == 52


def test_only_shared_arrays_that_are_used_take_room() -> None:
    module = ".shared .align 16 .b8 mine[40]; .shared .b8 others[1000]; .extern .shared .align 16 .b8 dynamic[];"
    found = loaded(
        kernel(
            "",
            "ld.shared.u32 %r1, [mine]; ld.shared.u32 %r2, [dynamic]; ld.shared.u16 %rs1, [local];",
            variables=".shared .b16 local[3];",
            module=module,
        )
    )
    assert {name: found.shared[name] for name in ("mine", "local", "dynamic")} == {
        "mine": 0,
        "local": 40,
        "dynamic": 48,
    }
    assert "others" not in found.shared
    assert found.static_shared_bytes == 46
    assert (found.shared_bytes(0), found.shared_bytes(100)) == (46, 148)


def test_local_arrays_of_inlined_copies_lie_side_by_side() -> None:
    module = ".func f() { .local .align 8 .b8 l[12]; .reg .b64 %rd1; mov.b64 %rd1, l; ret; }"
    found = loaded(kernel("", "call f; call f;", module=module))
    assert sorted(found.local.values()) == [0, 16]
    assert found.local_bytes == 28


@pytest.mark.parametrize(
    ("line", "sensitive"),
    [
        ("red.global.add.f32 [%rd1], %f1;", True),
        ("red.global.add.u32 [%rd1], %r1;", False),
        ("atom.global.add.u32 %r1, [%rd1], 1;", False),
        ("atom.global.add.u32 %r1, [%rd1], 1; st.global.u32 [%rd1+4], %r1;", True),
        ("atom.global.exch.b32 %r1, [%rd1], 1;", True),
        ("atom.global.cas.b32 _, [%rd1], 1, 2;", True),
        ("atom.shared.add.f32 %f1, [%r1], %f2;", False),
        ("red.add.f64 [%rd1], %fd1;", True),
        ("red.global.max.s64 [%rd1], %rd2;", False),
        ("st.global.f32 [%rd1], %f1;", False),
    ],
)
def test_whether_results_may_depend_on_the_order_of_blocks(line: str, sensitive: bool) -> None:
    assert loaded(kernel("", line)).order_sensitive is sensitive


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("add.s32 %r1, %r2, %rd1;", "%rd1 has type .b64, but .s32 is needed"),
        ("add.f32 %f1, %fd1, %f1;", "%fd1 has type .f64"),
        ("selp.b32 %r1, %r2, %r3, %r4;", "%r4 has type .b32, but .pred"),
        ("and.pred %p1, %r1, %p2;", "but .pred"),
        ("ld.global.u64 %r1, [%rd1];", "%r1 has type .b32, but .u64"),
        ("wmma.load.a.sync.aligned.row.m8n8k4.f64 {%f1}, [%rd1];", "%f1 has type .f32, but .b64"),
        ("ldmatrix.sync.aligned.m8n8.x2.shared.b16 {%r1, %rd2}, [%rd1];", "%rd2 has type .b64, but .b32"),
        ("tcgen05.fence::before_thread_sync;", "does not support 'tcgen05"),
    ],
)
def test_what_the_emulator_can_not_run_is_refused_before_it_runs(line: str, words: str) -> None:
    with pytest.raises(UnsupportedInstruction, match=words.replace(".", r"\.")) as caught:
        loaded(kernel("", line))
    assert caught.value.line is not None


def test_wide_registers_may_hold_narrow_values() -> None:
    loaded(
        kernel(
            "", "ld.global.u8 %r1, [%rd1]; st.global.u16 [%rd1], %r1; cvt.u8.u32 %r2, %r1; ld.global.s16 %rd2, [%rd1];"
        )
    )


def test_names_of_other_modules_are_refused() -> None:
    with pytest.raises(UnsupportedInstruction, match="'elsewhere' is not defined in this module"):
        loaded(kernel("", "mov.u64 %rd1, elsewhere;", module=".extern .global .u32 elsewhere;"))


def test_a_kernel_that_is_not_there_is_named_with_those_that_are() -> None:
    module = parse(HEADER + ".entry first() { ret; } .entry second() { ret; } .func helper() { ret; }")
    with pytest.raises(GpulabError, match="no kernel 'helper'. It has: first, second"):
        load(module, "helper")


def test_module_variables_are_placed_with_their_relocations() -> None:
    module = parse(
        HEADER
        + ".const .align 4 .u32 c[2] = {1, 2}; .global .align 8 .u64 p[2] = {generic(c)+4, f}; .extern .global .u32 x; .func f() { ret; }"
    )
    memory = Memory()
    symbols = place_variables(module, memory)
    assert set(symbols) == {"c", "p"}
    assert memory.view(symbols["c"], 8).view(np.uint32).tolist() == [1, 2]
    first, second = memory.view(symbols["p"], 16).view(np.uint64).tolist()
    assert first == symbols["c"] + 4
    assert second not in (0, symbols["c"], symbols["p"])
    assert not memory.find(symbols["c"]).writable
    assert memory.find(symbols["p"]).writable


def test_the_engine_can_be_chosen_by_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    from gpulab.emulator import execute
    from gpulab.launch import LaunchConfig

    program = loaded(kernel("", ""))
    for name in ("reference", "compiled"):
        monkeypatch.setenv("GPULAB_ENGINE", name)
        assert execute(program, LaunchConfig.of(1, 1), b"", Memory(), {}).blocks == 1
    monkeypatch.setenv("GPULAB_ENGINE", "quantum")
    with pytest.raises(GpulabError, match="one of reference, compiled, but 'quantum' came"):
        execute(program, LaunchConfig.of(1, 1), b"", Memory(), {})
