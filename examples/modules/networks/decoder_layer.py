"""nn.TransformerDecoderLayer with a causal mask and memory."""

import torch
import torch.nn as nn

BATCH = 2
TIME = 6
MEMORY = 5
WIDTH = 8

CASES = [
    {"BATCH": 1, "TIME": 3, "MEMORY": 4, "WIDTH": 4},
]
REALISTIC = {"BATCH": 16, "TIME": 512, "MEMORY": 256, "WIDTH": 512}


TRAINING = False


class Model(nn.Module):
    def __init__(self, width, heads=2):
        super().__init__()
        self.layer = nn.TransformerDecoderLayer(width, heads, 3 * width, 0.0, "gelu", batch_first=True, norm_first=True)

    def forward(self, x, memory):
        mask = nn.Transformer.generate_square_subsequent_mask(x.shape[1], device=x.device)
        return self.layer(x, memory, tgt_mask=mask)


def get_inputs():
    return [torch.randn(BATCH, TIME, WIDTH), torch.randn(BATCH, MEMORY, WIDTH)]


def get_init_inputs():
    return [WIDTH]
