"""What NVRTC complains of, in words for the person who wrote the kernel."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass

from gpulab.toolchain.headers import STANDARD_HEADERS

_SHOWN = 8
_NAME_MAP = "__nv_name_map"  # how NVRTC calls the place where it looks the kernel's name up


@dataclass(frozen=True)
class Complaint:
    """One error of the log: where, what, and the source line with its caret."""

    file: str
    line: int
    text: str
    excerpt: str


def complaints(log: str) -> list[Complaint]:
    """The errors of a log, in order, warnings left out."""
    found = []
    for block in re.split(r"\n(?=\S[^\n]*\(\d+\): )", log):
        match = re.match(r"(\S[^\n]*)\((\d+)\): (?:catastrophic )?error: ([^\n]*)\n?(.*)", block, re.S)
        if match:
            lines = re.sub(r"\n\s*\n.*", "", match[4], flags=re.S).splitlines()
            excerpt = "\n".join(line.rstrip() for line in lines)
            found.append(Complaint(match[1], int(match[2]), _plainer(match[3]), excerpt))
    return found


def _plainer(text: str) -> str:
    if "is considered a host" in text:
        what = "function" if "host function" in text else "variable"
        return (
            f"a host {what}: only device code is compiled here. Mark it __device__ (or __global__ for a kernel), "
            "or take it out of this source"
        )
    if re.match(r'cannot open source file "\w+"$', text):
        return f"{text}: a header of the C++ library for host code. Only device code is compiled here; take it out"
    unknown = re.match(r'identifier "(\w+)" is undefined$', text)
    header = _header_of(unknown[1]) if unknown else None
    return f"{text}. It comes with #include <{header}>" if header else text


def _header_of(name: str) -> str | None:
    """The C header that brings a name which the compiler of files, but not NVRTC, knows by itself."""
    declared = re.compile(rf"#define {name} |[ *]{name};")
    return next((header for header, text in STANDARD_HEADERS.items() if declared.search(text)), None)


def explain(log: str, source: str, name: str, label: str) -> str:
    """The message of a `CompileError`: the user's own line and caret first; a missing kernel in plain words.

    Parameters
    ----------
    log : str
        NVRTC's log, the source being called `label` in it.
    source, name : str
        As the user gave them.
    """
    found = complaints(log)
    of_the_source = [complaint for complaint in found if complaint.file != _NAME_MAP]
    if found and not of_the_source:
        return _about_the_name(found[0].text, source, name, label)
    if any("non-__global__" in complaint.text for complaint in found) and len(of_the_source) <= 1:
        return f'{label}: "{name}" is not a kernel. Put __global__ before it: __global__ void {kernel_base(name)}(…)'
    if not of_the_source:
        return f"The kernel {name} does not compile.\n{log.strip()}"
    told = [f"{each.file}, line {each.line}: {each.text}\n{each.excerpt}" for each in of_the_source[:_SHOWN]]
    more = len(of_the_source) - len(told)
    return "\n\n".join([*told, f"… and {more} more errors."] if more > 0 else told)


def _about_the_name(text: str, source: str, name: str, label: str) -> str:
    if "function template" in text:
        return f'{label}: "{name}" is a template. Name an instantiation of it, e.g. "{name}<float>".'
    if "overloaded" in text:
        return f'{label} has several functions named "{name}". Give the kernel a name of its own.'
    if "non-__global__" in text:
        return f'{label}: "{name}" is not a kernel. Put __global__ before it: __global__ void {kernel_base(name)}(…)'
    base, names = kernel_base(name), kernel_names(source)
    if "is undefined" not in text:
        return f'{label}: "{name}" does not name a kernel: {text}'
    if not names:
        return f'{label} has no kernel at all. A kernel is a function "__global__ void {base}(…)".'
    near = difflib.get_close_matches(base, names, 1)
    hint = f' Did you mean "{near[0]}"?' if near else ""
    return f'{label} has no kernel named "{name}"; it has {", ".join(dict.fromkeys(names))}.{hint}'


def kernel_base(name: str) -> str:
    """The plain name: ``scale`` of ``ns::scale<float>``."""
    return name.split("<")[0].split("::")[-1].strip() or "kernel"


def kernel_names(source: str) -> list[str]:
    """Names of the ``__global__`` functions that a source defines, as far as its text tells."""
    plain = re.sub(r"//[^\n]*|/\*.*?\*/", " ", source, flags=re.S)
    plain = re.sub(r"__launch_bounds__\s*\([^)]*\)", " ", plain)
    return re.findall(r"__global__[^;{}()]*?(\w+)\s*\(", plain)
