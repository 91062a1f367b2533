"""LLVM assembly text to native code in this process.

A module is optimized by a short list of passes (long lists cost more time than they win on code that is already
vectorized), compiled to an object file, kept on disk, and linked. Objects are loaded one library each; a library stays
loaded as long as its `Code` lives.
"""

from __future__ import annotations

import functools
import itertools
import threading
from dataclasses import dataclass
from typing import Any

import llvmlite
import llvmlite.binding as llvm

from gpulab.emulator import cache

# Part of every cache key: raise it when generated code changes in a way that its text does not show.
ENGINE_VERSION = "1"

_lock = threading.Lock()
_serial = itertools.count()


@dataclass(frozen=True, slots=True)
class Code:
    """Linked native code: address by function name; `library` keeps it loaded."""

    addresses: dict[str, int]
    library: Any
    from_cache: bool


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
        0 compiles fast to slow code; 1 runs a short list of passes, 2 LLVM's own long one.
    """
    machine = target_machine(level)
    module = llvm.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    options = llvm.create_pipeline_tuning_options(level)
    options.loop_vectorization = options.slp_vectorization = options.loop_unrolling = False
    builder = llvm.create_pass_builder(machine, options)
    _passes(builder, level).run(module, builder)
    return machine.emit_object(module)


def _passes(builder: Any, level: int) -> Any:
    if level > 1:
        return builder.getModulePassManager()
    passes = llvm.create_new_module_pass_manager()
    passes.add_sroa_pass()
    if level:
        passes.add_instruction_combine_pass()
    passes.add_simplify_cfg_pass()
    passes.add_dead_code_elimination_pass()
    return passes


def build(text: str, exports: tuple[str, ...], imports: dict[str, int], level: int = 1) -> Code:
    """Compile (or take from disk) and link a module.

    Parameters
    ----------
    text : str
        LLVM assembly.
    exports : tuple of str
        Functions whose addresses are wanted.
    imports : dict of str to int
        Addresses of functions that the module declares.
    level : int
        As for `compile_object`.
    """
    with _lock:
        name = cache.key(ENGINE_VERSION, llvmlite.__version__, llvm.get_host_cpu_name(), _features(), str(level), text)
        image = cache.load(name)
        found = image is not None
        if image is None:
            image = compile_object(text, level)
            cache.save(name, image)
        library = llvm.JITLibraryBuilder().add_object_img(image).add_current_process()
        for symbol, address in imports.items():
            library.import_symbol(symbol, address)
        for symbol in exports:
            library.export_symbol(symbol)
        tracker = library.link(_linker(), f"gpulab{next(_serial)}")
        return Code({symbol: tracker[symbol] for symbol in exports}, tracker, found)
