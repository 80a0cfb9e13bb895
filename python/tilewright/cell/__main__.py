"""Entry point of the zygote: `python -m tilewright.cell --control-fd N`."""

from __future__ import annotations

import argparse

from tilewright.cell import zygote


def main() -> None:
    """Serve jobs until the other end of the control socket closes."""
    parser = argparse.ArgumentParser(prog="tilewright.cell", description=__doc__)
    parser.add_argument("--control-fd", type=int, required=True, help="an open SOCK_SEQPACKET unix socket")
    parser.add_argument("--test-kind", action="append", default=[], metavar="KIND=FILE", help="a handler for tests")
    parser.add_argument("--preload", metavar="FILE", help="a library to load before all others")
    arguments = parser.parse_args()
    test_kinds = dict(kind.split("=", 1) for kind in arguments.test_kind)
    zygote.serve(arguments.control_fd, test_kinds, arguments.preload)


if __name__ == "__main__":
    main()
