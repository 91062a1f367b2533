"""Instructions that are left out on purpose end in one error with their name, their line and what to use instead."""

from __future__ import annotations

import pytest

from gpulab.emulator import load
from gpulab.errors import UnsupportedInstruction
from gpulab.ptx import parse

HEADER = ".version 8.8\n.target sm_100a\n.address_size 64\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("tex.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", "Textures and surfaces .* ordinary array"),
        ("tld4.r.2d.v4.f32.f32 {%f1, %f2, %f3, %f4}, [%rd1, {%f5, %f6}];", "Textures"),
        ("txq.width.b32 %r1, [%rd1];", "Textures"),
        ("suld.b.2d.b32.trap {%r1}, [%rd1, {%r2, %r3}];", "Textures and surfaces"),
        ("sust.b.1d.b32.trap [%rd1, {%r2}], {%r3};", "Textures and surfaces"),
        ("wgmma.fence.sync.aligned;", "Hopper-only .*mma.sync"),
        ("wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {%f1, %f2, %f3, %f4}, %rd1, %rd2, %p1, 1, 1, 0, 0;", "Hopper-only"),
        ("tcgen05.alloc.cta_group::1.sync.aligned.shared::cta.b32 [%r1], 32;", "Blackwell-only .*mma.sync"),
        ("cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%r1], [%rd1], 16, [%r2];", "tensor memory accelerator"),
        ("cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%r1], [%rd1, {%r3, %r4}], [%r2];", "since Hopper"),
        ("cp.reduce.async.bulk.global.shared::cta.bulk_group.add.u32 [%rd1], [%r1], 16;", "since Hopper"),
        ("mapa.shared::cluster.u32 %r1, %r2, 1;", "clusters of blocks"),
        ("barrier.cluster.arrive.aligned;", "clusters of blocks"),
        ("ld.shared::cluster.u32 %r1, [%r2];", "clusters of blocks"),
        ("multimem.red.relaxed.sys.global.add.u32 [%rd1], %r1;", "several GPUs"),
        ("vadd4.s32.s32.s32 %r1, %r2, %r3, %r4;", "Video instructions"),
    ],
)  # fmt: skip
def test_what_is_left_out_is_named_with_what_to_use(text: str, words: str) -> None:
    module = (
        HEADER
        + ".visible .entry k() {\n.reg .b32 %r<9>; .reg .b64 %rd<9>; .reg .f32 %f<9>; .reg .pred %p<3>;\n"
        + text
        + "\nret; }"
    )
    with pytest.raises(UnsupportedInstruction, match=words) as caught:
        load(parse(module), "k")
    assert caught.value.line == 6
    assert f"PTX line 6: the emulator does not support '{text.split()[0].rstrip(';')}'" in str(caught.value)
