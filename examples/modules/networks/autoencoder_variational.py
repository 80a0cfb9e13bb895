"""The deterministic part of a variational autoencoder: moments, decoding of the mean, divergence."""

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 6
WIDTH_IN = 40
WIDTH = 24
LATENT = 5

CASES = [
    {"BATCH": 1, "WIDTH_IN": 7, "WIDTH": 9, "LATENT": 2},
]
REALISTIC = {"BATCH": 4096, "WIDTH_IN": 1024, "WIDTH": 2048, "LATENT": 128}


class Model(nn.Module):
    def __init__(self, width_in, width, latent):
        super().__init__()
        self.encoder = nn.Linear(width_in, width)
        self.mean = nn.Linear(width, latent)
        self.log_variance = nn.Linear(width, latent)
        self.decoder = nn.Linear(latent, width)
        self.out = nn.Linear(width, width_in)

    def forward(self, x):
        h = F.relu(self.encoder(x))
        mean, log_variance = self.mean(h), self.log_variance(h)
        decoded = torch.sigmoid(self.out(F.relu(self.decoder(mean))))
        divergence = -0.5 * torch.sum(1 + log_variance - mean.pow(2) - log_variance.exp(), dim=1)
        return decoded, divergence


def get_inputs():
    return [torch.rand(BATCH, WIDTH_IN)]


def get_init_inputs():
    return [WIDTH_IN, WIDTH, LATENT]
