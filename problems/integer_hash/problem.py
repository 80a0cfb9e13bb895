"""A 32-bit hash of one tensor and a bucket (64-bit hash modulo a prime) of another: exact integer arithmetic.

Products wrap around, shifts must be logical although the dtypes are signed, and the remainder takes the
divisor's sign, as in Python and unlike in C.
"""

import torch
import torch.nn as nn

SIZE = 100000
BUCKETS = 10007

CASES = [
    {"name": "one element", "SIZE": 1},
    {"name": "prime", "SIZE": 997, "BUCKETS": 13},
    {"name": "block - 1", "SIZE": 1023, "BUCKETS": 1},
    {"name": "block + 1", "SIZE": 1025, "BUCKETS": 16},
]


class Model(nn.Module):
    def __init__(self, buckets):
        super().__init__()
        self.buckets = buckets

    def forward(self, narrow, wide):
        # `(x >> n) & mask` clears the copies of the sign bit: a logical shift.
        narrow = (narrow ^ ((narrow >> 16) & 0xFFFF)) * 0x45D9F3B
        narrow = (narrow ^ ((narrow >> 16) & 0xFFFF)) * 0x45D9F3B
        narrow = narrow ^ ((narrow >> 16) & 0xFFFF)
        wide = (wide ^ ((wide >> 31) & 0x1FFFFFFFF)) * 0x1CE4E5B9BF58476D
        wide = wide ^ ((wide >> 27) & 0x1FFFFFFFFF)
        return narrow, torch.remainder(wide, self.buckets)


def get_inputs():
    narrow = torch.randint(-(2**31), 2**31, (SIZE,), dtype=torch.int32)
    wide = torch.randint(-(2**62), 2**62, (SIZE,), dtype=torch.int64)
    return [narrow, wide]


def get_init_inputs():
    return [BUCKETS]
