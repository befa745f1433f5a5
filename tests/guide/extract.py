# SPDX-License-Identifier: Apache-2.0
"""The C++ of pages as one source: extract.py OUT.inc PAGE.md...

A page is a namespace by its name (run.zh-CN.md: run). A block that begins with a declaration stands as it is; any other becomes a function, and run_pages()
calls them in their order. Under <!-- compiled: why --> it is compiled and not called; under the name of a file it is compiled there.
"""
import pathlib
import re
import sys


def extracted(page):
    """(what it includes, its namespace, the calls of its functions)"""
    text = page.read_text(encoding="utf-8")
    name = page.name.split(".")[0]
    included, parts, calls = [], [], []
    for match in re.finditer(r"^(?:<!-- (.*?) -->\n)?```cpp\n(.*?)^```", text, re.M | re.S):
        mark, body = match.groups()
        if mark and not mark.startswith("compiled: "):
            continue
        line = text.count("\n", 0, match.start(2)) + 1
        declares = re.match(r"(#include|namespace|struct|enum|class|template|using)\b", body)
        included += re.findall(r"^#include .*$", body, re.M)
        body = re.sub(r"^#include .*$", "", body, flags=re.M)
        where = f'#line {line} "{page.name}"\n'
        if declares:
            parts.append(where + body)
        else:
            parts.append(f"void line_{line}() {{\n{where}{body}}}\n")
            calls += [] if mark else [(f'  std::cerr << "{page.name}:{line}\\n";\n  {name}::line_{line}();\n')]
    assert parts, f"{page}: no code"
    return included, f"namespace {name} {{\n" + "\n".join(parts) + f"\n}}  // namespace {name}\n", calls


def main():
    out, *pages = map(pathlib.Path, sys.argv[1:])
    found = [extracted(page) for page in pages]
    included = sorted({line for lines, _, _ in found for line in lines})
    out.write_text("\n".join(included) + "\n" + "\n".join(code for _, code, _ in found) +
                   "\nvoid run_pages() {\n" + "".join(call for _, _, calls in found for call in calls) + "}\n", encoding="utf-8")


if __name__ == "__main__":
    main()
