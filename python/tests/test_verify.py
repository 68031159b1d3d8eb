import os

import numpy as np

import penstock
from penstock._read import crc32c

from . import data

setUpModule = data.name_programs


class VerifyTest(data.Copied):
    def test_all_is_well(self):
        for name in ("types", "images", "pixels", "large"):
            ds = penstock.open(data.path(name))
            self.assertEqual(ds.verify(), sum(ds[f].nbytes for f in ds.fields))

    def test_corruption_is_found(self):
        name = self.copy("images")
        count = len(penstock.open(name)["images"].parts[0])
        for at in (4096, 4096 + 480 * 100 + 7, 4096 + 480 * count - 1):
            flip(os.path.join(name, "images-00000.npy"), at)
            with self.assertRaisesRegex(penstock.CorruptError, "images-00000.npy") as caught:
                penstock.open(name).verify()
            (corruption,) = caught.exception.corruptions
            record = (at - 4096) // 480
            self.assertTrue(corruption.first <= record < corruption.end <= count, (at, corruption))
            flip(os.path.join(name, "images-00000.npy"), at)
        penstock.open(name).verify()

    def test_corruption_that_follows_is_one(self):
        name = self.copy("large")
        for record in (3, 4, 6):
            flip(os.path.join(name, "rows-00000.npy"), 4096 + 6000 * record)
        with self.assertRaisesRegex(penstock.CorruptError, "and 1 more") as caught:
            penstock.open(name).verify()
        self.assertEqual([(d.first, d.end) for d in caught.exception.corruptions], [(3, 5), (6, 7)])

    def test_checksums_are_checked_too(self):
        name = self.copy("images")
        flip(os.path.join(name, "labels-00000.crc.npy"), 4096)
        with self.assertRaisesRegex(penstock.CorruptError, "labels-00000.crc.npy"):
            penstock.open(name).verify()


class CRC32CTest(data.Copied):
    def test_of_rfc_3720(self):
        for value, want in (
            (bytes(32), 0x8A9136AA),
            (b"\xff" * 32, 0x62A8AB43),
            (bytes(range(32)), 0x46DD794E),
            (b"123456789", 0xE3069283),
            (b"a", 0xC1D04330),
            (b"", 0),
        ):
            row = np.frombuffer(value, np.uint8).reshape(1, -1)
            self.assertEqual(crc32c.of_blocks(row).tolist(), [want])
            self.assertEqual(crc32c.of_bytes(value), want)

    def test_of_any_length(self):
        bytewise, random = crc32c._bytewise, np.random.default_rng(1)
        for size in [*range(70), 255, 256, 257, 1023, 4096, 4099]:
            blocks = random.integers(0, 256, (3, size), np.uint8)
            want = [bytewise(b.tobytes()) for b in blocks]
            self.assertEqual(crc32c.of_blocks(blocks).tolist(), want, size)


def flip(path: str, at: int) -> None:
    with open(path, "r+b") as f:
        f.seek(at)
        byte = f.read(1)[0]
        f.seek(at)
        f.write(bytes([byte ^ 1]))
