# SPDX-License-Identifier: Apache-2.0
"""The table of docs/speed.md and the picture in it, for somebody who has fifteen seconds.

    glance.py docs/performance.md      writes the table between the marks of speed.md and performance.svg, both beside it; --check only looks

Both are made of the lab book's tables, so that they say what was measured.
"""
import argparse
import math
import pathlib
import re
import sys
from xml.sax.saxutils import escape

BEGIN, END = "<!-- at a glance -->\n", "<!-- end of the glance -->\n"
# In plain words, the section and job of its row, how its peer begins there, and the peer in short. Losses are not left out.
HEADLINES = [
    ("list a .pt of 100,000 tensors", "list", "open + list 100000.pt", "torch", "torch.load"),
    ("load GPT-2 (498 MB), read every byte", "load", "load gpt2 and read every byte", "torch", "torch.load"),
    ("load ResNet-50, read every byte", "load", "load resnet50 and read every byte", "torch", "torch.load"),
    ("hash 2 GB", "proof", "hash of 2 GB, two threads", "sha256sum", "sha256sum"),
    ("compare two files of 2 GB", "proof", "diff of two equal files of 2 GB", "cmp", "cmp"),
    ("convert .safetensors to .pt, 2 GB", "convert", "convert safetensors → pt, 2 GB, durable", "cp", "cp and sync"),
    ("cast F32 to F16", "cast", "cast f32_f16, 2 threads", "memcpy", "memcpy"),
    ("run ResNet-50", "forward", "ResNet-50, batch 1, 2 threads", "torch", "PyTorch"),
    ("write a .pt of 1 GB", "save", "write .pt, 1 GB, from a file, durable", "torch", "torch.save"),
    ("run ViT-B/16", "forward", "ViT-B/16, batch 1, 2 threads", "ONNX", "ONNX Runtime"),
    ("GPT-2, one token", "forward", "GPT-2 small, one token after 128, 2 threads", "ONNX", "ONNX Runtime"),
    ("run ResNet-50, batch 8", "forward", "ResNet-50, batch 8, 2 threads", "ONNX", "ONNX Runtime"),
    ("transpose F32", "cast", "transpose f32, 2 threads", "memcpy", "memcpy"),
    ("bring 2 GB from the disk into memory", "cold", "load into memory, 2 GB, cold", "bare", "bare reads"),
]


def rows_of(text):
    """(section, job, peer): (ours in ms, peer's in ms), of every row that has a peer."""
    rows, section = {}, ""
    for line in text.splitlines():
        if line.startswith("## "):
            section = line[3:]
        cells = [cell.strip() for cell in line.strip().strip("|").split(" | ")]
        times = [re.fullmatch(r"([\d.]+) ms", cell) for cell in cells[1:4:2]]
        if len(cells) >= 5 and all(times) and len(times) == 2:
            rows[section, cells[0], cells[2]] = tuple(float(match.group(1)) for match in times)
    return rows


def headlines(text):
    """[(words, the peer in short, the peer, ours in ms, peer's in ms)], the fastest first"""
    found = []
    for words, section, job, peer, short in HEADLINES:
        names = [key for key in rows_of(text) if key[:2] == (section, job) and key[2].startswith(peer)]
        if names:
            found.append((words, short, names[0][2], *rows_of(text)[names[0]]))
    return sorted(found, key=lambda row: row[3] / row[4])


def time_of(ms):
    return f"{ms:.2g} ms" if ms < 1 else f"{ms:.0f} ms" if ms < 1000 else f"{ms / 1000:.1f} s"


def times_as_fast(ours, theirs):
    return f"{theirs / ours:.0f} ×" if theirs >= 10 * ours else f"{theirs / ours:.1f} ×" if theirs >= 1.05 * ours else f"{theirs / ours:.2f} ×"


def table_of(found):
    lines = [f"| {words} | {time_of(ours)} | {peer} | {time_of(theirs)} | {times_as_fast(ours, theirs)} |" for words, _, peer, ours, theirs in found]
    head = "| job | Ballast | its peer | the peer's time | as fast |\n|---|--:|---|--:|--:|\n"
    return f"![how many times as fast as its peer each job is](performance.svg)\n\n{head}" + "\n".join(lines) + "\n\n"


def picture_of(found):
    """Bars on a logarithmic scale from the line where both are level: to the right faster, to the left slower."""
    left, middle, right, step = 270, 350, 840, 26
    height = 58 + step * len(found)
    most = max(theirs / ours for *_, ours, theirs in found)
    unit = (right - middle - 130) / math.log10(most)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {right} {height}" font-family="sans-serif" font-size="13" role="img">',
        "<title>How many times as fast as its peer each job is</title>",
        "<style>text{fill:#24292f}.muted{fill:#57606a}.line{stroke:#8c959f}.faster{fill:#2f6f9f}.slower{fill:#b3541e}"
        "@media(prefers-color-scheme:dark){text{fill:#e6edf3}.muted{fill:#9198a1}.faster{fill:#5aa0d6}.slower{fill:#e08a4f}}</style>",
    ]
    for power in range(int(math.log10(most)) + 1):
        x = middle + unit * power
        parts.append(f'<line class="line" x1="{x:.1f}" x2="{x:.1f}" y1="30" y2="{height - 8}" stroke-opacity="{0.9 if power == 0 else 0.25}"/>')
        parts.append(f'<text class="muted" x="{x:.1f}" y="22" text-anchor="middle">{"level" if power == 0 else f"{10**power} ×"}</text>')
    for row, (words, short, _, ours, theirs) in enumerate(found):
        y, width = 40 + step * row, unit * math.log10(theirs / ours)
        kind, x = ("faster", middle) if width >= 0 else ("slower", middle + width)
        parts.append(f'<text x="{left}" y="{y + 13}" text-anchor="end">{escape(words)}</text>')
        parts.append(f'<rect class="{kind}" x="{x:.1f}" y="{y}" width="{max(abs(width), 1.5):.1f}" height="17" rx="2"/>')
        parts.append(f'<text class="muted" x="{middle + max(width, 0) + 6:.1f}" y="{y + 13}">{times_as_fast(ours, theirs)} {escape(short)}</text>')
    return "\n".join([*parts, "</svg>"]) + "\n"


def aims_of(text):
    """"56 of 82 rows with an aim reach it." of the lab book."""
    found = re.search(r"^(\d+ of \d+ rows with an aim reach it)\.", text, re.M)
    return f"{found.group(1)}; [those that do not](performance.md) are listed first there, with what a profile showed.\n" if found else ""


def wanted(book):
    """{path: content} of what is made from the lab book."""
    text, short = book.read_text(), book.with_name("speed.md")
    page = short.read_text()
    begin, end = page.index(BEGIN) + len(BEGIN), page.index(END)
    found = headlines(text)
    return {short: page[:begin] + table_of(found) + aims_of(text) + page[end:], book.with_suffix(".svg"): picture_of(found)}


def write(book):
    for path, content in wanted(book).items():
        path.write_text(content)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("document", type=pathlib.Path)
    parser.add_argument("--check", action="store_true")
    options = parser.parse_args()
    if not options.check:
        write(options.document)
    stale = [str(path) for path, content in wanted(options.document).items() if not path.exists() or path.read_text() != content]
    print("\n".join(f"{path}: not what the tables say; run bench/glance.py" for path in stale) or "at a glance: as measured")
    return 1 if stale else 0


if __name__ == "__main__":
    sys.exit(main())
