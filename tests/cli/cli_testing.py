# SPDX-License-Identifier: Apache-2.0
"""What the suites share: running the command, making Safetensors files byte by byte, and a folder that goes away."""
import json
import os
import pathlib
import pty
import select
import struct
import subprocess
import tempfile
import unittest

BALLAST = os.environ.get("BALLAST", "build/dev/bin/ballast")
SOURCE = pathlib.Path(os.environ.get("BALLAST_SOURCE", pathlib.Path(__file__).resolve().parents[2]))
SIZES = {"F32": 4, "F16": 2, "BF16": 2, "F64": 8, "I64": 8, "I32": 4, "U8": 1, "BOOL": 1, "F8_E4M3": 1}


def floats(*values):
    return struct.pack(f"<{len(values)}f", *values)


def safetensors(tensors, metadata=None):
    """The bytes of a file with [(name, dtype, shape, data)], in that order."""
    header, offset = {}, 0
    if metadata is not None:
        header["__metadata__"] = metadata
    for name, dtype, shape, data in tensors:
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [offset, offset + len(data)]}
        offset += len(data)
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + b"".join(data for *_, data in tensors)


MARKS = {"q": {"scheme": "int8", "axis": 0, "scale": "q_scale", "dtype": "F32"}}


def quantized(scales=(0.5, 2.0), extra=(), metadata=None):
    tensors = [("q", "I8", [2, 2], struct.pack("<4b", 1, -2, 3, 127)), ("q_scale", "F32", [2], floats(*scales)), *extra]
    return safetensors(tensors, {"ballast.quantized": json.dumps(MARKS), **(metadata or {})})


def tied(metadata=None):
    return safetensors([("a.weight", "F32", [2], floats(1, 2)), ("z", "F32", [1], floats(9))], {"ballast.ties": '{"b.weight":"a.weight"}', **(metadata or {})})


def write_hollow(path, size):
    """A file with one F32 tensor "w" of `size` bytes of zeros that take no room on the disk: quick to make, slow to read."""
    header = b'{"w":{"dtype":"F32","shape":[%d],"data_offsets":[0,%d]}}' % (size // 4, size)
    header += b" " * (-len(header) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(header)) + header)
        file.truncate(8 + len(header) + size)
    return path


def read_safetensors(path):
    """{name: (dtype, shape, data)} and the metadata, by an independent reader."""
    blob = pathlib.Path(path).read_bytes()
    (size,) = struct.unpack("<Q", blob[:8])
    header = json.loads(blob[8 : 8 + size])
    metadata = header.pop("__metadata__", None)
    data = blob[8 + size :]
    return {k: (v["dtype"], v["shape"], data[slice(*v["data_offsets"])]) for k, v in header.items()}, metadata


def environment(**changes):
    env = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "CLICOLOR_FORCE", "CLICOLOR", "TERM")}
    env.update({"LC_ALL": "C.UTF-8", "TERM": "xterm"})
    env.update(changes)
    return env


class CliTest(unittest.TestCase):
    maxDiff = None

    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = pathlib.Path(folder.name)

    def file(self, name, content):
        path = self.folder / name
        path.write_bytes(content)
        return str(path)

    def path(self, name):
        return str(self.folder / name)

    def small(self, name="small.safetensors"):
        tensors = [("b.weight", "F32", [2, 2], floats(1, 2, 3, 4)), ("b.bias", "F32", [2], floats(0.5, -0.5)), ("steps", "I64", [], struct.pack("<q", 7))]
        return self.file(name, safetensors(tensors, {"format": "pt", "author": "somebody"}))

    def run_tool(self, *arguments, code=0, env=None, stdout=subprocess.PIPE):
        done = subprocess.run([BALLAST, *arguments], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, env=env or environment(), timeout=120)
        err = done.stderr.decode()
        self.assertEqual(done.returncode, code, f"{arguments}\nstdout: {done.stdout}\nstderr: {err}")
        return (done.stdout or b"").decode(), err

    def run_json(self, *arguments, code=0):
        out, _ = self.run_tool(*arguments, "--json", code=code)
        result = json.loads(out)
        self.assertEqual(result["schema"], 1)
        return result

    def open_terminal(self):
        """Both ends of one."""
        try:
            return pty.openpty()
        except OSError as error:  # a container without them
            self.skipTest(f"no pseudo-terminal: {error}")

    def run_on_terminal(self, *arguments, env=None, rows=24, columns=80):
        """Everything a terminal of that size would get, and the exit code."""
        import fcntl
        import termios

        main, side = self.open_terminal()
        fcntl.ioctl(side, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        process = subprocess.Popen([BALLAST, *arguments], stdin=subprocess.DEVNULL, stdout=side, stderr=side, env=env or environment())
        os.close(side)
        seen = b""
        while True:
            ready, _, _ = select.select([main], [], [], 60)
            try:
                piece = os.read(main, 65536) if ready else b""
            except OSError:  # the other side is closed
                piece = b""
            if not piece:
                break
            seen += piece
        os.close(main)
        return seen.decode().replace("\r\n", "\n"), process.wait(60)
