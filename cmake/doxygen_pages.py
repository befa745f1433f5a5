#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The documents as Doxygen's pages: doxygen_pages.py FOLDER

Each page and heading gets a label, links between documents become references to those, and what Doxygen would read as its own commands is escaped outside
code. docs/README.md is the main page, and what an index lists lies under it. Links to sources (examples/…) become plain text with the path."""
import hashlib
import pathlib
import re
import subprocess
import sys

import doxygen_find

ROOT = pathlib.Path(__file__).resolve().parent.parent
ESCAPES = {"<": "&lt;", ">": "&gt;", "&": "&amp;"}
CODE = re.compile(r"(^```.*?^```$|`[^`\n]*`)", re.M | re.S)


def label(path, anchor=""):
    page = re.sub(r"\W+", "_", str(path.relative_to(ROOT))).strip("_").lower()
    return page + ("__" + (anchor if re.fullmatch(r"[\w-]+", anchor, re.A) else hashlib.sha1(anchor.encode()).hexdigest()[:8]) if anchor else "")


def slug(heading):
    words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading)
    return re.sub(r"[^\w\- ]", "", words.lower()).replace(" ", "-")


def linked(path, pages, below):
    """Links as references; the first of a page that is `below` this one makes it a page under it."""
    def replace(match):
        text, file, anchor = match.group(1), match.group(2), match.group(3) or ""
        if re.match(r"\w+:", file):
            return match.group(0)
        target = (path.parent / file).resolve() if file else path
        if target.is_dir() and (target / "README.md") in pages:
            target = target / "README.md"
        if target in pages:
            shown = re.sub(r"</?code>|\\(?=[^A-Za-z0-9\s])", "", text).replace('"', "'")
            command = "@subpage" if target in below and not anchor else "@ref"
            if command == "@subpage":
                below.remove(target)
            return f'{command} {label(target, anchor)} "{shown}"'
        return f"{text} (`{target.relative_to(ROOT)}`)" if target.is_relative_to(ROOT) and str(target.relative_to(ROOT)) not in text else text
    return replace


def page_above(path, pages):
    """The index that a page is listed under: that of its folder, or the one of all documents in its language; None for that itself."""
    index = path.parent / "README.md"
    if path.name != "README.md" and index in pages and path.is_relative_to(ROOT / "docs") and path.parent != ROOT / "docs":
        return index
    chinese = "zh-CN" in str(path.relative_to(ROOT))
    index = ROOT / ("docs/README.zh-CN.md" if chinese and path.name != "README.zh-CN.md" else "docs/README.md")
    return None if path == index else index


def converted(path, pages):
    text = path.read_text(encoding="utf-8")
    title = re.sub(r"[`\\@%#<>\"]", "", re.search(r"^# (.*)$", text, re.M).group(1))
    text = re.sub(r"^# .*\n", "", text, count=1, flags=re.M)
    text = re.sub(r"<picture>.*?<img alt=\"([^\"]*)\" src=\"([^\"]*)\">\s*</picture>", r"![\1](\2)", text, flags=re.S)
    text = re.sub(r"^<!--.*?-->\n", "", text, flags=re.M | re.S)
    # Asterisks that begin a line of a comment are decoration to Doxygen, and would be gone.
    text = "".join(part if part.startswith("```") else re.sub(r"^\*\*(.+?)\*\*", "\x01b\x02\\1\x01/b\x02", part, flags=re.M) for part in re.split(r"(^```.*?^```$)", text, flags=re.M | re.S))
    contents = "@tableofcontents\n" if len(re.findall(r"^## ", text, re.M)) > 7 else ""
    out = []
    for piece in CODE.split(text):
        if piece.startswith("```"):
            kind, _, body = piece.partition("\n")
            out.append({"```cpp": "```{.cpp}", "```python": "```{.py}"}.get(kind, "```{.unparsed}") + "\n" + body)
        elif piece.startswith("`"):  # Doxygen's own idea of where such a span ends is another
            escaped = re.sub(r"--+|[\\@#%<>&*_\[\]|]", lambda m: ESCAPES.get(m.group(0)) or "\\" + m.group(0), piece.strip("`"))
            after_wide = bool(out and out[-1] and ord(out[-1][-1]) > 127)  # a tag that follows one is none to Doxygen
            out.append(f"{'&zwnj;' * after_wide}<code>{escaped}</code>")
        else:
            piece = re.sub(r"!\[([^\]]*)\]\(([^)]*)\)", lambda m: f"\x01img alt=\"{m.group(1)}\" src=\"{'/'.join(pathlib.PurePath(m.group(2)).parts[-2:]) if 'pictures' in m.group(2) else pathlib.PurePath(m.group(2)).name}\"/\x02", piece)
            piece = re.sub(r"([\\@%])", r"\\\1", piece)
            piece = piece.replace("<", "&lt;").replace(">", "&gt;") if not piece.lstrip().startswith(">") else piece
            piece = re.sub(r"(?<!^)(?<!\n)#(?=\w)(?![^(]*\))", r"\\#", piece)
            out.append(piece.replace("\x01", "<").replace("\x02", ">"))
    text = "".join(out)
    below = {page for page in pages if page_above(page, pages) == path}
    text = re.sub(r"(?<!!)\[((?:[^\[\]]|\[[^\]]*\])*?)\]\(([^)#\s]*)(?:#([^)\s]*))?\)", linked(path, pages, below), text)
    seen = {}

    def heading(match):
        bare = re.sub(r"</?code>|\\(?=[^A-Za-z0-9\s])", "", match.group(2))
        bare = re.sub(r'@ref \S+ "([^"]*)"', r"\1", bare)
        name = slug(bare.replace("&lt;", "<").replace("&gt;", ">").replace("&amp;", "&"))
        seen[name] = seen.get(name, -1) + 1
        name += f"-{seen[name]}" if seen[name] else ""
        return f"{match.group(1)} {match.group(2)} {{#{label(path, name)}}}"

    parts = re.split(r"(^```.*?^```$)", text, flags=re.M | re.S)
    text = "".join(part if part.startswith("```") else re.sub(r"^(##+) (.*)$", heading, part, flags=re.M) for part in parts)
    text = re.sub(r"^##", "#", text, flags=re.M)
    return (f"@mainpage {title}\n@anchor {label(path)}\n@details\n\n" if path == ROOT / "docs/README.md" else f"@page {label(path)} {title}\n{contents}@details\n\n") + text


def main():
    out = pathlib.Path(sys.argv[1])
    out.mkdir(parents=True, exist_ok=True)
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "docs/*.md", "README.md", "SECURITY.md", "CONTRIBUTING.md", "CHANGELOG.md", "examples/README.md", "examples/models/README.md"],
                           cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    pages = {ROOT / name for name in names if (ROOT / name).exists()}
    for path in sorted(pages):
        (out / f"{label(path)}.dox").write_text("/**\n" + converted(path, pages).replace("*/", "*&zwj;/").replace("/*", "/&zwj;*") + "\n*/\n", encoding="utf-8")
    (out / "find.dox").write_text(doxygen_find.PAGE, encoding="utf-8")
    addresses = [(path, "index.html" if path == ROOT / "docs/README.md" else f"{label(path)}.html", label, slug) for path in sorted(pages)]
    (out / "find_words.js").write_text(doxygen_find.words(addresses), encoding="utf-8")


if __name__ == "__main__":
    main()
