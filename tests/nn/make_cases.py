#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Cases for every layer, with the results of this machine's torch; the bundle is that of tests/ops/casekit.py.

    make_cases.py OUT.safetensors             40 cases each, for the tests of a machine with torch
    make_cases.py --small OUT.safetensors     2 each: tests/nn/cases.safetensors, committed, for machines without
"""
import pathlib
import sys

HERE = pathlib.Path(__file__).resolve().parent
sys.path[:0] = [str(HERE), str(HERE.parent / "ops")]

import make_cases_common  # noqa: E402

make_cases_common.main(__doc__, ["layer_cases", "layer_cases_more", "layer_cases_losses"], many=40, few=2)
