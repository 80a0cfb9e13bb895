"""3-d convolution that flips the kernel along the depth."""

import torch
import torch.nn as nn
import triton
import triton.language as tl


@triton.jit
def conv3d_kernel(
    x_ptr,
    weight_ptr,
    bias_ptr,
    out_ptr,
    channels_in,
    channels_out,
    depth_in,
    height_in,
    width_in,
    depth_out,
    height_out,
    width_out,
    padding,
    KERNEL: tl.constexpr,
    BLOCK: tl.constexpr,
):
    voxels_out = depth_out * height_out * width_out
    voxel = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    output = tl.program_id(1)
    sample = tl.program_id(2).to(tl.int64)
    front = voxel // (height_out * width_out) - padding
    top = (voxel // width_out) % height_out - padding
    left = voxel % width_out - padding
    valid = voxel < voxels_out

    acc = tl.zeros((BLOCK,), dtype=tl.float32) + tl.load(bias_ptr + output)
    for channel in range(channels_in):
        volume_ptr = x_ptr + (sample * channels_in + channel) * depth_in * height_in * width_in
        taps_ptr = weight_ptr + (output * channels_in + channel) * KERNEL * KERNEL * KERNEL
        for tap in range(KERNEL * KERNEL * KERNEL):
            d = front + KERNEL - 1 - tap // (KERNEL * KERNEL)
            h = top + (tap // KERNEL) % KERNEL
            w = left + tap % KERNEL
            inside = (d >= 0) & (d < depth_in) & (h >= 0) & (h < height_in) & (w >= 0) & (w < width_in)
            x = tl.load(volume_ptr + (d * height_in + h) * width_in + w, mask=valid & inside, other=0.0)
            acc += x * tl.load(taps_ptr + tap)

    tl.store(out_ptr + (sample * channels_out + output) * voxels_out + voxel, acc, mask=valid)


class ModelNew(nn.Module):
    def __init__(self, channels_in, channels_out, kernel, padding):
        super().__init__()
        self.conv = nn.Conv3d(channels_in, channels_out, kernel, padding=padding)
        self.kernel = kernel
        self.padding = padding

    def forward(self, x):
        x = x.contiguous()
        batch, channels_in, *size_in = x.shape
        channels_out = self.conv.weight.shape[0]
        size_out = [size + 2 * self.padding - self.kernel + 1 for size in size_in]
        out = torch.empty((batch, channels_out, *size_out), dtype=x.dtype, device=x.device)
        block = 256
        grid = (triton.cdiv(size_out[0] * size_out[1] * size_out[2], block), channels_out, batch)
        conv3d_kernel[grid](
            x,
            self.conv.weight,
            self.conv.bias,
            out,
            channels_in,
            channels_out,
            *size_in,
            *size_out,
            self.padding,
            KERNEL=self.kernel,
            BLOCK=block,
        )
        return out
