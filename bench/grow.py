# SPDX-License-Identifier: Apache-2.0
"""How cost grows with the number of tensors and with the size of the data: whole processes, time, peak memory and page faults, and each row over the one before."""
from measure import BALLAST, process
from workloads import matrices, tiny, write_safetensors


def best(rounds, *command):
    return min(process(*command) for _ in range(rounds))


def series(table, what, sizes, measure):
    before = None
    for size in sizes:
        done = measure(size)
        note = f"peak {done.peak_mb:.0f} MB, {done.faults:,} page faults"
        if before:
            note += f"; {done.seconds / before[1]:.1f} × the time for {size / before[0]:.0f} × as many"
        table.add(f"{what}, {size:,}", done.seconds, 0, "-", "", 0, note)
        before = (size, done.seconds)


def job_grow(table, folder):
    def listed(count):
        path = folder / "many.safetensors"
        write_safetensors(path, tiny(count), count * 32)
        return best(table.rounds, BALLAST, "ls", "--plain", path)

    def listed_pt(count):
        source, path = folder / "many.safetensors", folder / "many.pt"
        write_safetensors(source, tiny(count), count * 32)
        process(BALLAST, "convert", "-f", source, path)
        return best(table.rounds, BALLAST, "ls", "--plain", path)

    def over_bytes(*command):
        def measure(megabytes):
            path = folder / "large.safetensors"
            matrices(path, megabytes)
            return best(max(2, table.rounds // 2), BALLAST, *command, path)
        return measure

    series(table, "ls, safetensors, tensors", (1_000, 10_000, 100_000, 1_000_000), listed)
    series(table, "ls, .pt, tensors", (1_000, 10_000, 100_000, 1_000_000), listed_pt)
    series(table, "ls, MB", (10, 100, 1_000, 10_000), over_bytes("ls"))
    series(table, "hash, MB (a hole in the file)", (10, 100, 1_000, 10_000), over_bytes("hash"))
