# SPDX-License-Identifier: Apache-2.0
"""The job "threads": nobody should be slower with more of them, alone, with several callers, or beside busy neighbours."""
import os

from measure import BENCH, Served, turns

MODELS = ("ResNet-50, batch 1", "MobileNet-v2, batch 1", "BERT base, 128 tokens", "GPT-2 small, one token after 128", "LSTM tagger, 64 words")


def counts():
    """1, 2, 4 … and all cores this process may use."""
    cores = len(os.sched_getaffinity(0))
    return sorted({2**i for i in range(cores.bit_length())} | {cores})


def plural(number, noun):
    return f"{number} {noun}{'s' * (number > 1)}"


def scaling(table):
    """Each count beside the best of those below it; the processes take turns."""
    served = {count: Served([BENCH / "forward_bench", "--serve", "--threads", count]) for count in counts()}
    for name in MODELS:
        times = dict(zip(served, turns(table.rounds, [lambda each=each: each.ask(name) for each in served.values()])))
        for count in list(served)[1:]:
            best = min(times[fewer][0] for fewer in served if fewer < count)
            table.add(f"{name}, {count} threads", times[count][0], best, "the best of fewer threads", "≤ 1.05", 0, f"CPU seconds, of one thread's: {times[count][1] / times[1][1]:.2f}")
    for each in served.values():
        each.close()


def regions(table):
    """Loops of all threads after loops of three: the same two loops, 64 rows and 3, beside twice the 64."""
    for count in counts()[1:]:
        served = Served([BENCH / "ops_bench", "--serve", "--threads", count])
        mixed, alike = turns(table.rounds, [lambda: served.ask("64 rows after 3 rows"), lambda: served.ask("64 rows after 64 rows")])
        table.add(f"a loop of 64 rows after one of 3, {plural(count, 'thread')}", mixed[0], alike[0], "two loops of 64 rows", "≤ 1.0")
        served.close()


def asked(options, name, rounds):
    """The seconds of a program of its own: what runs beside it must not run beside the others."""
    served = Served([BENCH / "forward_bench", "--serve", *map(str, options)])
    (wall, _), = turns(rounds, [lambda: served.ask(name)])
    served.close()
    return wall


def crowds(table):
    """Beside one process on every core that never rests; and called by as many threads as there are cores, with one thread each and with all."""
    cores = counts()[-1]
    for name in MODELS[:3]:
        alone, single = (asked(["--threads", threads], name, table.rounds) for threads in (cores, 1))
        busy = asked(["--threads", cores, "--busy"], name, table.rounds)
        table.add(f"{name}, {plural(cores, 'thread')}, a busy neighbour on every core", busy, alone, "alone")
        apart = asked(["--threads", 1, "--callers", cores], name, table.rounds)
        table.add(f"{name}, 4 calls by each of {plural(cores, 'caller')}, 1 thread", apart, 4 * single, "4 calls by one caller, 1 thread", "≤ 1.11")
        together = asked(["--threads", cores, "--callers", cores], name, table.rounds)
        table.add(f"{name}, 4 calls by each of {plural(cores, 'caller')}, all threads each", together, 4 * cores * alone, "as many calls by one caller, all threads", "≤ 1.11")


def job_threads(table, folder):
    scaling(table)
    regions(table)
    crowds(table)
