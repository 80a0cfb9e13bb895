"""Clusters of descriptors with soft assignments and two normalisations, as in NetVLAD, with a ghost cluster."""

import math

import torch
import torch.nn as nn
import torch.nn.functional as F

BATCH = 4
FEATURES = 20
WIDTH = 8

CASES = [
    {"BATCH": 3, "FEATURES": 11, "WIDTH": 6},
]
REALISTIC = {"BATCH": 2048, "FEATURES": 100, "WIDTH": 512}


class Model(nn.Module):
    def __init__(self, width, clusters=5, ghosts=2):
        super().__init__()
        self.clusters, self.width = clusters, width
        self.assign = nn.Parameter(torch.randn(width, clusters + ghosts) / math.sqrt(width))
        self.norm = nn.BatchNorm1d(clusters + ghosts)
        self.centres = nn.Parameter(torch.randn(1, width, clusters) / math.sqrt(width))

    def forward(self, x):
        count = x.size(1)
        flat = x.view(-1, self.width)
        share = F.softmax(self.norm(torch.matmul(flat, self.assign)), dim=1)[:, : self.clusters]
        share = share.view(-1, count, self.clusters)
        total = torch.sum(share, dim=1, keepdim=True) * self.centres
        vlad = torch.matmul(share.transpose(1, 2), x.view(-1, count, self.width)).transpose(1, 2) - total
        vlad = F.normalize(vlad)
        return F.normalize(vlad.reshape(-1, self.clusters * self.width))


def get_inputs():
    return [torch.randn(BATCH, FEATURES, WIDTH)]


def get_init_inputs():
    return [WIDTH]
