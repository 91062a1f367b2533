"""What the parts of a shadow helper share: the access, and the lane of it that is looked at."""

from __future__ import annotations

from gpulab.emulator.checking.layout import (
    KINDS,
    NO_FLAG,
    NO_READ,
    SITE_SHIFT,
    SITES,
    STRENGTH_AT,
    STRENGTH_SHIFT,
    STRONG,
    VOLATILE,
    ledger_word,
    own,
    own_place,
)
from gpulab.emulator.layout import ATOMIC, INSTRUCTION_SHIFT, STORE, WARP, get
from gpulab.emulator.llvm.ir import Builder, Value, constant


class Visit:
    """What all lanes of an access share, and the lane that is looked at."""

    def __init__(self, b: Builder, space: str) -> None:
        self.b, self.space = b, space
        self.context = b.argument("context", "ptr")
        self.structure = own(b, self.context)
        self.info = b.argument("info", "i64")
        self.site = b.lshr(self.info, INSTRUCTION_SHIFT)
        self.size = b.and_(self.info, 255)
        self.stores = b.is_("ne", b.and_(self.info, STORE), 0)
        self.atomic = b.is_("ne", b.and_(self.info, ATOMIC), 0)
        plain_store = b.and_(self.stores, b.not_(self.atomic))
        reads_nothing = b.or_(plain_store, b.is_("ne", b.and_(self.info, NO_READ), 0))
        self.reads = b.not_(reads_nothing)
        strength = b.and_(b.lshr(self.info, STRENGTH_AT), 3)
        self.strong = b.is_("eq", strength, STRONG)
        # The barrier of the grid orders by itself; to see it is to see no flag.
        first = b.count_trailing_zeros(b.or_(b.argument("mask", "i32"), constant("i32", 1 << 31)))
        address = b.load("i64", b.offset(b.argument("addresses", "ptr"), b.mul(b.resize(first, "i64"), 8)))
        is_flag = b.compare("ne", address, ledger_word(b, self.structure, "grid_barrier"))
        is_flag = b.and_(is_flag, b.is_("eq", b.and_(self.info, NO_FLAG), 0))
        with b.if_(b.and_(b.and_(self.reads, is_flag), b.is_("uge", strength, VOLATILE))):
            b.store(ledger_word(b, self.structure, "time"), own_place(b, self.structure, "observed"))
        known = b.intrinsic("llvm.umin", self.site, constant("i64", SITES - 1))
        self.who = b.or_(b.shl(strength, STRENGTH_SHIFT), b.shl(known, SITE_SHIFT))
        self.first = b.mul(get(b, self.context, "warp"), WARP)
        self.lane = self.address = self.offset = self.host = constant("i64", 0)

    @property
    def thread(self) -> Value:
        """The linear number of the lane's thread in its block."""
        return self.b.add(self.first, self.lane)

    def note(self, kind: str | Value, other: Value | None = None, same_block: Value | None = None) -> None:
        """Enter a finding of the lane into the table."""
        b, zero = self.b, constant("i64", 0)
        code = constant("i64", KINDS[kind]) if isinstance(kind, str) else kind
        record = zero if other is None else other
        site = b.and_(b.lshr(record, SITE_SHIFT), SITES - 1)
        together = zero if same_block is None else same_block
        b.call("note", None, self.context, code, self.site, site, self.thread, self.address, record, together)
