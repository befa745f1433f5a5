#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cases for every operation, with the results of this machine's torch.

    make_cases.py OUT.safetensors             60 cases each, for the tests of a machine with torch
    make_cases.py --small OUT.safetensors     3 small ones each: tests/ops/cases.safetensors, committed, for machines without
"""
import pathlib
import sys

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))

import make_cases_common  # noqa: E402

make_cases_common.main(__doc__, ["cases_elementwise", "cases_layers", "cases_more", "cases_losses", "cases_boxes", "cases_movement", "cases_reduce"], many=60, few=3)
