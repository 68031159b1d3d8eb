"""Makes files of tokens in FOLDER with NumPy, as Megatron and llm.c write them, and what must come of them."""
import os, struct, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from expect import *
import expect as made

os.chdir(sys.argv[1])
codes = {"uint8": 1, "int8": 2, "int16": 3, "int32": 4, "int64": 5, "float64": 6, "float32": 7, "uint16": 8}


def megatron(name, dtype, lengths, documents=True, modes=False):
    rng = np.random.default_rng(1)
    sequences = [rng.integers(0, 100, n).astype(dtype) for n in lengths]
    with open(name + ".bin", "wb") as f:
        for s in sequences:
            f.write(s.tobytes())
    with open(name + ".idx", "wb") as f:
        f.write(b"MMIDIDX\x00\x00" + struct.pack("<QBQQ", 1, codes[dtype], len(lengths), len(lengths) + 1))
        f.write(np.array(lengths, np.int32).tobytes())
        f.write((np.cumsum([0] + list(lengths))[:-1] * np.dtype(dtype).itemsize).astype(np.int64).tobytes())
        f.write(np.arange(len(lengths) + 1).astype(np.int64).tobytes())
        if modes:
            f.write(np.zeros(len(lengths), np.int8).tobytes())
    return [[s] for s in sequences]


for dtype in codes:
    for name, lengths in {"some": (3, 0, 5, 1), "same": (4, 4, 4), "one": (9,), "many": tuple(i % 7 for i in range(200))}.items():
        rows = megatron(f"{name}-{dtype}", dtype, lengths, modes=name == "same")
        for end in ".bin", ".idx":
            expect(f"{name}-{dtype}{end}", [f"tokens {dtype}()*"], rows)
try:  # Megatron's own writer, where it is installed
    import torch
    from megatron.core.datasets.indexed_dataset import IndexedDatasetBuilder
except ImportError as e:
    print("no Megatron here:", e, file=sys.stderr)
else:
    for dtype in np.uint16, np.int32:
        name = f"core-{np.dtype(dtype)}"
        b = IndexedDatasetBuilder(name + ".bin", dtype=dtype)
        for n in 5, 3, 8:
            b.add_item(torch.arange(n))
            b.end_document()
        b.finalize(name + ".idx")
        expect(name + ".bin", [f"tokens {np.dtype(dtype)}()*"], [[np.arange(n, dtype=dtype)] for n in (5, 3, 8)])
for name, magic, version, dtype in ("gpt2", 20240520, 1, np.uint16), ("llama", 20240801, 7, np.uint32):
    values = np.arange(1000, 1050, dtype=dtype)
    with open(name + ".bin", "wb") as f:
        f.write(np.array([magic, version, len(values)] + [0] * 253, np.int32).tobytes() + values.tobytes())
    d = np.dtype(dtype).name
    expect(name + ".bin", [f"tokens {d}(16,)"], [[values[i : i + 16]] for i in (0, 16, 32)], flag=f"tokens:{d}[16]")
    os.system(f"cp {name}.bin {name}-all.bin")
    refuse(f"{name}-all.bin", f"is one sequence of 50 tokens; --fields says how many a record has: --fields 'tokens:{d}[1024]'")
values = np.arange(64, dtype=np.uint16)
values.tofile("raw.bin")
expect("raw.bin", ["tokens uint16(32,)"], [[values[:32]], [values[32:]]], flag="tokens:uint16[32]", kind="tokens")
values.tofile("unknown.bin")
refuse("unknown.bin", "is a file of tokens that does not describe them", kind="tokens")
values.tofile("other.bin")
expect("other.bin", ["x int32(8,)"], [[values.view(np.int32)[8 * i : 8 * i + 8]] for i in range(4)], flag="tokens=x:int32[8]", kind="tokens")
megatron("cut", "uint16", (3, 4))
with open("cut.bin", "r+b") as f:
    f.truncate(9)
refuse("cut.bin", "sequence 1 of 4 tokens from byte 6 is not in the .bin of 9 bytes")
megatron("typed", "uint16", (3, 4))
refuse("typed.bin", "contains lists of uint16; :int32[4] cannot convert them", flag="tokens:int32[4]")
print(made.count)
