"""Writes chunks of blosc to the folder of the first argument, named COMPRESSOR-SHUFFLE-ELEMENT-COUNT-BLOCK,
for TestDecode, which knows their data. "some" as the second argument: those that are committed."""
import functools
import sys
import numpy as np
from numcodecs import blosc

@functools.cache
def data(element, count):
    values = (i // 3 * 256 + i * i % 11 for i in range(count))
    return b"".join((v % 256 ** min(element, 8)).to_bytes(element, "little") for v in values)

some = sys.argv[2:] == ["some"]
for compressor in "blosclz", "lz4", "lz4hc", "zlib", "zstd":
    for shuffle in 0, 1, 2:
        for element in (4,) if some else (1, 2, 3, 4, 8, 16, 17):
            for count, block in ((2003, 4096),) if some else ((0, 0), (1, 0), (9, 0), (100, 0), (2003, 0), (2003, 4096), (2003, 4100), (70003 // element, 0)):
                plain = np.frombuffer(data(element, count), dtype=f"V{element}")
                chunk = blosc.compress(plain, compressor.encode(), 5, shuffle, block)
                open(f"{sys.argv[1]}/{compressor}-{shuffle}-{element}-{count}-{block}.blosc", "wb").write(chunk)
