"""Runs the environment's interpreter with every package importable, in the folder Bazel was called from.

The arguments are the interpreter's: a script, `-c code`, `-m module`, or none for an interactive session.
"""

import os
import sys


def main() -> None:
    folder = os.environ.get("BUILD_WORKING_DIRECTORY", os.getcwd())
    # Bazel's paths are those of this program; entries it does not need are harmless.
    own = os.path.dirname(os.path.abspath(__file__))
    paths = [os.path.abspath(path) for path in sys.path if path and os.path.abspath(path) != own]
    outer = os.environ.get("PYTHONPATH", "")
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([*paths, *filter(None, outer.split(os.pathsep))]),
    }
    os.chdir(folder)
    os.execve(sys.executable, [sys.executable, *sys.argv[1:]], environment)


if __name__ == "__main__":
    main()
