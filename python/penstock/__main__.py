"""``python -m penstock`` is the program penstock."""

import os
import subprocess
import sys

from ._base.program import find


def main() -> int:
    """Run the program with the arguments of this process."""
    path = find()
    if path is None:
        print("penstock: this package was installed without its program; install a wheel for this system, or build it (make build)", file=sys.stderr)
        return 1
    if sys.platform == "win32":
        return subprocess.run([path, *sys.argv[1:]], check=False).returncode
    os.execv(path, [path, *sys.argv[1:]])


if __name__ == "__main__":
    sys.exit(main())
