# SPDX-License-Identifier: Apache-2.0
"""Builds with scikit-build-core where it is installed, and with setuptools (setup.py) where not. BALLAST_BACKEND names one of the two."""
import importlib.util
import os

_wanted = os.environ.get("BALLAST_BACKEND") or ("scikit-build-core" if importlib.util.find_spec("scikit_build_core") else "setuptools")

if _wanted == "scikit-build-core":
    from scikit_build_core.build import *  # noqa: F401,F403
else:
    from setuptools.build_meta import *  # noqa: F401,F403
