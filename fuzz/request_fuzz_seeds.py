#!/usr/bin/env python3
"""Seeds for request_fuzz: what browsers send, and what they should not."""
import pathlib
import sys

folder = pathlib.Path(sys.argv[1])
folder.mkdir(parents=True, exist_ok=True)
plain = b"GET /api/1/files/0/t/12/tile?axes=0,1&level=3 HTTP/1.1\r\nHost: 127.0.0.1:8000\r\nAuthorization: Bearer 0123456789abcdef0123456789abcdef\r\nSec-Fetch-Site: same-origin\r\nConnection: keep-alive\r\n\r\n"
post = b"POST /api/1/session HTTP/1.1\r\nHost: [::1]:8000\r\nOrigin: http://[::1]:8000\r\nContent-Type: application/json\r\nContent-Length: 13\r\n\r\n{\"code\":\"00\"}"
seeds = [plain, post, plain.replace(b"GET", b"HEAD"), plain.replace(b"GET", b"DELETE"), plain.replace(b"GET", b"TRACE"), plain.replace(b"1.1\r", b"1.0\r"),
         plain.replace(b"Connection: keep-alive", b"Transfer-Encoding: chunked"), plain.replace(b"Connection: keep-alive", b"Host: other"),
         plain.replace(b"Connection: keep-alive", b"Content-Length: 5\r\nContent-Length: 6"), plain.replace(b"Connection: keep-alive", b"Expect: 100-continue"),
         plain.replace(b"\r\nSec", b"\r\n folded\r\nSec"), plain.replace(b"\r\n", b"\n"), plain.replace(b"Host: ", b"Host : "), post.replace(b"13", b"+13"), post.replace(b"13", b"99999999999999999999")]
for number, seed in enumerate(seeds):
    (folder / f"{number:02}").write_bytes(seed)
