#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""The search over the documents: every section with its words, for find.js to look through in the browser, without a server. Doxygen's own box finds names
of C++ and titles of pages alone."""
import json
import re

CHINESE = re.compile(r"[\u4e00-\u9fff]")
PAGE = """/**
@page find Search
@details

Every section of the documents that has all of your words. Names of C++ are found by the box above, too.

@htmlonly
<input id="find" type="search" aria-label="Words to search for" placeholder="missing keys" autocomplete="off">
<p id="count" role="status"></p>
<ol id="found"></ol>
<script src="find_words.js"></script>
<script src="find.js"></script>
@endhtmlonly
*/
"""


def plain(text):
    """What a reader sees of a piece of Markdown."""
    text = re.sub(r"<!--.*?-->|^```\w*", " ", text, flags=re.M | re.S)
    text = re.sub(r"!?\[((?:[^\[\]]|\[[^\]]*\])*?)\]\([^)\s]*(?: \"[^\"]*\")?\)", r"\1", text)
    return re.sub(r"[\s|]+", " ", re.sub(r"`{1,3}|\*\*|^[#>|-]+|\|[-:| ]+\|", " ", text, flags=re.M)).strip()


def sections(path, url, label, slug):
    """{url, page, heading, text} of every section of a document. Lines in code that begin with "#" are no headings."""
    text = path.read_text(encoding="utf-8")
    title = plain(re.search(r"^# (.*)$", text, re.M).group(1))
    found, seen = [{"url": url, "page": title, "heading": "", "text": []}], {}
    for piece in re.split(r"(^```.*?^```$)", text, flags=re.M | re.S):
        for line in [piece] if piece.startswith("```") else piece.splitlines():
            heading = None if piece.startswith("```") else re.match(r"##+ (.*)", line)
            if heading is None:
                found[-1]["text"].append("" if not piece.startswith("```") and line.startswith("# ") else line)
                continue
            name = slug(heading.group(1))
            seen[name] = seen.get(name, -1) + 1
            anchor = label(path, name + (f"-{seen[name]}" if seen[name] else ""))
            found.append({"url": f"{url}#{anchor}", "page": title, "heading": plain(heading.group(1)), "text": []})
    for one in found:
        one["text"] = plain("\n".join(one["text"]))
    return [one for one in found if one["text"] or one["heading"]]


def words(pages):
    """The text of find_words.js. `pages`: [(path, url)], label and slug as doxygen_pages.py has them."""
    rows = [row for path, url, label, slug in pages for row in sections(path, url, label, slug)]
    for row in rows:
        row["chinese"] = bool(CHINESE.search(row["page"]))
    return "const SECTIONS = " + json.dumps(rows, ensure_ascii=False, separators=(",", ":")) + ";\n"
