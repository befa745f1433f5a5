# SPDX-License-Identifier: Apache-2.0
"""`ballast view` as its page sees it: the command started, requests by hand over a socket, answers taken apart."""
import contextlib
import http.client
import json
import os
import re
import signal
import socket
import struct
import subprocess
import time
from urllib.parse import urlencode

from cli_testing import BALLAST, environment

HEADERS = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob:; connect-src 'self'; frame-ancestors 'none'; base-uri 'none'; "
                               "form-action 'none'; require-trusted-types-for 'script'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cache-Control": "no-store",
}


class Answer:
    def __init__(self, raw):
        head, _, self.body = raw.partition(b"\r\n\r\n")
        lines = head.decode("latin-1").split("\r\n")
        self.status = int(lines[0].split(" ")[1]) if lines[0].startswith("HTTP/1.1 ") else 0
        self.fields = dict(line.split(": ", 1) for line in lines[1:])

    def json(self):
        return json.loads(self.body)


class View:
    """A running command: with View(file) as view."""

    def __init__(self, *files, options=(), env=None):
        self.process = subprocess.Popen([BALLAST, "view", *map(str, files), "--no-open", "--json", *options], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                        env=env or environment())
        text = b""
        while not text.rstrip().endswith(b"}"):
            line = self.process.stdout.readline()
            if not line:
                raise RuntimeError(self.process.communicate()[1].decode())
            text += line
        self.start = json.loads(text)
        self.port, self.token = re.fullmatch(r"http://127\.0\.0\.1:(\d+)/#token=([0-9a-f]{32})", self.start["url"]).groups()
        self.port = int(self.port)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        self.process.stdout.close()
        self.process.stderr.close()

    def connect(self):
        return socket.create_connection(("127.0.0.1", self.port), timeout=30)

    def raw(self, request):
        """The whole answer to these bytes, up to the end of the connection."""
        with self.connect() as client:
            with contextlib.suppress(OSError):  # refused before everything was sent
                client.sendall(request)
            answer = b""
            with contextlib.suppress(ConnectionResetError):
                while piece := client.recv(65536):
                    answer += piece
            return Answer(answer)

    def request(self, path, method="GET", body=None, token=True, headers=None):
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=60)
        fields = {"Authorization": f"Bearer {self.token}"} if token else {}
        connection.request(method, path, body, {**fields, **(headers or {})})
        answer = connection.getresponse()
        content = answer.read()
        connection.close()
        return answer, content

    def api(self, path, method="GET", body=None, /, *, status=200, **query):
        answer, content = self.request("/api/1/" + path + ("?" + urlencode(query) if query else ""), method, body)
        if answer.status != status:
            raise AssertionError(f"{path} {query}: {answer.status}, not {status}: {content[:500]}")
        return json.loads(content) if answer.getheader("Content-Type") == "application/json" else content

    def done(self, job):
        """Waits until a job is over: as long as it gets on, however slow the machine is."""
        reached, since = None, time.monotonic()
        while (state := self.api(f"jobs/{job}"))["state"] == "running":
            if state["done"] != reached:
                reached, since = state["done"], time.monotonic()
            if time.monotonic() - since > 60:
                raise AssertionError(f"job {job} stands still: {state}")
            time.sleep(0.01)
        return state

    def diff(self, **query):
        answer, content = self.request("/api/1/diff?" + urlencode(query))
        if answer.status == 202:
            self.done(json.loads(content)["job"])
            answer, content = self.request("/api/1/diff?" + urlencode(query))
        return json.loads(content)

    def tile(self, path, /, **query):
        """(head, rows of cells)"""
        content = self.api(path, **query)
        version, level, width, height, low, high, exact, nan = struct.unpack("<4I2f2I", content[:32])
        cells = struct.unpack(f"<{width * height}f", content[32:])
        return {"version": version, "level": level, "min": low, "max": high, "exact": exact, "nan": nan}, [cells[i * width : (i + 1) * width] for i in range(height)]

    def threads(self):
        return len(os.listdir(f"/proc/{self.process.pid}/task"))
