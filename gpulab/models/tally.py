"""`Tally`: counters summed over classes of instructions, the common ground of all models."""

from __future__ import annotations

import copy
from collections.abc import Iterable, Sequence
from typing import Protocol

import numpy as np

from gpulab.counters import COPIED, PER_INSTRUCTION, Counters
from gpulab.ptx.matrix import Matrix

_TOTALS = ("blocks", "warps", "threads")


class FormLike(Protocol):
    """What the models need to know of an instruction's form (see `gpulab.ptx.opcodes`)."""

    @property
    def opcode(self) -> str: ...

    @property
    def type(self) -> str | None: ...

    @property
    def source_type(self) -> str | None: ...

    @property
    def mode(self) -> str | None: ...

    @property
    def kind(self) -> str: ...

    @property
    def space(self) -> str | None: ...

    @property
    def ftz(self) -> bool: ...

    @property
    def pipe(self) -> str: ...

    @property
    def flops(self) -> int: ...

    @property
    def access_bytes(self) -> int: ...

    @property
    def semantics(self) -> str | None: ...

    @property
    def scope(self) -> str | None: ...

    @property
    def cache(self) -> str | None: ...

    @property
    def matrix(self) -> Matrix | None: ...

    @property
    def is_copy(self) -> bool: ...


class Tally:
    """Sums of `Counters` by kind and state space.

    Parameters
    ----------
    forms : sequence of Form
        One for each instruction.
    counters : Counters
        Of one launch.
    """

    def __init__(self, forms: Sequence[FormLike], counters: Counters) -> None:
        self.forms = forms
        self.counters = counters
        self.kinds = np.array([_kind(form) for form in forms], object)
        self.pipes = np.array([form.pipe for form in forms], object)
        self.spaces = _spaces(forms, counters)
        self._masks: dict[tuple[tuple[str, ...], ...], np.ndarray] = {}
        self._only: np.ndarray | None = None
        self.flops = np.array([form.flops for form in forms], np.int64)

    def where(self, *, kinds: Iterable[str] = (), spaces: Iterable[str] = (), pipes: Iterable[str] = ()) -> np.ndarray:
        """Boolean mask, one for each instruction: those of any of the kinds, spaces and pipes; () means any."""
        key = (tuple(kinds), tuple(spaces), tuple(pipes))
        if key not in self._masks:
            mask = np.ones(len(self.forms), bool)
            for values, wanted in zip((self.kinds, self.spaces, self.pipes), key, strict=True):
                if wanted:
                    mask &= np.isin(values, wanted)
            self._masks[key] = mask
        return self._masks[key] if self._only is None else self._masks[key] & self._only

    def only(self, instructions: np.ndarray) -> Tally:
        """The same counters, but summed over these instructions (a boolean mask) alone."""
        part = copy.copy(self)
        part._only = instructions
        return part

    def total(
        self,
        counter: str,
        *,
        kinds: Iterable[str] = (),
        spaces: Iterable[str] = (),
        pipes: Iterable[str] = (),
    ) -> int:
        """Sum of one counter over the instructions that `where` selects, and the stores of asynchronous copies."""
        found = int(getattr(self.counters, counter)[self.where(kinds=kinds, spaces=spaces, pipes=pipes)].sum())
        stores = not kinds or "store" in kinds
        if counter in COPIED and stores and (not spaces or "shared" in spaces):
            found += int(getattr(self.counters, COPIED[counter])[self.where(pipes=pipes)].sum())
        return found

    def shared(self, counter: str) -> np.ndarray:
        """A counter of each instruction, of its accesses of shared memory alone."""
        own = np.where(self.where(spaces=("shared",)), getattr(self.counters, counter), 0)
        return own + np.where(self.where(), getattr(self.counters, COPIED[counter]), 0)

    @classmethod
    def merged(cls, parts: Sequence[Tally]) -> Tally:
        """One tally of several launches, their instructions one after the other."""
        if len(parts) == 1:
            return parts[0]
        arrays = {name: np.concatenate([getattr(part.counters, name) for part in parts]) for name in PER_INSTRUCTION}
        totals = {name: sum(getattr(part.counters, name) for part in parts) for name in _TOTALS}
        return cls([form for part in parts for form in part.forms], Counters(**arrays, **totals))

    def flop(self, pipes: Iterable[str] = ()) -> int:
        """Floating-point operations of all threads; an FMA is 2."""
        work = self.counters.thread_instructions_pred_on * self.flops
        return int(work[self.where(pipes=pipes)].sum())

    @property
    def warps(self) -> int:
        """Warps that were launched."""
        return self.counters.warps


def _kind(form: FormLike) -> str:
    """The kind, with jumps kept apart from calls and ends of a kernel."""
    return "control" if form.kind == "branch" and form.opcode not in ("bra", "brx") else form.kind


def _spaces(forms: Sequence[FormLike], counters: Counters) -> np.ndarray:
    """The state space of each instruction; a generic access belongs to the one that it was seen to reach."""
    spaces = np.array([form.space or "" for form in forms], object)
    generic = spaces == "generic"
    # Only requests to shared memory have no sectors. What never ran counts nowhere: call it global.
    spaces[generic] = "global"
    spaces[generic & (counters.sectors == 0) & (counters.requests > 0)] = "shared"
    return spaces
