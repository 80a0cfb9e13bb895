"""LeNet-5."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 3
CLASSES = 10

CASES = [
    {"BATCH": 1, "CLASSES": 3},
]
REALISTIC = {"BATCH": 4096, "CLASSES": 20}


class Model(nn.Module):
    def __init__(self, classes):
        super().__init__()
        self.conv1 = nn.Conv2d(1, 6, 5)
        self.conv2 = nn.Conv2d(6, 16, 5)
        self.fc1 = nn.Linear(400, 120)
        self.fc2 = nn.Linear(120, 84)
        self.fc3 = nn.Linear(84, classes)

    def forward(self, x):
        x = F.max_pool2d(F.relu(self.conv1(x)), 2)
        x = F.max_pool2d(F.relu(self.conv2(x)), 2)
        x = torch.flatten(x, 1)
        x = F.relu(self.fc1(x))
        x = F.relu(self.fc2(x))
        return self.fc3(x)


def get_inputs():
    return [torch.randn(BATCH, 1, 32, 32)]


def get_init_inputs():
    return [CLASSES]
