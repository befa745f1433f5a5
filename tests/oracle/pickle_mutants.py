"""Mutants of pickles: opcodes left out, repeated, exchanged or replaced, bytes changed, memo slots moved."""
from pickle_leaves import le

ANY_OP = [bytes([op]) for op in b"()]}012NRabdelostuQ.\x81\x85\x86\x87\x8f\x90\x91\x92\x93\x94\x97\x98"] + [
    b"q\0", b"q\1", b"h\0", b"h\1", b"p0\n", b"g0\n", b"r\2\0\0\0", b"j\1\0\0\0", b"K\1", b"\x8c\1a"]


def mutate(rng, ops):
    ops = list(ops)
    for _ in range(rng.choice((1, 1, 2, 4))):
        at = rng.randrange(len(ops)) if ops else 0
        what = rng.randrange(7)
        if what == 0 and ops:
            del ops[at]
        elif what == 1 and ops:
            ops.insert(at, ops[rng.randrange(len(ops))])
        elif what == 2:
            ops.insert(at, rng.choice(ANY_OP))
        elif what == 3 and ops:
            ops[at] = rng.choice(ANY_OP)
        elif what == 4 and ops:
            other = rng.randrange(len(ops))
            ops[at], ops[other] = ops[other], ops[at]
        elif what == 5 and ops:
            raw = bytearray(ops[at])
            raw[rng.randrange(len(raw))] = rng.randrange(256)
            ops[at] = bytes(raw)
        elif ops:
            memo = [i for i, op in enumerate(ops) if op[:1] in b"qrhjpg\x94" and op]
            if memo:
                ops[rng.choice(memo)] = rng.choice((b"q", b"h")) + le(rng.randrange(8), 1)
    return ops
