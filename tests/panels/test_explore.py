"""`explore` shows what `compare` gives, for the ladder's own parameters, rungs and GPUs."""

from __future__ import annotations

import re

import pytest

import gpulab
from gpulab.errors import GpulabError
from gpulab.panels import ladder as ladder_panel
from gpulab.units import count_text, seconds_text

LOADS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"
N = 2**16


@pytest.fixture
def panel():
    return gpulab.explore("copy", gpu="A100", n=N)


def control(panel, name):
    """The slider or choice of this name."""
    for child in panel.children[1].children:
        widget = child.children[0] if hasattr(child, "children") else child
        if widget.description == name:
            return widget
    raise KeyError(name)


def cells(panel, row):
    """The first line of each cell in a row of the table."""
    body = re.search(rf'<th scope="row">{row}<br>.*?</tr>', panel.table.value)[0]
    return [value.strip() for value in re.findall(r"<td[^>]*>([^<]*)", body)]


def labels(panel):
    return re.findall(r'aria-label="([^"]*)"', panel.pictures.value)


def test_it_has_a_slider_for_each_parameter_and_choices_for_rung_and_gpu(panel):
    assert [control(panel, name).value for name in ("n", "block", "stride", "offset")] == [N, 256, 32, 1]
    assert control(panel, "rung").options == ("strided", "aos", "soa", "offset", "coalesced")
    assert set(control(panel, "GPU").options) >= {"T4", "A100", "H100"}


def test_counters_and_times_are_those_of_compare(panel):
    control(panel, "stride").value = 4
    rungs = gpulab.compare("copy", gpu="A100", n=N, stride=4).rungs
    assert cells(panel, "load sectors") == [count_text(rung.profile.metrics[LOADS]) for rung in rungs]
    assert cells(panel, "time") == [seconds_text(rung.profile.time.seconds) for rung in rungs]
    assert cells(panel, "load sectors")[0] == "32,768"  # 2,048 requests of 16 sectors: lanes 16 bytes apart


def test_the_status_line_follows_stride_and_rung(panel):
    assert "32 sectors per load request" in panel.view.status
    control(panel, "stride").value = 2
    assert "strided at n 65,536, block 256, stride 2, offset 1:" in panel.view.status
    assert "8 sectors per load request" in panel.view.status
    control(panel, "rung").value = "offset"
    assert "offset at n 65,536" in panel.view.status
    assert "5 sectors per load request" in panel.view.status


def test_the_status_line_names_stores_where_they_are_worse_than_loads():
    status = gpulab.explore("transpose", gpu="A100", n=64).view.status
    assert "4 sectors per load request, 32 sectors per store request" in status


def test_block_size_redraws_the_occupancy(panel):
    control(panel, "block").value = 32
    assert "32 threads: 50%, 32 blocks per SM, limited by blocks" in labels(panel)[1]
    assert "occupancy 50%" in panel.view.status


def test_problem_size_and_gpu_redraw_the_roofline(panel):
    before = labels(panel)[0]
    control(panel, "n").value = 2**17
    larger = labels(panel)[0]
    assert larger != before
    gpu = control(panel, "GPU")
    gpu.value = dict(gpu.options)["T4"]
    assert labels(panel)[0].startswith("Roofline, T4: DRAM 320 GB/s")


def test_what_if_hardware_is_a_choice_of_its_own():
    wide = gpulab.gpu("A100").replace(name="wide A100", dram_bandwidth_gb_per_s=3000)
    panel = gpulab.explore("copy", gpu=wide, n=N)
    assert control(panel, "GPU").value is wide
    assert "DRAM 3,000 GB/s" in labels(panel)[0]


def test_the_gpu_is_that_of_the_device_by_default():
    gpulab.use("H100")
    try:
        assert control(gpulab.explore("copy", n=2**14), "GPU").value.name == "H100"
    finally:
        gpulab.use("A100")


@pytest.mark.parametrize(("ladder", "parameters"), [("transpose", {"n": 64}), ("reduction", {"n": 2**12})])
def test_every_ladder_has_a_panel(ladder, parameters):
    panel = gpulab.explore(ladder, gpu="A100", **parameters)
    assert "Roofline, A100" in labels(panel)[0]
    assert panel.view.status


def test_other_languages():
    panel = gpulab.explore("copy", gpu="A100", language="cuda", n=2**14)
    rungs = gpulab.compare("copy", gpu="A100", language="cuda", n=2**14).rungs
    name = "smsp__inst_executed.sum"
    assert cells(panel, "warp instructions") == [count_text(rung.profile.metrics[name]) for rung in rungs]


def test_a_parameter_that_does_not_exist_is_refused_where_the_panel_is_made():
    with pytest.raises(GpulabError, match="'pitch' came"):
        gpulab.explore("copy", pitch=3)


def test_a_rung_that_cannot_run_says_why_inside_the_panel(panel, monkeypatch):
    real = ladder_panel.view_of

    def broken(comparison, chosen):
        object.__setattr__(comparison.rungs[1], "profile", None)
        object.__setattr__(comparison.rungs[1], "message", "out-of-bounds in line 7")
        return real(comparison, chosen)

    monkeypatch.setattr(ladder_panel, "view_of", broken)
    control(panel, "stride").value = 3
    assert len(cells(panel, "load sectors")) == 4  # the others are still shown
    control(panel, "rung").value = "aos"
    assert "aos did not run. out-of-bounds in line 7" in panel.error.value
    assert len(cells(panel, "load sectors")) == 4
