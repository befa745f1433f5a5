# SPDX-License-Identifier: Apache-2.0
"""`ballast view`: what happens to a file, a job or a connection while somebody looks."""
import os
import unittest

from cli_testing import CliTest, floats, safetensors, write_hollow
from view_testing import View


class Meanwhile(CliTest):
    def test_a_file_that_is_cut_off_while_it_is_looked_at_is_a_message(self):
        path = self.file("c.safetensors", safetensors([("w", "F32", [512, 512], floats(*range(512 * 512)))]))
        with View(path) as view:
            view.api("files/0/t/0/tile", level=1)
            os.truncate(path, 4096)
            error = view.api("files/0/t/0/tile", level=0, x=1, y=1, status=410)["error"]
            self.assertIn(error["code"], ("file-changed", "truncated"))
            view.api("files/0/t/0/values", y=300, status=410)
            self.assertEqual(view.done(view.api("files/0/t/0/exact", "POST")["job"])["state"], "failed")
            self.assertEqual(view.api("files")["files"][0]["tensors"], 1)  # it lives

    def test_a_file_that_is_replaced_or_written_to_while_it_is_looked_at_is_never_mixed(self):
        def content(value):
            return safetensors([("w", "F32", [512, 512], floats(value) * (512 * 512))])

        path, other = self.file("r.safetensors", content(1)), self.file("other.safetensors", content(2))
        with View(path) as view:
            self.assertEqual(view.api("files/0/t/0/values", w=1, h=1)["rows"], [["1"]])
            os.replace(other, path)  # the one that was opened is still there for whoever has it open
            self.assertEqual(view.api("files/0/t/0/values", x=1, w=1, h=1)["rows"], [["1"]])
            self.assertEqual(view.done(view.api("files/0/t/0/exact", "POST")["job"])["state"], "done")
            self.assertEqual([view.api("files/0/t/0/summary", exact=1)[key] for key in ("min", "max")], [1, 1])
        with View(path) as view:
            with open(path, "r+b") as file:
                file.write(content(3))
            job = view.done(view.api("files/0/t/0/exact", "POST")["job"])
            self.assertEqual((job["state"], job["error"]["code"]), ("failed", "file-changed"))
            self.assertEqual(view.api("files")["files"][0]["tensors"], 1)  # it lives

    def test_a_job_can_be_cancelled_and_begun_again(self):
        path = write_hollow(self.folder / "big.safetensors", 8 << 30)
        with View(path) as view:
            job = view.api("files/0/t/0/exact", "POST")["job"]
            self.assertEqual(view.api("files/0/t/0/exact", "POST")["job"], job)  # one a tensor
            self.assertEqual(view.api("files/0/t/0/summary", exact=1, status=202)["job"], job)
            self.assertFalse(view.api("files/0/t/0/summary")["exact"])
            view.api(f"jobs/{job}", "DELETE")
            self.assertEqual(view.done(job)["state"], "cancelled")
            again = view.api("files/0/t/0/exact", "POST")["job"]
            self.assertNotEqual(again, job)
            view.api("jobs/99", status=404)

    def test_whoever_hangs_up_leaves_the_others_served(self):
        with View(self.file("d.safetensors", safetensors([("big", "U8", [64 << 20], bytes(64 << 20))]))) as view:
            for _ in range(20):
                with view.connect() as client:
                    client.sendall(f"GET /api/1/files/0/t/0/npy HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer {view.token}\r\n\r\n".encode())
                    self.assertTrue(client.recv(100).startswith(b"HTTP/1.1 200 "))
            self.assertEqual(len(view.api("files/0/t/0/npy")), 128 + (64 << 20))


if __name__ == "__main__":
    unittest.main()
