"""A small VGG: pairs of convolutions, pooling, fully connected layers with dropout in evaluation mode."""

import torch
import torch.nn as nn

BATCH = 2
WIDTH = 4
SIZE = 16

CASES = [
    {"BATCH": 1, "WIDTH": 3, "SIZE": 16},
]
REALISTIC = {"BATCH": 10, "WIDTH": 64, "SIZE": 224}


TRAINING = False


class Model(nn.Module):
    def __init__(self, width, size):
        super().__init__()
        layers, inputs = [], 3
        for step in ("a", "a", "pool", "b", "b", "pool"):
            if step == "pool":
                layers.append(nn.MaxPool2d(kernel_size=2, stride=2))
                continue
            outputs = width if step == "a" else 2 * width
            layers += [nn.Conv2d(inputs, outputs, kernel_size=3, padding=1), nn.ReLU(inplace=True)]
            inputs = outputs
        self.features = nn.Sequential(*layers)
        self.classifier = nn.Sequential(
            nn.Linear(inputs * (size // 4) ** 2, 24), nn.ReLU(inplace=True), nn.Dropout(0.5), nn.Linear(24, 10)
        )

    def forward(self, x):
        x = self.features(x)
        return self.classifier(torch.flatten(x, 1))


def get_inputs():
    return [torch.randn(BATCH, 3, SIZE, SIZE)]


def get_init_inputs():
    return [WIDTH, SIZE]
