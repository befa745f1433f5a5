#!/usr/bin/env python3
"""Seeds for tar_fuzz: archives that tarfile reads too, or refuses."""
import sys

sys.dont_write_bytecode = True
import case_seeds  # noqa: E402

case_seeds.write("tar_cases", sys.argv[1])
