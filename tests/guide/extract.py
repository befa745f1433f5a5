# SPDX-License-Identifier: Apache-2.0
"""The C++ of a guide as one source: extract.py GUIDE.md OUT.inc

A block that begins with a declaration stands as it is; any other becomes a function, and run_guide() calls them in their order.
"""
import pathlib
import re
import sys

guide, out = map(pathlib.Path, sys.argv[1:])
text = guide.read_text(encoding="utf-8")
parts, calls = [], []
for match in re.finditer(r"(?<! -->\n)^```cpp\n(.*?)^```", text, re.M | re.S):  # under <!-- a file's name -->: compiled there
    line = text.count("\n", 0, match.start()) + 2
    body = match.group(1)
    where = f'#line {line} "{guide.name}"\n'
    if re.match(r"(#include|namespace|struct|enum|class|template|using)\b", body):
        parts.append(where + body)
    else:
        parts.append(f"void line_{line}() {{\n{where}{body}}}\n")
        calls.append(f'  std::cerr << "{guide.name}:{line}\\n";\n  line_{line}();\n')
assert calls, f"{guide}: no code"
out.write_text("\n".join(parts) + "\nvoid run_guide() {\n" + "".join(calls) + "}\n", encoding="utf-8")
