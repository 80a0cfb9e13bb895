"""Messages between the zygote, its children and the Rust side. All are JSON objects.

Control socket (SOCK_SEQPACKET, zygote <-> Rust): one message a packet, descriptors attached by SCM_RIGHTS.
Job socket (SOCK_STREAM, child <-> Rust): a message is its length (u32, little endian) and then its text.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from typing import Any

MAX_PACKET = 128 * 1024
MAX_DESCRIPTORS = 4


def send_packet(control: socket.socket, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
    """Send one control message with open descriptors."""
    socket.send_fds(control, [json.dumps(message).encode()], list(descriptors))


def receive_packet(control: socket.socket) -> tuple[dict[str, Any], list[int]] | None:
    """Receive one control message and its descriptors; None when the other end has closed."""
    data, descriptors, _, _ = socket.recv_fds(control, MAX_PACKET, MAX_DESCRIPTORS, socket.MSG_CMSG_CLOEXEC)
    if not data:
        return None
    return json.loads(data), descriptors


def send_frame(job_fd: int, message: dict[str, Any], descriptors: tuple[int, ...] = ()) -> None:
    """Send one message on the job socket; descriptors travel with its first byte."""
    # Half a character in a text of a candidate, which JSON elsewhere does not take, becomes a question mark.
    text = json.dumps(message, ensure_ascii=False).encode(errors="replace")
    frame = memoryview(struct.pack("<I", len(text)) + text)
    if descriptors:
        with socket.socket(fileno=os.dup(job_fd)) as job:
            frame = frame[socket.send_fds(job, [frame], list(descriptors)) :]
    while frame:
        frame = frame[os.write(job_fd, frame) :]


def receive_frame(job_fd: int) -> dict[str, Any]:
    """Receive one message on the job socket; EOFError when the other end has closed."""
    (length,) = struct.unpack("<I", _read_exactly(job_fd, 4))
    return json.loads(_read_exactly(job_fd, length))


def _read_exactly(fd: int, length: int) -> bytearray:
    data = bytearray()
    while len(data) < length:
        piece = os.read(fd, min(length - len(data), 1 << 20))
        if not piece:
            raise EOFError("the job socket was closed")
        data += piece
    return data
