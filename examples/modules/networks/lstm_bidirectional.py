"""Two bidirectional LSTM layers with given start states, and a linear layer on the last step."""

import torch
import torch.nn as nn

BATCH = 3
TIME = 7
WIDTH = 5
HIDDEN = 8

CASES = [
    {"BATCH": 1, "TIME": 3, "WIDTH": 4, "HIDDEN": 4},
]
REALISTIC = {"BATCH": 10, "TIME": 512, "WIDTH": 128, "HIDDEN": 256}


class Model(nn.Module):
    def __init__(self, width, hidden):
        super().__init__()
        self.lstm = nn.LSTM(width, hidden, 2, batch_first=True, dropout=0.0, bidirectional=True)
        self.fc = nn.Linear(2 * hidden, 4)

    def forward(self, x, h0, c0):
        out, state = self.lstm(x, (h0, c0))
        return self.fc(out[:, -1, :]), state[1]


def get_inputs():
    return [torch.randn(BATCH, TIME, WIDTH), torch.randn(4, BATCH, HIDDEN), torch.randn(4, BATCH, HIDDEN)]


def get_init_inputs():
    return [WIDTH, HIDDEN]
