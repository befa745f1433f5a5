# SPDX-License-Identifier: Apache-2.0
"""Jobs of the seal: sign beside openssl, age beside age, pack beside zstd, all of them beside cp."""
import os
import shutil
import subprocess

from measure import BALLAST, run
from workloads import write_safetensors

SIZE = 1 << 30


def weights(path, size=SIZE):
    """BF16 weights as trained ones are distributed: N(0, 0.02), a block of 16 MiB again and again."""
    import numpy
    values = numpy.random.default_rng(0).normal(0, 0.02, 8 << 20).astype(numpy.float32)
    block = (values.view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes()
    write_safetensors(path, [(f"layers.{i}.weight", "BF16", [2048, 4096], i * len(block), (i + 1) * len(block)) for i in range(size // len(block))], 0,
                      (block for _ in range(size // len(block))))  # fmt: skip


def copy(source, target):
    run("cp", "--reflink=never", source, target)
    run("sync", target)
    os.unlink(target)


def job_seal(table, folder):
    model = folder / "model.safetensors"
    weights(model)
    sign_rows(table, folder, model)
    age_rows(table, folder, model)
    pack_rows(table, folder, model)


def sign_rows(table, folder, model):
    key, public, signature = folder / "key.pem", folder / "pub.pem", folder / "model.sig"
    run("openssl", "ecparam", "-name", "prime256v1", "-genkey", "-noout", "-out", key)
    run("openssl", "pkey", "-in", key, "-pubout", "-out", public)
    hashed = lambda: run("openssl", "dgst", "-sha256", model)  # noqa: E731
    table.compare("sign, 1 GiB in one file", lambda: run(BALLAST, "sign", "-q", model, "--key", key, "-o", signature, "-f"), hashed, "openssl dgst -sha256", "≤ 1.1")
    table.compare("verify --signature, 1 GiB in one file", lambda: run(BALLAST, "verify", "-q", model, "--signature", signature, "--key", public), hashed, "openssl dgst -sha256", "≤ 1.1")


def age_rows(table, folder, model):
    key, sealed, back = folder / "key.txt", folder / "model.safetensors.age", folder / "back.safetensors"
    made = subprocess.run([str(BALLAST), "keygen", "-o", str(key)], check=True, capture_output=True, text=True)
    recipient = made.stdout.strip()
    ours = lambda: run(BALLAST, "convert", "-f", model, sealed, "--recipient", recipient)  # noqa: E731
    opened = lambda: run(BALLAST, "convert", "-f", sealed, back, "--identity", key)  # noqa: E731
    table.compare("convert --recipient, 1 GiB, durable", ours, lambda: copy(model, folder / "copy"), "cp and sync", "")
    if not shutil.which("age"):
        return
    by_age, plain = folder / "by.age", folder / "by.plain"

    def age(*arguments, out):
        run("age", "-o", out, *arguments)
        run("sync", out)
        os.unlink(out)

    table.compare("the same", ours, lambda: age("-r", recipient, model, out=by_age), "age -r and sync", "≤ 1.0")
    table.compare("convert --identity, 1 GiB, durable", opened, lambda: age("-d", "-i", key, sealed, out=plain), "age -d and sync", "≤ 1.0")
    table.compare("hash of an encrypted file, 1 GiB", lambda: run(BALLAST, "hash", sealed, "--identity", key), lambda: run(BALLAST, "hash", model), "hash of the plain file", "")


def pack_rows(table, folder, model):
    for how in ("fast", "small"):
        packed = folder / f"{how}.safetensors"
        pack = lambda: run(BALLAST, "convert", "-f", model, packed, "--pack", how)  # noqa: E731, B023
        pack()
        note = f"{packed.stat().st_size / model.stat().st_size:.3f} of the size"
        table.compare(f"convert --pack {how}, 1 GiB, durable", pack, lambda: copy(model, folder / "copy"), "cp and sync", "", note)
        table.compare(f"convert back from {how}, 1 GiB, durable", lambda: run(BALLAST, "convert", "-f", packed, folder / "back.safetensors"),  # noqa: B023
                      lambda: copy(model, folder / "copy"), "cp and sync", "")  # fmt: skip
    if not shutil.which("zstd"):
        return
    compressed = folder / "model.zst"

    def zstd():
        run("zstd", "-q", "-f", "-1", "-T0", model, "-o", compressed)
        run("sync", compressed)

    zstd()
    note = f"zstd: {compressed.stat().st_size / model.stat().st_size:.3f} of the size"
    table.compare("convert --pack small, 1 GiB, durable", lambda: run(BALLAST, "convert", "-f", model, folder / "small.safetensors", "--pack", "small"), zstd, "zstd -1 -T0 and sync", "≤ 1.0", note)

    def unzstd():
        run("zstd", "-q", "-d", "-f", compressed, "-o", folder / "back.plain")
        run("sync", folder / "back.plain")

    table.compare("convert back from small, 1 GiB, durable", lambda: run(BALLAST, "convert", "-f", folder / "small.safetensors", folder / "back.safetensors"), unzstd, "zstd -d and sync", "≤ 1.0")
