# SPDX-License-Identifier: Apache-2.0
"""README's picture of the digits is what the example prints: readme_output.py README.md EXAMPLE ARGUMENT...

Every line of the block is a line of the output, in this order; lines between them may be left out.
"""
import re
import subprocess
import sys

readme, *command = sys.argv[1:]
with open(readme, encoding="utf-8") as file:
    block = re.search(r"^```text\n(.*?)^```", file.read(), re.M | re.S).group(1)
printed = iter(subprocess.run(command, capture_output=True, check=True).stdout.decode().splitlines())
for line in block.splitlines():
    if line.rstrip() not in map(str.rstrip, printed):  # goes on where the last line was found
        sys.exit(f"README: {line!r} is not printed there")
print("as printed")
