"""`python -m tilewright.cell.tryout CONFINEMENT`: confine a child as a job would be, and print what it got.

For `tilewright doctor`. Imports neither torch nor Triton.
"""

from __future__ import annotations

import json
import os
import sys

from tilewright import _core
from tilewright.cell import zygote


def main(confinement: str) -> int:
    """Confine a forked child; give its exit status."""
    wanted = json.loads(confinement)
    wanted["read_paths"] = zygote.read_paths()
    zygote.take_rights()
    _core.enter_pid_namespace()
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            print(_core.confine(json.dumps(wanted)), flush=True)
            status = 0
        except _core.ConfineError as error:
            print(error, file=sys.stderr, flush=True)
        finally:
            os._exit(status)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
