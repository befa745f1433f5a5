# SPDX-License-Identifier: Apache-2.0
"""`ballast view`: what happens to a file, a job or a connection while somebody looks."""
import os
import random
import threading
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

    def test_many_who_ask_at_once_get_the_answers_of_one_alone(self):
        """Of the tsan preset's command, this is what shows that no two threads touch one thing."""
        tensors = [(f"layers.{i // 4}.w{i % 4}", "F32", [40, 50], floats(*[(i + k) % 17 for k in range(2000)])) for i in range(40)]
        paths = [self.file(f"{name}.safetensors", safetensors(tensors[start:])) for name, start in (("a", 0), ("b", 1))]
        asked = ["files", "files/0/tree?fold=0", "files/1/tree", "files/0/find?q=w3&sort=name", "files/0/treemap?w=300&h=200", "files/0/layout", "files/0/scan", "diff?sort=file", "diff/t/3/tile?stat=sign",
                 *[f"files/{f}/t/{n}/{what}" for f, n, what in ((0, 7, "summary"), (1, 7, "tile"), (0, 8, "lines?axis=1"), (1, 9, "values"), (0, 9, "npy"), (1, 3, "csv"))]]  # fmt: skip
        with View(*paths) as alone:
            alone.diff()
            expected = {path: alone.api(path) for path in asked}
        wrong = []

        def ask(view, seed):
            choose = random.Random(seed)
            for path in choose.sample(asked * 2, len(asked) * 2):
                if choose.random() < 0.3:
                    view.request(f"/api/1/files/0/t/{choose.randrange(40)}/exact", "POST")  # a job, or 409
                    view.request(f"/api/1/jobs/{1 + choose.randrange(9)}", choose.choice(["GET", "DELETE"]))
                answer = view.api(path)
                if answer != expected[path]:
                    wrong.append((path, answer))

        with View(*paths) as view:
            view.diff()
            threads = [threading.Thread(target=ask, args=(view, seed)) for seed in range(12)]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join()
            self.assertEqual(wrong, [])
            view.api("quit", "POST")
            self.assertEqual(view.process.wait(60), 0)


if __name__ == "__main__":
    unittest.main()
