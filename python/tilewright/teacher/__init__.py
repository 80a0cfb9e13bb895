"""The offline teacher: a problem in, a readable Triton-only `ModelNew` out. No GPU, no network, no model.

A small graph compiler of its own (docs/design/teacher.md):

    capture   problem file, all its cases -> one graph of ATen operations, sizes as vectors over the cases
    lower     ATen -> element-wise terms over views, reductions, and templates (products, convolutions, attention, ...)
    group     which nodes share a kernel
    emit      kernels and host code as text
    teach     the whole, and the deliberate variants
"""
