#!/usr/bin/env python3
"""Seeds for age_fuzz: files of age's own, for the identity of the target, for two and for another one; headers by hand."""
import base64
import pathlib
import sys

FILES = {
    "empty": (
        "YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBGbHZRYldtWVA4YVNjbTA4S1NJc2p6UFNlOHcrUmcvdkpQZndKSDFPWmp3"
        "CkNxRWlRU0lJcGxrdmlQR0pmdHNDeFUvbWV1M1FBelJFUGNFTGtNMk5jcWcKLS0tIEMydkZVdVlQUlhPRmhSUVY2Z3dqNld0Z1JZ"
        "MEZQbTNMd0FQUm13YUZRY0EKK3ngoZoJV7RXoJA1aGtLnacmsbpAsLctK7s39SvBxDI="
    ),
    "two": (
        "YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBhRFBYYUpOZzFzamU2L1A3TVNscHBQc0d6QkZKdVpqZGxoZkM2MlFsdUVR"
        "CjU4TWtGWXZUYU54dGh2WDJscENXVjQvUENXc3VQV3ZyNDlic1dGcEFya2sKLT4gWDI1NTE5IEFiSEsyVUx4N3BhZkdYNDI0Wm12"
        "RzBrUkFNeWF6cHYvK1dDK1FJdTR3eXMKcVBBYjNPMS83QktNQ1RyU3RScVdZQS91RWhFbkRjdGZBSWZsYmp4ZWtwMAotLS0gdTQw"
        "RXlwMkQwZ1hLaGE3TTREblJpVWF0VitEenQxblQ2MGhyYkFVSVIxSQp1W2Gr/pcEiTeSKfE4EHz0CkabkUat7gsc6Y9jR6ErW16W"
        "6o2AWoY="
    ),
    "other": (
        "YWdlLWVuY3J5cHRpb24ub3JnL3YxCi0+IFgyNTUxOSBlTmFXeDVKMTZma29OOEYxU2dCY1JHc3FxZlAxaHJySXhWQzdrNDVybWpn"
        "CnhHMGdCMXdhK3IvMEpmYWZ1R2J1ZUhYVVRSYmZDMEE1bHRvL3RuSVNhTGsKLS0tIFZLM01oL1pSVnpsOFFoUnVKNEhkWHRIck1H"
        "bmp3bWd6SFp5NWpIU0xwMXMKuO2fIB0w5LPxGs5br4k9wEzQt0wgpapilsdFAgy5zDciSZdz4dJ9"
    ),
}
MAC = b"--- " + b"A" * 43 + b"\n"
HEADERS = {
    "scrypt": b"-> scrypt AAAAAAAAAAAAAAAAAAAAAA 18\n" + b"A" * 43 + b"\n",
    "scrypt_dear": b"-> scrypt AAAAAAAAAAAAAAAAAAAAAA 30\n" + b"A" * 43 + b"\n",
    "long_body": b"-> x y z\n" + (b"A" * 64 + b"\n") * 3 + b"\n",
    "low_order": b"-> X25519 " + b"A" * 43 + b"\n" + b"A" * 43 + b"\n",
    "none": b"",
}


def main(folder):
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in FILES.items():
        (folder / name).write_bytes(base64.b64decode(text))
    for name, stanzas in HEADERS.items():
        (folder / name).write_bytes(b"age-encryption.org/v1\n" + stanzas + MAC + bytes(33))


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1]))
