"""What each command does: read its options, call the package, print text or one JSON document.

Exit codes: 0, or 1 where ``doctor`` finds something to repair or ``check`` a fault, or 2 for a user's error (which goes to stderr), or 130 after
Ctrl-C, as shells have it.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import gpulab
from gpulab.cli import show
from gpulab.cli.arguments import parse_argument, parse_dimensions, parse_setting
from gpulab.errors import GpulabError

FOUND = 1
USER_ERROR = 2
INTERRUPTED = 130
_EPILOG = """examples:
  gpulab doctor
  gpulab gpus A100
  gpulab compare transpose --gpu A100 --set n=2048
  gpulab profile scale.cu --kernel scale --grid 4096 --block 256 \\
      --arg in:float32:1048576:random --arg out:float32:1048576 --arg float32=2
  gpulab check tile.py --grid 4 --block 16x16 --arg inout:float32:64x64:arange"""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; return its exit code.

    Parameters
    ----------
    arguments : sequence of str, optional
        Without the program's name; ``sys.argv`` if None.
    """
    options = _parser().parse_args(arguments)
    try:
        return _run(options)
    except GpulabError as error:
        print(f"gpulab: {error}", file=sys.stderr)
    except MemoryError as error:
        print(f"gpulab: not enough memory on this machine: {error}", file=sys.stderr)
    except KeyboardInterrupt:
        print("gpulab: interrupted.", file=sys.stderr)
        return INTERRUPTED
    except BrokenPipeError:
        # The reader (head, less) has seen enough. Point stdout elsewhere, so that the exit's flush is quiet too.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    return USER_ERROR


def _run(options: argparse.Namespace) -> int:
    command: Callable[[argparse.Namespace], _Outcome] = options.command
    # A kernel's printf and a file's own prints must not mix with the document.
    with contextlib.redirect_stdout(sys.stderr) if options.json else contextlib.nullcontext():
        outcome = command(options)
        printed = show.as_json(outcome.document()) if options.json else outcome.text()
    print(printed, flush=True)
    return outcome.code


@dataclass(frozen=True, slots=True)
class _Outcome:
    """What a command found, in both forms, of which one is made; and its exit code."""

    document: Callable[[], Any]
    text: Callable[[], str]
    code: int = 0


def _doctor(options: argparse.Namespace) -> _Outcome:
    from gpulab import doctor

    report = doctor.examine()
    return _Outcome(report.to_json, lambda: show.doctor(report.to_json()), 0 if report.works else FOUND)


def _gpus(options: argparse.Namespace) -> _Outcome:
    found = [gpulab.gpu(name) for name in options.gpu or gpulab.gpus()]
    shown = show.gpu_values if options.gpu else show.gpus
    documents = [show.gpu_document(gpu) for gpu in found]
    return _Outcome(lambda: documents, lambda: shown(documents))


def _kernels(options: argparse.Namespace) -> _Outcome:
    documents = [ladder.to_json() for ladder in gpulab.kernels()]
    return _Outcome(lambda: documents, lambda: show.kernels(documents))


def _compare(options: argparse.Namespace) -> _Outcome:
    parameters = dict(map(parse_setting, options.set))
    comparison = gpulab.compare(options.ladder, gpu=options.gpu, language=options.language, **parameters)
    return _Outcome(comparison.to_json, lambda: show.comparison(comparison))


def _profile(options: argparse.Namespace) -> _Outcome:
    bound, values = _prepared(options)
    profile = gpulab.profile(bound, *values, gpu=options.gpu, sample_blocks=options.sample_blocks)
    _save(options, values)
    return _Outcome(profile.to_json, lambda: show.profile(profile))


def _check(options: argparse.Namespace) -> _Outcome:
    bound, values = _prepared(options)
    report = gpulab.check(bound, *values, gpu=options.gpu)
    _save(options, values)
    return _Outcome(report.to_json, lambda: repr(report), 0 if report.ok else FOUND)


def _prepared(options: argparse.Namespace) -> tuple[Any, list[Any]]:
    """The kernel of the file, bound to its launch, and its arguments."""
    from gpulab.cli import files

    request = files.Request(
        file=options.file,
        kernel=options.kernel,
        grid=parse_dimensions(options.grid),
        block=parse_dimensions(options.block),
        arguments=tuple(map(parse_argument, options.arg)),
        shared_bytes=options.shared_bytes,
        options=tuple(options.option),
    )
    return files.prepare(request)


def _save(options: argparse.Namespace, values: list[Any]) -> None:
    from gpulab.cli import files

    if options.save:
        files.save(options.save, values)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="gpulab",
        description="Learn to make GPU kernels fast, with or without a GPU.",
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"gpulab {gpulab.__version__}")
    commands = parser.add_subparsers(required=True, metavar="COMMAND")
    _add(commands, "doctor", _doctor, "what works on this machine, and what to do where something doesn't")
    gpus = _add(commands, "gpus", _gpus, "the GPUs of the catalog; or all values of some, with their sources")
    gpus.add_argument(
        "gpu", nargs="*", metavar="GPU", help="a name that this lists, or a TOML file with a GPU of your own"
    )
    _add(commands, "kernels", _kernels, "the kernel ladders: problem, rungs, parameters")
    _add_compare(_add(commands, "compare", _compare, "run every rung of a ladder on the same data, side by side"))
    profile = _add(commands, "profile", _profile, "run one kernel of a .cu, .py or .ptx file and tell all about it")
    _add_launch(profile)
    profile.add_argument(
        "--sample-blocks", type=int, metavar="N", help="run only N blocks and extrapolate the counters to the grid"
    )
    _add_launch(_add(commands, "check", _check, "run one kernel and find its races, wrong accesses and other faults"))
    return parser


def _add(commands: Any, name: str, command: Callable[..., Any], summary: str) -> argparse.ArgumentParser:
    parser = commands.add_parser(name, help=summary, description=summary[0].upper() + summary[1:] + ".")
    parser.set_defaults(command=command)
    parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
    return parser


def _add_compare(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("ladder", metavar="LADDER", help="a name that `gpulab kernels` lists")
    parser.add_argument("--gpu", help="a name that `gpulab gpus` lists, or a TOML file with a GPU of your own")
    parser.add_argument("--language", help="numba or cuda")
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE", help="a parameter of the ladder")


def _add_launch(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "file", metavar="FILE", help="CUDA C++ (.cu), Python with a @cuda.jit function (.py), PTX (.ptx)"
    )
    parser.add_argument("--kernel", help="its name; not needed if the file has only one")
    parser.add_argument("--grid", required=True, help="blocks: 4096, or 64x64 (x, y, z)")
    parser.add_argument("--block", required=True, help="threads of a block: 256, or 16x16")
    parser.add_argument(
        "--arg",
        action="append",
        default=[],
        metavar="SPEC",
        help="a kernel argument, in order: in|out|inout:DTYPE:SHAPE[:zeros|ones|random|arange], or DTYPE=VALUE",
    )
    parser.add_argument("--shared-bytes", type=int, default=0, metavar="N", help="dynamic shared memory of a block")
    parser.add_argument("--gpu", help="a name that `gpulab gpus` lists, or a TOML file with a GPU of your own")
    parser.add_argument(
        "--option", action="append", default=[], metavar="OPTION", help="an NVRTC option: --option=-std=c++20"
    )
    parser.add_argument("--save", metavar="FILE.npz", help="keep all arrays after the run as arg0, arg1, …")
