# SPDX-License-Identifier: Apache-2.0
"""docs/reference is what the command says of itself, and its examples are what it prints."""
import subprocess
import sys
import unittest

from cli_testing import BALLAST, SOURCE


class Reference(unittest.TestCase):
    def test_every_page_is_what_the_command_says_and_prints(self):
        done = subprocess.run([sys.executable, "-B", str(SOURCE / "scripts/reference"), "--check", BALLAST], capture_output=True, text=True, timeout=240)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)


if __name__ == "__main__":
    unittest.main()
