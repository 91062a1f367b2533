"""What the 64 bits of an `mbarrier` are here (PTX leaves them to the implementation; PTX ISA 9.7.13.15).

====== ===================================================================================
bits   meaning
====== ===================================================================================
0-19   arrivals that the current phase still waits for
20-39  arrivals that each phase after it expects
40-60  bytes of transactions that the current phase still waits for, in two's complement
62     1 while the object is initialized
63     parity of the current phase
====== ===================================================================================

A phase is complete when it waits for nothing more. The state that an arrival returns is the object as it was before; of it,
a wait reads the parity, and `mbarrier.pending_count` the arrivals.
"""

from __future__ import annotations

from gpulab.ptx.opcodes import Form
from gpulab.ptx.syntax import Address, Instruction, Operand

COUNT_BITS, TRANSACTION_BITS = 20, 21
EXPECTED_AT, TRANSACTIONS_AT, VALID_AT, PHASE_AT = 20, 40, 62, 63
MOST_ARRIVALS = (1 << COUNT_BITS) - 1
TRANSACTION_MASK = (1 << TRANSACTION_BITS) - 1
ARRIVALS = ("arrive", "arrive_drop")
WAITS = ("test_wait", "try_wait")


def amounts(instruction: Instruction, form: Form) -> tuple[Operand | int, Operand | int]:
    """How many arrivals an instruction makes, and how many bytes it adds to what the phase waits for."""
    last = instruction.operands[-1]
    extra: Operand | int = 1 if isinstance(last, Address) else last
    if form.mode in ("expect_tx", "complete_tx"):
        return 0, extra
    return (1, extra) if form.operation == "expect_tx" else (extra, 0)
