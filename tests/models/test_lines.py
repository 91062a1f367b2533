"""Counters per source line: attribution, inlined code, and that lines add up to the whole."""

from __future__ import annotations

import pytest

from gpulab.gpus import gpu
from gpulab.models.lines import Line, lines, place_of
from gpulab.models.metrics import METRICS, Sources, metrics
from gpulab.models.run import KernelRun
from gpulab.models.traffic import traffic
from gpulab.ptx.syntax import Location

FILES = '.file 1 "mine.cu"\n.file 2 "header.h"\n'
BODY = """
    .loc 1 3 5
    ld.global.f32 %f1, [%rd1];
    ld.global.f32 %f2, [%rd1+4];
    .loc 1 4 5
    @%p1 bra DONE;
    .loc 2 99 1
    add.f32 %f3, %f1, %f2;
    .loc 1 3 9
    st.global.f32 [%rd2], %f3;
DONE:
    .loc 1 6 1
    ret;
"""
LOAD_SECTORS = "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum"


def sources_of(run: KernelRun) -> Sources:
    spec = gpu("A100")
    occupancy = run.occupancy(spec)
    return Sources(run, run.tally(), spec, occupancy, traffic(run, spec, occupancy))


@pytest.fixture
def sources(make_run) -> Sources:
    counts = {
        0: {"requests": 1, "sectors": 32},
        1: {"requests": 1, "sectors": 5},
        2: {"divergent_branches": 1},
        4: {"requests": 1, "sectors": 4},
    }
    return sources_of(make_run(BODY, counts, head=FILES))


@pytest.fixture
def found(sources: Sources) -> dict[tuple[str, int], Line]:
    texts = {("mine.cu", 3): "y[i] = x[i] + x[i + 1];"}
    listed = lines(sources, sources.run.program.function.instructions, "mine.cu", texts)
    return {(line.file, line.line): line for line in listed}


def test_each_line_has_its_own_counters(found: dict[tuple[str, int], Line]) -> None:
    line = found["mine.cu", 3]
    assert line.metrics[LOAD_SECTORS] == 37
    assert line.metrics["l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum"] == 4
    assert line.metrics["l1tex__average_t_sectors_per_request_pipe_lsu_mem_global_op_ld.ratio"] == 18.5
    assert found["mine.cu", 4].metrics["smsp__sass_branch_targets_threads_divergent.sum"] == 1
    assert found["mine.cu", 4].metrics[LOAD_SECTORS] == 0


def test_lines_are_in_order_with_their_text(found: dict[tuple[str, int], Line]) -> None:
    assert list(found) == [("header.h", 99), ("mine.cu", 3), ("mine.cu", 4), ("mine.cu", 6)]
    assert found["mine.cu", 3].text == "y[i] = x[i] + x[i + 1];"
    assert found["mine.cu", 4].text == ""


def test_lines_add_up_to_the_launch(sources: Sources, found: dict[tuple[str, int], Line]) -> None:
    whole = metrics(sources)
    sums = [
        m.name for m in METRICS.values() if m.how == "emulated" and m.name.endswith(".sum") and "local" not in m.name
    ]
    assert len(sums) > 30
    for name in sums:
        assert sum(line.metrics[name] for line in found.values()) == whole[name], name


def test_inlined_code_belongs_to_the_line_that_called_it() -> None:
    call = Location("mine.cu", 7)
    inner = Location("header.h", 50, inlined_at=Location("other.h", 8, inlined_at=call))
    assert place_of(inner, "mine.cu") == ("mine.cu", 7)
    assert place_of(inner, None) == ("header.h", 50)
    assert place_of(inner, "absent.cu") == ("mine.cu", 7)
    assert place_of(None, "mine.cu") is None


def test_several_launches_are_listed_together(make_run, sources: Sources) -> None:
    again = sources_of(make_run(BODY, {0: {"requests": 1, "sectors": 3}}, head=FILES))
    merged = Sources(
        sources.run, sources.tally.merged([sources.tally, again.tally]), sources.gpu, sources.occupancy, sources.traffic
    )
    instructions = (*sources.run.program.function.instructions, *again.run.program.function.instructions)
    line = next(line for line in lines(merged, instructions, "mine.cu") if line.line == 3)
    assert line.metrics[LOAD_SECTORS] == 32 + 5 + 3
    assert metrics(merged)["smsp__inst_executed.sum"] == 12
