# SPDX-License-Identifier: Apache-2.0
"""`ballast view` and whoever should not get anything from it: raw requests, each with its exact answer."""
import json
import os
import re
import resource
import select
import signal
import socket
import subprocess
import time
import unittest

from cli_testing import BALLAST, CliTest, environment, floats, safetensors, write_hollow
from view_testing import HEADERS, Answer, View

GET = "GET {} HTTP/1.1\r\nHost: {}\r\n{}Connection: close\r\n\r\n"


class Hostile(CliTest):
    def setUp(self):
        super().setUp()
        self.view = View(self.file("a.safetensors", safetensors([("w", "F32", [2], floats(1, 2))])))
        self.addCleanup(self.view.__exit__)
        self.here = f"127.0.0.1:{self.view.port}"
        self.bearer = f"Authorization: Bearer {self.view.token}\r\n"

    def ask(self, path="/api/1/files", host=None, fields=None):
        return GET.format(path, host or self.here, self.bearer if fields is None else fields).encode()

    def cases(self):
        """(what, request, status)"""
        ask, bearer, here = self.ask, self.bearer, self.here
        head = f"Host: {here}\r\n{bearer}"
        other = {"wrong name": "evil.example", "name that leads here": "127.0.0.1.evil.example", "name with a port": f"evil.example:{self.view.port}", "address of another machine": "192.168.0.1",
                 "every address": "0.0.0.0", "user before the name": f"localhost@{here}", "port that is none": "localhost:80a", "empty": "", "IPv6 of another": "[::2]", "end of a name": "localhost.evil"}
        for what, host in other.items():
            yield "host: " + what, ask(host=host) if host else f"GET / HTTP/1.1\r\nHost: \r\nConnection: close\r\n\r\n".encode(), 403
        for host in ("localhost", "LOCALHOST:9000", "[::1]:1", "127.0.0.1"):
            yield f"own name {host}", ask(host=host), 200
        yield "no token", ask(fields=""), 403
        yield "wrong token", ask(fields="Authorization: Bearer " + "0" * 32 + "\r\n"), 403
        yield "half a token", ask(fields=bearer[:-10] + "\r\n"), 403
        yield "another scheme", ask(fields=bearer.replace("Bearer", "Basic")), 403
        yield "token in the query", ask(f"/api/1/files?token={self.view.token}", fields=""), 403
        yield "token as a cookie", ask(fields=f"Cookie: token={self.view.token}\r\n"), 403
        yield "other origin", ask(fields=bearer + "Origin: http://evil.example\r\n"), 403
        yield "no origin of a sandbox", ask(fields=bearer + "Origin: null\r\n"), 403
        yield "origin of another port", ask(fields=bearer + "Origin: http://127.0.0.1:1\r\n"), 403
        yield "origin with TLS", ask(fields=bearer + f"Origin: https://{here}\r\n"), 403
        yield "own origin", ask(fields=bearer + f"Origin: http://{here}\r\n"), 200
        yield "from another site", ask(fields=bearer + "Sec-Fetch-Site: cross-site\r\n"), 403
        yield "from a neighbour", ask(fields=bearer + "Sec-Fetch-Site: same-site\r\n"), 403
        yield "page from another site", ask("/", fields="Sec-Fetch-Site: cross-site\r\n"), 403
        yield "typed in", ask("/", fields="Sec-Fetch-Site: none\r\n"), 200
        for method in ("TRACE", "OPTIONS", "PUT", "CONNECT", "get"):
            yield method, ask().replace(b"GET", method.encode(), 1), 405
        yield "POST to a page", f"POST / HTTP/1.1\r\n{head}Content-Length: 0\r\nConnection: close\r\n\r\n".encode(), 405
        yield "DELETE of a file", f"DELETE /api/1/files HTTP/1.1\r\n{head}Connection: close\r\n\r\n".encode(), 405
        yield "chunks", f"POST /api/1/alive HTTP/1.1\r\n{head}Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode(), 501
        yield "chunks and a length", f"POST /api/1/alive HTTP/1.1\r\n{head}Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n".encode(), 501
        yield "two hosts", f"GET / HTTP/1.1\r\n{head}Host: {here}\r\n\r\n".encode(), 400
        yield "two lengths", f"POST /api/1/alive HTTP/1.1\r\n{head}Content-Length: 0\r\nContent-Length: 0\r\n\r\n".encode(), 400
        yield "two tokens", f"GET /api/1/files HTTP/1.1\r\n{head}{bearer}\r\n".encode(), 400
        yield "no host", b"GET / HTTP/1.1\r\n\r\n", 400
        yield "signed length", f"POST /api/1/alive HTTP/1.1\r\n{head}Content-Length: +1\r\n\r\n".encode(), 400
        yield "endless length", f"POST /api/1/alive HTTP/1.1\r\n{head}Content-Length: {'9' * 40}\r\n\r\n".encode(), 413
        yield "long body", f"POST /api/1/alive HTTP/1.1\r\n{head}Content-Length: 65537\r\n\r\n".encode(), 413
        yield "expectation", f"POST /api/1/alive HTTP/1.1\r\n{head}Expect: 100-continue\r\nContent-Length: 1\r\n\r\n".encode(), 417
        yield "head of a megabyte", b"GET / HTTP/1.1\r\nX: " + b"x" * (1 << 20) + b"\r\n\r\n", 431
        yield "path of a megabyte", b"GET /" + b"x" * (1 << 20) + b" HTTP/1.1\r\n\r\n", 431
        yield "very many fields", b"GET / HTTP/1.1\r\n" + b"X: 1\r\n" * 100 + b"\r\n", 431
        yield "folded line", f"GET / HTTP/1.1\r\nX: a\r\n b\r\n{head}\r\n".encode(), 400
        yield "space before the colon", f"GET / HTTP/1.1\r\nX : a\r\n{head}\r\n".encode(), 400
        yield "zero byte", f"GET / HTTP/1.1\r\nX: a\0b\r\n{head}\r\n".encode(), 400
        yield "lone line feed", f"GET / HTTP/1.1\r\nX: a\nHost: evil\r\n{head}\r\n".encode(), 400
        yield "HTTP/1.0", f"GET / HTTP/1.0\r\n{head}\r\n".encode(), 505
        yield "HTTP/2", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505
        yield "no version", b"GET /\r\n\r\n", 400
        yield "TLS", b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n", 400
        yield "whole URL", f"GET http://{here}/ HTTP/1.1\r\n{head}\r\n".encode(), 400
        yield "fragment", f"GET /#a HTTP/1.1\r\n{head}\r\n".encode(), 400
        for path in ("/../etc/passwd", "/%2e%2e/etc/passwd", "//etc/passwd", "/index.html/", "/./index.html", "/index%2ehtml", "/api/1/files/../files", "/api/1/%66iles", "/api/1/files/00", "/api/1/files/0/t/-1",
                     "/api/1/files/0/t/18446744073709551616", "/api/2/files", "/api/1/", "/api/1/files/", "/api/1/files/0/t/1", "/api/1/files/1/tree"):
            yield path, ask(path), 404
        yield "half a percent", ask("/api/1/files/0/find?q=%4"), 400
        yield "no hexadecimal", ask("/api/1/files/0/find?q=%zz"), 400

    def test_every_hostile_request_gets_its_answer_and_all_header_fields(self):
        cases = list(self.cases())
        self.assertGreaterEqual(len(cases), 40)
        for what, request, status in cases:
            with self.subTest(what):
                answer = self.view.raw(request)
                self.assertEqual(answer.status, status, answer.body[:300])
                for name, value in HEADERS.items():
                    self.assertEqual(answer.fields.get(name), value)
                self.assertNotIn("Access-Control-Allow-Origin", answer.fields)
                self.assertEqual(int(answer.fields["Content-Length"]), len(answer.body))
                if status >= 400:
                    self.assertEqual(set(answer.json()["error"]), {"code", "where", "message"})
                    self.assertNotIn(self.view.token.encode(), answer.body)
        self.assertEqual(self.view.raw(self.ask()).status, 200)  # it lives

    def test_the_code_gives_the_token_once(self):
        # The code is what the browser is started with: a stand-in for xdg-open writes it down.
        os.chmod(self.file("xdg-open", b"#!/bin/sh\necho \"$1\" > \"$OPENED\"\n"), 0o755)
        opened = self.folder / "opened"
        env = environment(DISPLAY=":9", OPENED=str(opened), PATH=f"{self.folder}:{os.environ['PATH']}")
        with View(self.folder / "a.safetensors", env=env):  # with --no-open
            self.assertFalse(opened.exists())
        process = subprocess.Popen([BALLAST, "view", str(self.folder / "a.safetensors"), "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env)
        try:
            for _ in range(500):
                if opened.exists() and opened.read_text().endswith("\n"):
                    break
                time.sleep(0.01)
            url = opened.read_text().strip()
            self.assertRegex(url, r"^http://127\.0\.0\.1:\d+/#code=[0-9a-f]{32}$")
            port, code = int(url.split(":")[2].split("/")[0]), url.split("=")[1]
            def redeem(code):
                body = json.dumps({"code": code})
                with socket.create_connection(("127.0.0.1", port), timeout=30) as client:
                    client.sendall(f"POST /api/1/session HTTP/1.1\r\nHost: localhost\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n{body}".encode())
                    return Answer(b"".join(iter(lambda: client.recv(65536), b"")))
            self.assertEqual(redeem("0" * 32).status, 403)
            token = redeem(code).json()["token"]
            self.assertRegex(token, r"^[0-9a-f]{32}$")
            self.assertNotEqual(token, code)
            self.assertEqual(redeem(code).status, 403)
            self.assertEqual(redeem(5).status, 400)
            process.send_signal(signal.SIGINT)
            output, errors = process.communicate(timeout=30)
            self.assertIn(token, output.decode())
            self.assertNotIn(code, output.decode())
            self.assertIn("used a second time", errors.decode())
        finally:
            process.kill()
            process.communicate()

    def test_a_head_that_does_not_end_is_given_up(self):
        with self.view.connect() as client:
            client.sendall(b"GET / HTTP/1.1\r\n")
            start = time.monotonic()
            answer = Answer(b"".join(iter(lambda: client.recv(65536), b"")))
        self.assertEqual(answer.status, 408)
        self.assertGreater(time.monotonic() - start, 5)  # ten seconds; a loaded machine may count them late, not early

    def test_of_200_connections_at_once_64_are_served_and_the_others_told(self):
        clients = [self.view.connect() for _ in range(200)]
        try:
            answered, before = set(), -1
            while len(answered) != before:  # until nothing more comes
                before = len(answered)
                answered.update(select.select([c for c in clients if c not in answered], [], [], 1)[0])
            refused = len(answered)
            self.assertEqual(refused, 200 - 64)
            self.assertTrue(all(c.recv(4096).startswith(b"HTTP/1.1 503 ") for c in answered))
            served = next(c for c in clients if c not in answered)
            served.sendall(self.ask())
            self.assertTrue(served.recv(65536).startswith(b"HTTP/1.1 200 "))
            self.assertLess(self.view.threads(), 90)
        finally:
            for client in clients:
                client.close()
        for _ in range(300):
            if self.view.threads() < 20:
                break
            time.sleep(0.02)
        self.assertLess(self.view.threads(), 20)
        self.assertEqual(self.view.raw(self.ask()).status, 200)

    def test_without_a_thread_for_a_connection_it_is_told_and_the_others_are_served(self):
        process = self.view.process.pid
        self.view.api("files")
        with open(f"/proc/{process}/status") as file:
            size = int(re.search(r"VmSize:\s+(\d+)", file.read()).group(1)) * 1024
        limit = resource.prlimit(process, resource.RLIMIT_AS)
        resource.prlimit(process, resource.RLIMIT_AS, (size + (1 << 20), limit[1]))  # no stack fits in any more
        clients = [self.view.connect() for _ in range(30)]
        try:
            told = select.select(clients, [], [], 5)[0]
            self.assertTrue(told)
            for client in told:
                answer = Answer(b"".join(iter(lambda: client.recv(65536), b"")))
                self.assertEqual(answer.status, 503)
                self.assertIn("no thread", answer.json()["error"]["message"])
        finally:
            resource.prlimit(process, resource.RLIMIT_AS, limit)
            for client in clients:
                client.close()
        self.assertEqual(len(self.view.api("files")["files"]), 1)

    def test_one_connection_serves_many_requests_and_bytes_one_by_one(self):
        with self.view.connect() as client:
            for _ in range(3):
                for byte in f"GET /api/1/files HTTP/1.1\r\nHost: {self.here}\r\n{self.bearer}\r\n".encode():
                    client.send(bytes([byte]))
                data = b""
                while b"\r\n\r\n" not in data or len(data.split(b"\r\n\r\n", 1)[1]) < int(Answer(data).fields["Content-Length"]):
                    data += client.recv(65536)
                self.assertEqual(Answer(data).status, 200)
                self.assertEqual(Answer(data).fields["Connection"], "keep-alive")

    def test_HEAD_has_the_fields_of_GET_and_no_body(self):
        get, head = self.view.raw(self.ask()), self.view.raw(self.ask().replace(b"GET", b"HEAD", 1))
        self.assertEqual(head.fields, get.fields)
        self.assertEqual(head.body, b"")


class Ends(CliTest):
    def test_quit_ends_it_with_0_and_frees_the_port(self):
        path = self.file("a.safetensors", safetensors([("w", "F32", [2], floats(1, 2))]))
        with View(path) as view:
            self.assertEqual(view.api("quit", "POST"), {})
            self.assertEqual(view.process.wait(30), 0)
            with View(path, options=["--port", str(view.port)]) as again:
                self.assertEqual(again.port, view.port)

    def test_a_port_that_is_taken_is_one_sentence(self):
        path = self.file("a.safetensors", safetensors([("w", "F32", [2], floats(1, 2))]))
        with View(path) as view:
            _, errors = self.run_tool("view", path, "--no-open", "--port", str(view.port), code=2)
            self.assertRegex(errors, rf"^ballast: port {view.port}: is taken by another program; .* \[invalid-argument\]\n$")

    def test_control_c_in_the_middle_of_a_job_ends_it_at_once(self):
        path = write_hollow(self.folder / "big.safetensors", 16 << 30)
        with View(path) as view:
            job = view.api("files/0/t/0/exact", "POST")["job"]
            self.assertEqual(view.api(f"jobs/{job}")["state"], "running")
            view.process.send_signal(signal.SIGINT)
            self.assertEqual(view.process.wait(30), -signal.SIGINT)  # a shell's 130

    def test_quit_cancels_what_runs(self):
        path = write_hollow(self.folder / "big.safetensors", 16 << 30)
        with View(path) as view:
            view.api("files/0/t/0/exact", "POST")
            view.api("quit", "POST")
            self.assertEqual(view.process.wait(30), 0)

    def test_without_anybody_it_ends_by_itself_and_stays_when_told(self):
        path = self.file("a.safetensors", safetensors([("w", "F32", [2], floats(1, 2))]))
        with View(path, options=["--idle", "1"]) as view, View(path, options=["--idle", "1", "--stay"]) as stays:
            self.assertEqual(view.process.wait(30), 0)
            self.assertIsNone(stays.process.poll())
            self.assertEqual(len(stays.api("files")["files"]), 1)


if __name__ == "__main__":
    unittest.main()
