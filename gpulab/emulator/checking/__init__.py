"""The check: what a kernel does wrong, found while it runs.

A variant of the compiled code tells every access and every synchronization to native helpers (`hooks` lowers the calls).
They keep a shadow of memory: for each piece of it who stored it last and who read it since, and for each byte whether it was
ever stored (`native_shadow`); and what happens before what: between the lanes of a warp, the warps of a block, and blocks
(`native_order`). What they find goes into a small table (`native_table`), which `run` reads and `words` says to a learner.
"""
