"""Tilewright: from a PyTorch module to a Triton kernel that can be trusted."""

__version__ = "0.1.0"
