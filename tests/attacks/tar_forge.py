"""A tar writer that can lie: every header field may be overridden, checksums are right unless asked otherwise."""
BLOCK = 512


def padded(data):
    return data + bytes(-len(data) % BLOCK)


def header(name, size, kind=b"0", link=b"", **lie):
    """One 512-byte ustar header. Overrides: size_field, checksum, magic, prefix (all raw bytes), mode."""
    block = bytearray(BLOCK)

    def put(at, width, data):
        block[at:at + width] = data[:width].ljust(width, b"\0")

    put(0, 100, name)
    put(100, 8, lie.get("mode", b"0000644\0"))
    put(108, 8, b"0000000\0")
    put(116, 8, b"0000000\0")
    put(124, 12, lie.get("size_field", b"%011o\0" % size))
    put(136, 12, b"00000000000\0")
    put(148, 8, b" " * 8)
    put(156, 1, kind)
    put(157, 100, link)
    put(257, 8, lie.get("magic", b"ustar\x0000"))
    put(345, 155, lie.get("prefix", b""))
    put(148, 8, lie.get("checksum", b"%06o\0 " % sum(block)))
    return bytes(block)


def member(name, data, **lie):
    """Header and data; `lie` goes to the header."""
    return header(name, len(data), **lie) + padded(data)


def pax(**fields):
    """PAX extended header block(s) for the member that follows."""
    body = b""
    for key, value in fields.items():
        text = b" %s=%s\n" % (key.encode(), value)
        length = len(text) + 1
        while length != len(text) + len(b"%d" % length):
            length = len(text) + len(b"%d" % length)
        body += b"%d" % length + text
    return member(b"PaxHeaders/x", body, kind=b"x")


def pax_raw(body):
    return member(b"PaxHeaders/x", body, kind=b"x")


def gnu_long_name(name):
    return member(b"././@LongLink", name + b"\0", kind=b"L")


def archive(*members):
    """Join members and add the two closing zero blocks."""
    return b"".join(members) + bytes(2 * BLOCK)


def base256(number):
    """GNU binary size field (12 bytes, top bit set)."""
    return (number % (1 << 95) | 1 << 95).to_bytes(12, "big")
