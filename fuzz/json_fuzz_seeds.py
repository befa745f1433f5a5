#!/usr/bin/env python3
"""Seeds for json_fuzz: documents that Python's json reads too, or refuses."""
import sys

sys.dont_write_bytecode = True
import case_seeds  # noqa: E402

case_seeds.write("json_cases", sys.argv[1])
