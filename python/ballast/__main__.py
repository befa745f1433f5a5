# SPDX-License-Identifier: Apache-2.0
"""The ballast command: ``python -m ballast``, and the script ``ballast`` that pip installs. The wheel carries the program itself."""
import os
import pathlib
import sys

_HERE = pathlib.Path(os.path.abspath(__file__)).parent  # links of a build folder are not followed


def program() -> str:
    """Where the command lies: in the package, or in the build folder that the package is used from."""
    for path in (_HERE / "_bin" / "ballast", _HERE.parent.parent / "bin" / "ballast"):
        if os.access(path, os.X_OK):
            return str(path)
    raise FileNotFoundError(f"the ballast command is not part of this package (looked in {_HERE / '_bin'}): it was built with BALLAST_BUILD_TOOLS=OFF")


def main() -> None:
    """Becomes the command: its exit code, its signals, its terminal."""
    try:
        path = program()
    except FileNotFoundError as error:
        sys.exit(f"ballast: {error}")
    os.execv(path, ["ballast", *sys.argv[1:]])


if __name__ == "__main__":
    main()
