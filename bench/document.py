# SPDX-License-Identifier: Apache-2.0
"""docs/performance.md, the lab book: the tables of a run, and between them what people found out about them (bench/remarks.md). What readers in a hurry
want, docs/speed.md, is made of it by glance.py."""
import pathlib
import re

from measure import Table

IN_SHORT = "The lab book: every table, what was missed and why. In short: [speed.md](speed.md)."
REMARKS = pathlib.Path(__file__).with_name("remarks.md")


def remarks():
    """job: text. "all" comes before the tables."""
    parts = re.split(r"^## (\S+)\n", REMARKS.read_text(), flags=re.M)
    return dict(zip(parts[1::2], (text.strip() for text in parts[2::2])))


def aims(rows):
    judged = [row for row in rows if Table.reached(row) is not None]
    missed = [row for row in judged if not Table.reached(row)]
    text = f"{len(judged) - len(missed)} of {len(judged)} rows with an aim reach it."
    if missed:
        text += " Missed:\n\n" + "\n".join(f"- {row['job']}: {row['ours_over_peer']:.3g} of {row['peer']} (aim {row['aim']})" for row in missed)
    return text


def document(rows, machine, command):
    said = remarks()
    fewest, most = min(row["rounds"] for row in rows), max(row["rounds"] for row in rows)
    rounds = f"{most}" if fewest == most else f"{fewest} to {most}"
    text = f"# Performance\n\n{IN_SHORT}\n\nWhat `{command}` printed on: {machine}. Ours and the peer's were measured in turn; medians of {rounds} rounds after one that does not count; "
    text += f"a ratio below 1 is faster.\n\n{said['all']}\n\n{aims(rows)}\n"
    for job in dict.fromkeys(row["section"] for row in rows):
        lines = "\n".join(Table.line(row) for row in rows if row["section"] == job)
        text += f"\n## {job}\n\n" + (said[job] + "\n\n" if job in said else "") + f"{Table.HEAD}\n{lines}\n"
    return text + (f"\n## GPU\n\n{said['gpu']}\n" if "gpu" in said else "")
