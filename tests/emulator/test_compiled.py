"""The compiled engine equals the interpreter bit for bit, counters included, in its fast and in its general variant."""

from __future__ import annotations

import functools
import signal
import tempfile
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import pytest
from ptx_harness import kernel

from gpulab.counters import Counters
from gpulab.emulator import ENGINES, Memory, Program, RunOptions, compiled, layout, load, place_variables, variants
from gpulab.emulator.llvm import cache, jit
from gpulab.emulator.native import library
from gpulab.errors import KernelFault, TimeLimitError
from gpulab.launch import LaunchConfig
from gpulab.ptx import parse
from gpulab.toolchain.nvrtc import compile_kernel

SOURCE = (Path(__file__).parent / "compiled_kernels.cu").read_text()
_random = np.random.default_rng(7)


def _floats(*shape: int) -> np.ndarray:
    return _random.random(shape).astype(np.float32)


def _integers(high: int, count: int) -> np.ndarray:
    return _random.integers(0, high, count).astype(np.int32)


def _zeros(count: int, dtype: type = np.float32) -> np.ndarray:
    return np.zeros(count, dtype)


CASES = {
    "vector_add, ragged": ("vector_add", [_floats(400), _floats(400), _zeros(400), 100], 2, 64),
    "vector_add, rows of 8": ("vector_add", [_floats(400), _floats(400), _zeros(400), 100], 4, (8, 4)),
    "transpose, 32 wide": ("transpose", [_floats(20, 20), _zeros(400), 20], (1, 3), (32, 8)),
    "transpose, 16 wide": ("transpose", [_floats(20, 20), _zeros(400), 20], (2, 2), (16, 16)),
    "transpose, 2 wide": ("transpose", [_floats(20, 20), _zeros(400), 20], (10, 1), (2, 32)),
    "transpose, 1 wide": ("transpose", [_floats(20, 20), _zeros(400), 20], (20, 1), (1, 32)),
    "transpose, 12 wide": ("transpose", [_floats(20, 20), _zeros(400), 20], (2, 2), (12, 12)),
    "tiled_matmul": ("tiled_matmul", [_floats(32, 32), _floats(32, 32), _zeros(1024), 32], (1, 2), (16, 16)),
    "reduce": ("reduce", [_floats(700), _zeros(2), 700], 2, 96),
    "histogram": ("histogram", [_integers(1000, 300), _zeros(64, np.int32), 300], 3, 128),
    "iterate": ("iterate", [_zeros(600, np.int32), 30, 20], (2, 2), (16, 16)),
    "stencil": ("stencil", [_floats(100), _zeros(100), 100], 2, 64),
    **{
        f"copy_rows, {pitch} apart": (
            "copy_rows",
            [_floats(900), _zeros(900), np.arange(900.0), np.zeros(900), pitch],
            2,
            (16, 8),
        )
        for pitch in (16, 20, 32, 48, 64)
    },
    "choose": ("choose", [_integers(100, 128), _zeros(128, np.int32)], 2, 64),
    "sign_bits, all negative": ("sign_bits", [_zeros(64, np.uint32), 100], 1, 64),
    "sign_bits, both in one warp": ("sign_bits", [_zeros(64, np.uint32), 40], 1, 64),
    "spill": ("spill", [_integers(100, 64), _zeros(64, np.float64)], 1, 64),
}


@functools.cache
def _program(name: str) -> Program:
    return load(parse(compile_kernel(SOURCE, name, ("-lineinfo",)).text), name)


def _run(
    engine: str, name: str, arguments: list, grid: object, block: object, **options: object
) -> tuple[list, Counters]:
    program, memory, buffer = _program(name), Memory(), b""
    symbols = place_variables(program.module, memory)
    arrays = [a.copy() if isinstance(a, np.ndarray) else a for a in arguments]
    for (offset, size), argument in zip(program.parameters.values(), arrays, strict=True):
        value = memory.adopt(argument, f"array {offset}").address if isinstance(argument, np.ndarray) else argument
        buffer = buffer.ljust(offset, b"\0") + int(value).to_bytes(size, "little")
    launch, chosen = LaunchConfig.of(grid, block), RunOptions(**options)
    if engine == "general":
        counters = compiled.execute(program, launch, buffer, memory, symbols, chosen, general=True)
    else:
        counters = ENGINES[engine](program, launch, buffer, memory, symbols, chosen)
    return [a for a in arrays if isinstance(a, np.ndarray)], counters


@pytest.mark.parametrize("case", CASES)
def test_both_variants_equal_the_interpreter(case: str) -> None:
    expected, counted = _run("reference", *CASES[case])
    for engine in ("compiled", "general"):
        results, counters = _run(engine, *CASES[case])
        assert not counters.differences(counted), engine
        assert all(np.array_equal(mine, theirs) for mine, theirs in zip(results, expected, strict=True)), engine


def test_matmul_is_numpys() -> None:
    (a, b, c), _ = _run(
        "compiled", "tiled_matmul", [_floats(64, 64), _floats(64, 64), _zeros(4096), 64], (4, 4), (16, 16)
    )
    np.testing.assert_allclose(c.reshape(64, 64), a @ b, rtol=1e-5)


def test_threads_do_not_change_results_or_counters() -> None:
    case = ("histogram", [_integers(1000, 20_000), _zeros(64, np.int32), 20_000], 160, 128)
    alone, counted = _run("compiled", *case, threads=1)
    together, counters = _run("compiled", *case, threads=2)
    assert np.array_equal(alone[1], together[1])
    assert not counters.differences(counted)
    assert alone[1].sum() == 20_000


def test_without_counting_only_the_launch_is_counted() -> None:
    _, counters = _run("compiled", *CASES["reduce"], count=False)
    assert (counters.blocks, counters.warps, counters.threads) == (2, 6, 192)
    assert not counters.warp_instructions.any() and not counters.sectors.any()


def test_a_sample_runs_only_its_blocks() -> None:
    arrays, counters = _run("compiled", "choose", [_integers(100, 128), _zeros(128, np.int32) - 1], 2, 64, blocks=[1])
    assert (arrays[1][:64] == -1).all() and (arrays[1][64:] >= 0).all()
    assert counters.sampled_blocks == counters.blocks == 1


def test_an_endless_loop_ends_with_an_error_in_time() -> None:
    start = time.monotonic()
    with pytest.raises(TimeLimitError, match=r"count_up did not end within 0\.2 s .*count_up.cu, line 10\d "):
        _run("compiled", "count_up", [_zeros(2, np.int32)], 4, 64, time_limit_s=0.2)
    assert time.monotonic() - start < 10


def test_a_loop_in_which_nothing_changes_is_a_deadlock_with_its_line() -> None:
    start = time.monotonic()
    with pytest.raises(KernelFault, match=r"deadlock in kernel spin at .*spin.cu, line 104 "):
        _run("compiled", "spin", [_zeros(2, np.int32)], 4, 64)
    assert time.monotonic() - start < 2


def test_ctrl_c_waits_until_native_code_has_let_go_of_the_arrays(monkeypatch: pytest.MonkeyPatch) -> None:
    main, delays, let_go = threading.get_ident(), [0.2, 0.1], []

    def drive(context: int) -> int:  # of which the second meets a Ctrl-C while the first one is dealt with
        time.sleep(delays.pop())
        signal.pthread_kill(main, signal.SIGINT)
        time.sleep(0.3)
        let_go.append(True)
        return layout.STOP

    monkeypatch.setattr(library, "drive", lambda: drive)
    with pytest.raises(KeyboardInterrupt):
        _run("compiled", *CASES["choose"], threads=2)
    assert let_go == [True, True]


def test_faults_are_those_of_the_interpreter() -> None:
    case = ("vector_add", [_floats(400), _floats(400), _zeros(396), 100], 4, 32)
    found = []
    for engine in ("reference", "compiled", "general"):
        with pytest.raises(KernelFault) as caught:
            _run(engine, *case, threads=2)
        found.append(caught.value.fault)
    assert found[0] == found[1] == found[2]
    assert (found[0].kind, found[0].block, found[0].thread, found[0].line) == ("out-of-bounds", (3, 0, 0), (3, 0, 0), 6)


def test_a_cache_that_cannot_be_written_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    monkeypatch.setenv("GPULAB_CACHE", str(blocked))
    assert cache.load("x") is None
    assert not cache.save("x", b"code")


def test_a_damaged_file_of_the_cache_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPULAB_CACHE", str(tmp_path))
    assert cache.save("x", b"native code")
    assert cache.load("x") == b"native code"
    path = cache.folder() / "x"
    path.write_bytes(path.read_bytes()[:-1])
    assert cache.load("x") is None


def test_a_kernel_that_runs_long_is_compiled_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPULAB_CACHE", str(tmp_path))
    program = load(parse(kernel("u64 a", "ld.param.u64 %rd1, [a]; st.global.u32 [%rd1], 9876;")), "k")
    first = variants.variant(program, (32, 1, 1), True, {}, False)
    assert first.fast.level == 0
    first.spent = 2.9 * first.fast.seconds
    assert variants.variant(program, (32, 1, 1), True, {}, False).fast.level == 0
    first.spent = 3.1 * first.fast.seconds
    assert variants.variant(program, (32, 1, 1), True, {}, False).fast.level == 1
    # Another process finds the better code.
    program = load(program.module, "k")
    assert variants.variant(program, (32, 1, 1), True, {}, False).fast.level == 1


def test_a_cache_that_cannot_be_written_serves_what_it_has(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GPULAB_CACHE", str(tmp_path))
    text = kernel("u64 a", "ld.param.u64 %rd1, [a]; st.global.u32 [%rd1], 6789;")
    variants.variant(load(parse(text), "k"), (32, 1, 1), True, {}, False)
    monkeypatch.setattr(tempfile, "mkstemp", _refuse)
    monkeypatch.setattr(jit, "compile_object", _refuse)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert variants.variant(load(parse(text), "k"), (32, 1, 1), True, {}, False).fast.addresses


def _refuse(*arguments: object, **options: object) -> None:
    raise PermissionError(f"not here: {arguments}, {options}")
