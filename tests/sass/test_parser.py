"""Reading nvdisasm's text: operands, places with their callers, blocks, loops."""

from __future__ import annotations

from gpulab.ptx.syntax import Location
from gpulab.sass import Code, parse

TEXT = """
//--------------------- .text.k                   --------------------------
        .global         k
k:
.text.k:
	//## File "k.cu", line 5
        /*0000*/                   MOV R1, c[0x0][0x28] ;
        /*0010*/               @P0 EXIT ;
.L_x_1:
	//## File "k.cu", line 2 inlined at "k.cu", line 4
	//## File "k.cu", line 4 inlined at "k.cu", line 7
	//## File "k.cu", line 7
        /*0020*/                   LDS.128 R8, [R17+0x10] ;
        /*0030*/              @!P1 BRA `(.L_x_2) ;
        /*0040*/                   CALL.REL.NOINC `($__internal_0_$div) ;
.L_x_2:
	//## File "k.cu", line 9
        /*0050*/               @P2 BRA P3, `(.L_x_1) ;
        /*0060*/                   IADD3 R2, P1, P2, R4.reuse, -0x1, RZ ;
        /*0070*/                   STG.E desc[UR4][R2.64+0x4], R5 ;
        /*0080*/                   EXIT ;
.L_x_3:
        /*0090*/                   BRA `(.L_x_3);
        /*00a0*/                   NOP;
        .weak           $__internal_0_$div
$__internal_0_$div:
        /*00b0*/                   FMUL R1, R1, 2 ;
        /*00c0*/                   RET.REL.NODEC R4 `(k) ;
"""


def code() -> Code:
    return parse(TEXT)


def test_what_nothing_leads_to_is_left_out() -> None:
    assert [instruction.address for instruction in code().instructions] == [*range(0, 0x90, 0x10), 0xB0, 0xC0]


def test_an_instruction_and_its_operands() -> None:
    by_address = {instruction.address: instruction for instruction in code().instructions}
    load, store, add = by_address[0x20], by_address[0x70], by_address[0x60]
    assert (load.opcode, load.modifiers, load.operands, load.guard) == ("LDS", ("128",), ("R8", "[R17+0x10]"), "")
    assert store.operands == ("desc[UR4][R2.64+0x4]", "R5")
    assert add.operands == ("R2", "P1", "P2", "R4.reuse", "-0x1", "RZ")
    assert (by_address[0x30].guard, by_address[0x30].text) == ("@!P1", "@!P1 BRA `(.L_x_2)")


def test_places_have_their_callers() -> None:
    by_address = {instruction.address: instruction for instruction in code().instructions}
    assert by_address[0x10].location == Location("k.cu", 5)
    outer = Location("k.cu", 4, inlined_at=Location("k.cu", 7))
    assert by_address[0x20].location == Location("k.cu", 2, inlined_at=outer)
    assert by_address[0x50].location == Location("k.cu", 9)


def test_blocks_and_loops() -> None:
    found = code()
    starts = [found.instructions[block.start].address for block in found.blocks]
    assert starts == [0x00, 0x20, 0x40, 0x50, 0x60, 0xB0]
    assert [block.successors for block in found.blocks] == [(1,), (3, 2), (3,), (1, 4), (), ()]
    assert [block.calls for block in found.blocks] == [None, None, 5, None, None, None]
    assert [(loop.head, loop.members, loop.parent) for loop in found.loops] == [(1, {1, 2, 3}, None)]


def test_blocks_that_surely_run_equally_often() -> None:
    # The first block may be left by an exit, the last runs once while the loop repeats. The call is on a slow way.
    found = code()
    assert found.slow == {2}
    assert (found.alike[0], found.alike[1], found.alike[3], found.alike[4]) == (0, 1, 1, 4)
    assert found.chains == ((0,), (1, 3), (4,), (5,))


def test_a_call_of_a_label_is_a_jump_out() -> None:
    text = """
.L_x_1:
        /*0000*/               @P0 CALL.REL.NOINC `(.L_x_2) ;
        /*0010*/                   BRA `(.L_x_1) ;
.L_x_2:
        /*0020*/                   EXIT ;
"""
    assert [(block.successors, block.calls) for block in parse(text).blocks] == [
        ((2, 1), None),
        ((0,), None),
        ((), None),
    ]


def test_jump_tables_and_empty_text() -> None:
    table = """
.L_x_9:
        /*0000*/                   BRX R6 -0x470    (*"BRANCH_TARGETS .L_x_1,.L_x_2"*);
.L_x_1:
        /*0010*/                   EXIT ;
.L_x_2:
        /*0020*/                   BRA `(.L_x_1) ;
"""
    assert [block.successors for block in parse(table).blocks] == [(1, 2), (), (1,)]
    assert parse("no code here").instructions == ()
