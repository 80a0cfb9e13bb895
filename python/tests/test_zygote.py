"""The zygote's own memory."""

from __future__ import annotations

import ctypes
import hashlib
import os

from tilewright.cell import zygote
from trace_helper import in_child


def test_gathering_changes_nothing_that_memory_holds():
    def gathered() -> list[bool]:
        held = bytearray(os.urandom(4 * zygote.HUGE))
        before = hashlib.sha256(held).digest()
        steps = sum(1 for _ in zygote.gather())
        return [hashlib.sha256(held).digest() == before, steps > 0]

    assert in_child(gathered) == [True, True]


def test_private_memory_is_whole_huge_pages_that_can_be_written():
    held = bytearray(8 * zygote.HUGE)
    spans = list(zygote.private_memory())
    assert all(start % zygote.HUGE == end % zygote.HUGE == 0 and start < end for start, end in spans)
    assert sum(end - start for start, end in spans) >= 7 * zygote.HUGE
    assert len(held) == 8 * zygote.HUGE


def test_what_is_allocated_after_using_up_lies_at_the_end_of_the_heap():
    def places() -> list[bool]:
        libc = ctypes.CDLL(None)
        libc.malloc.argtypes, libc.malloc.restype = (ctypes.c_size_t,), ctypes.c_void_p
        libc.free.argtypes, libc.free.restype = (ctypes.c_void_p,), None
        # Every other piece lies free.
        pieces = [libc.malloc(2048) for _ in range(2000)]
        for piece in pieces[::2]:
            libc.free(piece)
        zygote.use_up()
        again = [libc.malloc(2048) for _ in range(100)]
        return [place > max(pieces) - zygote.FRESH for place in again]

    assert all(in_child(places))
