# SPDX-License-Identifier: Apache-2.0
"""Ctrl-C: whatever is at work raises KeyboardInterrupt within a second of a real SIGINT, and leaves nothing behind.

The files are holes on the disk, so that every call would take many seconds and nothing is written for it beforehand.
"""
import json
import os
import pathlib
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile

import pytest

GIGABYTES = 48
PIECES = 48
WRITTEN = 12  # of what is written: the room for it is taken at once

CHILD = """
import os, sys, time
sys.path[:0] = {path!r}
import numpy as np
import ballast, ballast.numpy
{prepare}
sys.stdout.write("ready\\n"); sys.stdout.flush()
begin = time.monotonic()
try:
    {work}
except KeyboardInterrupt:
    print("interrupted", time.monotonic(), flush=True)
else:
    print("finished", time.monotonic() - begin, flush=True)
os._exit(0)
"""


def holes(path, gigabytes=GIGABYTES, pieces=PIECES):
    """A Safetensors file of zeros that takes no room: tensors of F32."""
    each = gigabytes * 10**9 // pieces // 4096 * 4096
    header = {f"w{i}": {"dtype": "F32", "shape": [each // 4], "data_offsets": [i * each, (i + 1) * each]} for i in range(pieces)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little") + text)
        file.truncate(8 + len(text) + each * pieces)


def many(path, count):
    """A file that takes long to open: very many small tensors."""
    entries = ",".join(f'"model.layers.{i}.block.weight":{{"dtype":"U8","shape":[1],"data_offsets":[{i},{i + 1}]}}' for i in range(count))
    text = ("{" + entries + "}").encode()
    path.write_bytes(len(text).to_bytes(8, "little") + text + bytes(count))


def stored_zip(path, size):
    """A PyTorch file with one storage of zeros: the archive zipfile would write, its bytes a hole. The checksum is not theirs."""
    pickled = b"\x80\x02}q\x00X\x01\x00\x00\x00wq\x01ctorch._utils\n_rebuild_tensor_v2\nq\x02((X\x07\x00\x00\x00storageq\x03ctorch\nFloatStorage\nq\x04X\x01\x00\x00\x000q\x05X\x03\x00\x00\x00cpuq\x06"
    pickled += b"\x8a\x08" + (size // 4).to_bytes(8, "little") + b"tq\x07QK\x00\x8a\x08" + (size // 4).to_bytes(8, "little") + b"\x85q\x08K\x01\x85q\x09\x89ccollections\nOrderedDict\nq\x0a)Rq\x0btq\x0cRq\x0ds."
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("archive/data.pkl", pickled)
        archive.writestr("archive/version", "3\n")
    with zipfile.ZipFile(path, "a", allowZip64=True) as archive:
        info = zipfile.ZipInfo("archive/data/0")
        info.header_offset = archive.start_dir
        info.file_size = info.compress_size = size
        info.CRC = 0
        archive.fp.seek(archive.start_dir)
        archive.fp.write(info.FileHeader(zip64=True))
        archive.fp.seek(size, 1)
        archive.start_dir = archive.fp.tell()
        archive.filelist.append(info)
        archive.NameToInfo[info.filename] = info
        archive._didModify = True


WORK = {
    "load_file, pread": ("", "ballast.numpy.load_file('big.safetensors', backend='pread')"),
    "get_tensors, pread": ("f = ballast.safe_open('big.safetensors', 'np', backend='pread')", "f.get_tensors()"),
    "prefetch": ("f = ballast.open('big.safetensors')", "f.prefetch()"),
    "tobytes": ("t = ballast.open('one.safetensors')['w0']", "t.tobytes()"),
    "cast": ("t = ballast.open('one.safetensors')['w0']", "t.to('BF16')"),
    "save_file": ("tensors = ballast.numpy.load_file('part.safetensors')", "ballast.numpy.save_file(tensors, 'out.safetensors')"),
    "save_file, not durable": ("tensors = ballast.numpy.load_file('part.safetensors')", "ballast.numpy.save_file(tensors, 'out.safetensors', durable=False)"),
    "save as .pt": ("f = ballast.open('part.safetensors')", "ballast.save('out.pt', f)"),
    "save as .npz": ("f = ballast.open('part.safetensors')", "ballast.save('out.npz', f)"),
    "save in shards": ("f = ballast.open('part.safetensors')", "ballast.save('out.safetensors', f, shard_size='8GB')"),
    "save packed": ("f = ballast.open('part.safetensors')", "ballast.save('out.safetensors', f, pack='small')"),
    "convert": ("", "ballast.convert('part.safetensors', 'out.pt')"),
    "convert and cast": ("", "ballast.convert('part.safetensors', 'out.safetensors', dtype='F16')"),
    "convert with a receipt": ("", "ballast.convert('part.safetensors', 'out.safetensors', receipt='out.json')"),
    "hash": ("", "ballast.hash('big.safetensors')"),
    "stats": ("", "ballast.stats('big.safetensors')"),
    "stats with quantiles": ("", "ballast.stats('big.safetensors', quantiles=[0.5])"),
    "verify": ("", "ballast.verify('big.safetensors')"),
    "diff": ("", "ballast.diff('big.safetensors', 'same.safetensors')"),
    "scan": ("", "ballast.scan('big.pt')"),
    "open": ("", "ballast.open('many.safetensors')"),
    "safe_open": ("", "ballast.safe_open('many.safetensors', 'np')"),
    "load_file": ("", "ballast.numpy.load_file('many.safetensors')"),
    "deserialize": ("data = open('many.safetensors', 'rb').read()", "ballast.deserialize(data)"),
}


# These take memory while they work, or are quick.
SOON = {"load_file, pread", "get_tensors, pread", "tobytes", "cast", "open", "safe_open", "load_file", "deserialize"}


def is_in_memory(folder):
    """A hole in a file there becomes memory when it is read."""
    return subprocess.run(["stat", "-f", "-c", "%T", str(folder)], capture_output=True, text=True).stdout.strip() in ("tmpfs", "ramfs")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("holes")
    if not is_in_memory(folder):
        yield fill(folder)
        shutil.rmtree(folder)
        return
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        if is_in_memory(name):
            pytest.skip("there is no disk")
        yield fill(pathlib.Path(name))


def fill(folder):
    holes(folder / "big.safetensors")
    holes(folder / "same.safetensors")
    holes(folder / "part.safetensors", gigabytes=WRITTEN)
    holes(folder / "one.safetensors", pieces=1, gigabytes=6)
    stored_zip(folder / "big.pt", GIGABYTES * 10**9)
    many(folder / "many.safetensors", 1_000_000)
    return folder


@pytest.mark.parametrize("what", WORK)
def test_ctrl_c_ends_the_work_within_a_second(what, folder):
    if "'out." in WORK[what][1] and shutil.disk_usage(folder).free < 1.5 * WRITTEN * 10**9:
        pytest.skip("too little room for what is written")
    before = sorted(os.listdir(folder))
    prepare, work = WORK[what]
    program = CHILD.format(path=sys.path, prepare=prepare, work=work)
    child = subprocess.Popen([sys.executable, "-B", "-c", program], cwd=folder, stdout=subprocess.PIPE, text=True)
    try:
        assert child.stdout.readline() == "ready\n"
        time.sleep(0.1 if what in SOON else 0.4)
        sent = time.monotonic()
        child.send_signal(signal.SIGINT)
        readable, _, _ = select.select([child.stdout], [], [], 5)
        assert readable, "nothing for 5 s"
        how, when = child.stdout.readline().split()
        child.wait(20)
    finally:
        child.kill()
        child.stdout.close()
    assert how == "interrupted", f"it ended before the signal, after {when} s: this test needs larger files"
    assert float(when) - sent < 1, f"{float(when) - sent:.2f} s"
    assert sorted(os.listdir(folder)) == before
