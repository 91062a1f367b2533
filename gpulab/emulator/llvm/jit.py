"""LLVM assembly text to native code in this process.

A module is optimized by a short list of passes (long lists cost more time than they win on code that is already
vectorized), compiled to an object file, kept on disk, and linked. Objects are loaded one library each; a library stays
loaded as long as its `Code` lives.
"""

from __future__ import annotations

import functools
import itertools
import json
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from gpulab.emulator.llvm import cache

_lock = threading.Lock()
_serial = itertools.count()


@dataclass(frozen=True, slots=True)
class Code:
    """Linked native code.

    Attributes
    ----------
    addresses : dict of str to int
        By function name.
    notes : tuple of int
        What its maker noted about it.
    level : int
        How much it was optimized.
    seconds : float
        What making it took, perhaps in another process.
    library : object
        Keeps it loaded.
    """

    addresses: dict[str, int]
    notes: tuple[int, ...]
    level: int
    seconds: float
    library: Any


@dataclass(frozen=True, slots=True)
class Source:
    """LLVM assembly, the functions whose addresses are wanted, and numbers that are kept with the code."""

    text: str
    exports: tuple[str, ...]
    notes: tuple[int, ...] = ()


@functools.cache
def target_machine(level: int = 1) -> Any:
    """The host's target machine, with the widest vectors that it has."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    target = llvm.Target.from_default_triple()
    return target.create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=_features(), opt=level, reloc="pic", codemodel="default"
    )


@functools.cache
def _features() -> str:
    features = llvm.get_host_cpu_features()
    # LLVM prefers 256 bits on many AVX-512 machines for code that is only partly vector code; this is nothing else.
    wide = ",-prefer-256-bit" if features.get("avx512f") else ""
    return features.flatten() + wide


@functools.cache
def _linker() -> Any:
    target_machine()
    return llvm.create_lljit_compiler(target_machine(), use_jit_link=True)


def compile_object(text: str, level: int = 1) -> bytes:
    """Optimize a module and compile it to an object file.

    Parameters
    ----------
    text : str
        LLVM assembly.
    level : int
        0 compiles fast, to code that takes up to twice the time; 1 runs a short list of passes, 2 a longer one.
    """
    machine = target_machine(level)
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(level)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    _passes(level).run(module, builder)
    return machine.emit_object(module)


def _passes(level: int) -> Any:
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    if level:
        passes.add_instruction_combine_pass()
    if level > 1:
        passes.add_simplify_cfg_pass()
        passes.add_loop_rotate_pass()
        passes.add_new_gvn_pass()
        passes.add_dead_store_elimination_pass()
        passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_dead_code_elimination_pass()
    return passes


def build(
    make: Callable[[], Source], parts: tuple[str, ...], imports: dict[str, int], levels: tuple[int, ...] = (1,)
) -> Code:
    """Take from disk, or make and compile, a module; link it.

    Parameters
    ----------
    make : callable
        Gives the module; called only if its code is not on disk.
    parts : tuple of str
        What `make` depends on, besides the package's own source.
    imports : dict of str to int
        Addresses of functions that the module declares.
    levels : tuple of int
        As for `compile_object`: the first of which there is code on disk, or else the last, which is compiled.
    """
    with _lock:
        names = [_name(level, parts) for level in levels]
        found = ((level, cache.load(name)) for level, name in zip(levels, names, strict=True))
        level, stored = next(((level, stored) for level, stored in found if stored), (levels[-1], None))
        if stored:
            exports, notes, seconds, image = _unpack(stored)
        else:
            start, source = time.perf_counter(), make()
            exports, notes, image = source.exports, source.notes, compile_object(source.text, level)
            seconds = time.perf_counter() - start
            cache.save(names[-1], _pack(exports, notes, seconds, image))
        library = llvm.JITLibraryBuilder().add_object_img(image).add_current_process()
        for symbol, address in imports.items():
            library.import_symbol(symbol, address)
        for symbol in exports:
            library.export_symbol(symbol)
        tracker = library.link(_linker(), f"gpulab{next(_serial)}")
        return Code({symbol: tracker[symbol] for symbol in exports}, notes, level, seconds, tracker)


def _name(level: int, parts: tuple[str, ...]) -> str:
    return cache.key(
        cache.generators(), llvmlite.__version__, llvm.get_host_cpu_name(), _features(), str(level), *parts
    )


def _pack(exports: tuple[str, ...], notes: tuple[int, ...], seconds: float, image: bytes) -> bytes:
    header = json.dumps([exports, notes, seconds]).encode()
    return len(header).to_bytes(8, "little") + header + image


def _unpack(stored: bytes) -> tuple[tuple[str, ...], tuple[int, ...], float, bytes]:
    end = 8 + int.from_bytes(stored[:8], "little")
    exports, notes, seconds = json.loads(stored[8:end])
    return tuple(exports), tuple(notes), seconds, stored[end:]
