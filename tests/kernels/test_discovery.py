"""Ladders are found by themselves, and listing them costs nothing."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import gpulab
from gpulab.errors import GpulabError

LADDERS = {
    "copy": ["strided", "aos", "soa", "offset", "coalesced"],
    "matmul": ["naive", "coalesced", "tiled"],
    "reduction": ["interleaved", "sequential", "shuffle"],
    "transpose": ["naive", "tiled", "padded"],
}


def test_the_four_ladders_and_their_rungs() -> None:
    found = {ladder.name: [rung.name for rung in ladder.rungs] for ladder in gpulab.kernels()}
    assert {name: found[name] for name in LADDERS} == LADDERS


def test_a_list_of_ladders_can_be_read() -> None:
    assert repr(gpulab.kernels.ladder("reduction")) == (
        "<ladder reduction: Sum n float32. Rungs: interleaved, sequential, shuffle>"
    )


def test_the_package_is_the_function() -> None:
    from gpulab import kernels

    assert kernels() == gpulab.kernels() and kernels.ladder("copy") is gpulab.kernels.copying.LADDER


def test_a_near_name_is_suggested() -> None:
    with pytest.raises(GpulabError, match="no ladder 'transpos'. Did you mean 'transpose'"):
        gpulab.kernels.ladder("transpos")
    with pytest.raises(GpulabError, match="The ladders are: copy, matmul"):
        gpulab.kernels.ladder("xyz")


def test_listing_needs_no_compiler() -> None:
    heavy = {"numba", "llvmlite", "cuda.bindings"}
    code = f"import gpulab, sys; gpulab.kernels(); print(sorted({heavy} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@pytest.mark.parametrize("name", LADDERS)
def test_json_can_be_written_and_each_claim_names_an_earlier_rung(name: str) -> None:
    record = json.loads(json.dumps(gpulab.kernels.ladder(name).to_json()))
    names = [rung["name"] for rung in record["rungs"]]
    assert record["rungs"][0]["claim"] is None
    for position, rung in enumerate(record["rungs"][1:], 1):
        assert rung["claim"]["against"] in names[:position]
        assert rung["languages"] == ["numba", "cuda"] and len(rung["paragraph"]) > 100
    for parameter in record["parameters"].values():
        assert "default" in parameter and ("values" in parameter) != ("range" in parameter)


@pytest.mark.parametrize("ladder", gpulab.kernels(), ids=lambda ladder: ladder.name)
def test_every_rung_has_its_kernel_in_both_files(ladder: gpulab.kernels.Ladder) -> None:
    text = ladder.cuda_file.read_text(encoding="utf-8")
    module = sys.modules[ladder.module]
    for rung in ladder.rungs:
        for step in rung.steps(ladder.defaults()):
            kernel = step.kernel or rung.name
            assert ("numba" in rung.languages) == hasattr(module, kernel)
            assert ("cuda" in rung.languages) == (f"__global__ void {kernel}(" in text)
