"""The Python side of a cell: one warm process (the zygote) that forks a confined child for every job.

`python -m tilewright.cell --control-fd N` is started by the Rust crate `tilewright-cell`, never by hand.
A handler is a module of this package named after its job kind, with `run(request: dict, scratch: str) -> dict`
and, where imports or caches are worth sharing between all children, `warm() -> None`.
"""
