"""Raw photographs in class folders: penstock.DataLoader against torchvision's ImageFolder and a prepared dataset.

    python3 raw.py PHOTOS FOLDER [IMAGES] [CLASSES]
    PEERS=huggingface,litdata,monai python3 raw.py ...    also these, which have to be installed
    FORMS=tar,csv,parquet python3 raw.py ...              the same photographs in these forms (parquet as on the Hugging Face Hub, by pyarrow)
    URL=s3://bucket/photos python3 raw.py ...             and at a URL to which FOLDER/photos-IMAGES-CLASSES was copied
    ROUNDS=3 python3 raw.py ...                           run all but PEERS three times, in turn, and print medians

PHOTOS is a tar or a folder of photographs. IMAGES of them (8,000), re-encoded with different quality where there are fewer,
go into CLASSES folders (1,000) in FOLDER, once. Each way runs in a process of its own, two workers each, on a warm page cache:

- the first batch: seconds from the start of the process;
- epoch 1 of penstock over the folder, with an empty cache, and epoch 2, when the dataset in the cache is complete;
- ImageFolder in torch's DataLoader with two workers;
- preprocess --keep-encoded and an epoch of its dataset, one after the other;
- of each of FORMS and of URL: the first batch, epoch 1, preprocess and an epoch of its dataset, epoch 2;
- of PEERS, epochs 1 and 2 in torch's DataLoader with two workers: Hugging Face's imagefolder with its cache, litdata's StreamingRawDataset,
  MONAI's PersistentDataset of decoded photographs.

A ratio is the median of those of the rounds, as the machine may be slower in one round than in another.
"""

from __future__ import annotations

import io
import json
import os
import shutil
import statistics
import subprocess
import sys
import tarfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
BATCH = 64

PENSTOCK = """
import json, os, sys, time
begun = float(sys.argv[1])
import penstock
from penstock.transforms import IMAGENET_MEAN, IMAGENET_STD, Normalize, RandomHorizontalFlip, RandomResizedCrop, ToTensor
train = [RandomResizedCrop(224), RandomHorizontalFlip(), ToTensor(), Normalize(IMAGENET_MEAN, IMAGENET_STD)]
loader = penstock.DataLoader(sys.argv[2], {batch}, shuffle=True, transforms=train, seed=1, num_workers=2, **json.loads(sys.argv[6]))
"""

TORCH = """
import io, json, os, sys, time
begun = float(sys.argv[1])
import torch
from PIL import Image
from torchvision import datasets, transforms as T
train = T.Compose([T.RandomResizedCrop(224), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize((.485, .456, .406), (.229, .224, .225))])
"""

TORCHVISION = "loader = torch.utils.data.DataLoader(datasets.ImageFolder(sys.argv[2], train), {batch}, shuffle=True, num_workers=2)\n"

PEERS = {
    "huggingface": """
from datasets import load_dataset
ds = load_dataset("imagefolder", data_dir=sys.argv[2], split="train", cache_dir=sys.argv[4])
ds.set_transform(lambda rows: {{"image": [train(i.convert("RGB")) for i in rows["image"]], "label": rows["label"]}})
collate = lambda rows: (torch.stack([r["image"] for r in rows]), torch.tensor([r["label"] for r in rows]))
loader = torch.utils.data.DataLoader(ds, {batch}, shuffle=True, num_workers=2, collate_fn=collate)
""",
    "litdata": """
from litdata import StreamingRawDataset
ds = StreamingRawDataset(sys.argv[2], cache_dir=sys.argv[4], transform=lambda data: (train(Image.open(io.BytesIO(data)).convert("RGB")), 0))
loader = torch.utils.data.DataLoader(ds, {batch}, shuffle=True, num_workers=2)
""",
    "monai": """
from monai.data import PersistentDataset
from monai.transforms import RandomizableTransform, Transform
class Decode(Transform):
    def __call__(self, sample):
        import numpy
        return {{**sample, "image": torch.from_numpy(numpy.asarray(Image.open(sample["path"]).convert("RGB")).copy())}}
class Train(RandomizableTransform):
    def __call__(self, sample):
        return {{**sample, "image": train(Image.fromarray(sample["image"].numpy()))}}
samples = [{{"path": path, "label": label}} for path, label in datasets.ImageFolder(sys.argv[2]).samples]
ds = PersistentDataset(samples, [Decode(), Train()], sys.argv[4])
collate = lambda rows: (torch.stack([r["image"] for r in rows]), torch.tensor([r["label"] for r in rows]))
loader = torch.utils.data.DataLoader(ds, {batch}, shuffle=True, num_workers=2, collate_fn=collate)
""",
}

EPOCHS = """
first, epochs = None, []
for epoch in range(int(sys.argv[5])):
    start, records = time.time(), 0
    for images, labels in loader:
        first = first or time.time() - begun
        records += len(labels)
    epochs.append(time.time() - start)
    end = time.time() + 600
    while epoch == 0 and sys.argv[3] == "auto" and time.time() < end:
        if any("manifest.json" in names for path, _, names in os.walk(sys.argv[4]) if ".new" not in path):
            break
        time.sleep(0.2)
print(json.dumps({{"first": first, "epochs": epochs, "records": records, "complete": time.time() - begun}}))
"""


def photographs(source: str) -> list[bytes]:
    """Return the files of the photographs in a tar or a folder."""
    found = []
    if os.path.isdir(source):
        for base, _, names in os.walk(source):
            for name in sorted(names):
                if name.lower().endswith((".jpg", ".jpeg")):
                    with open(os.path.join(base, name), "rb") as f:
                        found.append(f.read())
        return found
    with tarfile.open(source) as tar:
        for member in tar:
            file = tar.extractfile(member)
            if member.name.lower().endswith((".jpg", ".jpeg")) and file is not None:
                found.append(file.read())
    return found


def make(source: str, folder: str, images: int, classes: int) -> str:
    """Create the class folders unless they exist."""
    from PIL import Image

    root = os.path.join(folder, f"photos-{images}-{classes}")
    if os.path.isdir(root):
        return root
    files = photographs(source)
    if not files:
        sys.exit(f"{source}: there are no .jpg files in it")
    for i in range(images):
        target = os.path.join(root + ".new", f"class{i % classes:04}")
        os.makedirs(target, exist_ok=True)
        again, at = divmod(i, len(files))
        data = files[at]
        if again:
            out = io.BytesIO()
            Image.open(io.BytesIO(data)).convert("RGB").save(out, "JPEG", quality=95 - 3 * (again % 16))
            data = out.getvalue()
        with open(os.path.join(target, f"{i:06}.jpg"), "wb") as f:
            f.write(data)
    os.rename(root + ".new", root)
    return root


def run(program: str, dataset: str, prepare: str, cache: str, epochs: int, output: str = "") -> dict[str, float]:
    """Run a way in a process of its own."""
    text = (program + EPOCHS).format(batch=BATCH)
    environment = {**os.environ, "PYTHONPATH": os.path.join(HERE, "..")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # pip compiles what it installs: do not measure the compiler
    options = {"prepare": prepare, **({} if prepare == "off" else {"cache_dir": cache}), **({"output": output} if output else {})}
    words = [sys.executable, "-c", text, str(time.time()), dataset, prepare, cache, str(epochs), json.dumps(options)]
    done = subprocess.run(words, env=environment, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout.splitlines()[-1])


def prepared(photos: str, path: str) -> float:
    """Make the dataset, and return the seconds that it took."""
    sys.path.append(os.path.join(HERE, ".."))  # after an installed wheel
    import penstock

    start = time.time()
    penstock.preprocess(photos, path, keep_encoded=True, overwrite=True, progress=False)
    return time.time() - start


def form_of(photos: str, form: str) -> str:
    """Return the photographs in another form, created unless it exists."""
    path = f"{photos}.{form}"
    if os.path.exists(path):
        return path
    names = [os.path.relpath(os.path.join(base, name), photos) for base, _, files in sorted(os.walk(photos)) for name in sorted(files)]
    classes = sorted({os.path.dirname(name) for name in names})
    if form == "tar":
        with tarfile.open(path + ".new", "w", format=tarfile.USTAR_FORMAT) as tar:
            for name in names:
                tar.add(os.path.join(photos, name), name)
    elif form == "csv":
        with open(path + ".new", "w") as f:
            f.write("image,label\n")
            f.writelines(f"{os.path.join(os.path.basename(photos), name)},{os.path.dirname(name)}\n" for name in names)
    elif form == "parquet":
        import pyarrow
        import pyarrow.parquet

        image = pyarrow.struct([("bytes", pyarrow.binary()), ("path", pyarrow.string())])
        features = {"image": {"_type": "Image"}, "label": {"names": classes, "_type": "ClassLabel"}}
        meta = {"huggingface": json.dumps({"info": {"features": features}})}
        schema = pyarrow.schema([("image", image), ("label", pyarrow.int64())], metadata=meta)
        with pyarrow.parquet.ParquetWriter(path + ".new", schema) as out:
            for first in range(0, len(names), 1000):
                rows = [
                    {"image": {"bytes": _bytes(os.path.join(photos, n)), "path": n}, "label": classes.index(os.path.dirname(n))}
                    for n in names[first : first + 1000]
                ]
                out.write_table(pyarrow.Table.from_pylist(rows, schema))
    else:
        sys.exit(f"FORMS: {form!r} is none of tar, csv, parquet")
    os.rename(path + ".new", path)
    return path


def _bytes(path: str) -> bytes:
    with open(path, "rb") as f:
        return f.read()


def empty(cache: str) -> str:
    """Return the folder of a cache that has nothing."""
    shutil.rmtree(cache, ignore_errors=True)
    return cache


def measured(source: str, cache: str, dataset: str, output: str = "") -> dict[str, float]:
    """Return what a source takes that is prepared while it is first read, and preparing it first and reading it then."""
    auto = run(PENSTOCK, source, "auto", empty(cache), 2, output)
    took = prepared(source, dataset)
    epochs = run(PENSTOCK, dataset, "off", cache, 2, output)["epochs"]
    return {
        f"first batch, empty cache{output and ', NumPy'}, s (at most 1.0)": auto["first"],
        "epoch 1 while it prepares, s": auto["epochs"][0],
        "preprocess, s": took,
        "epoch 1 of its dataset, s": epochs[0],
        "epoch 1 / (preprocess + epoch 1) (at most 1.05)": auto["epochs"][0] / (took + epochs[0]),
        "epoch 2 / epoch 2 of its dataset (at most 1.03)": auto["epochs"][1] / epochs[1],
    }


def folder_of_photos(photos: str, cache: str, dataset: str) -> dict[str, float]:
    """Return what the folder takes, next to torchvision."""
    of = measured(photos, cache, dataset)
    of["first batch, dataset in the cache, s"] = run(PENSTOCK, photos, "auto", cache, 1)["first"]
    of["first batch, output='numpy', which imports no torch, s"] = run(PENSTOCK, photos, "auto", empty(cache), 1, "numpy")["first"]
    of["epoch 1, prepare='off', s"] = run(PENSTOCK, photos, "off", cache, 1)["epochs"][0]
    of["epoch 1 of ImageFolder, 2 workers, s"] = run(TORCH + TORCHVISION, photos, "off", cache, 1)["epochs"][0]
    of["ImageFolder / epoch 1 (at least 2)"] = of["epoch 1 of ImageFolder, 2 workers, s"] / of["epoch 1 while it prepares, s"]
    return of


def against(name: str, photos: str, folder: str, of: dict[str, float]) -> dict[str, float]:
    """Return what a peer takes, next to the folder of photographs."""
    got = run(TORCH + PEERS[name], photos, "off", empty(os.path.join(folder, name)), 2)
    shutil.rmtree(os.path.join(folder, name), ignore_errors=True)
    ratios = {f"epoch {k + 1} / penstock's epoch 1": got["epochs"][k] / of["epoch 1 while it prepares, s"] for k in range(2)}
    return {"first batch, s": got["first"], **ratios}


def main() -> None:
    """Print a line for each number."""
    if len(sys.argv) < 3:
        sys.exit(__doc__)
    source, folder = sys.argv[1:3]
    images, classes = (int(a) for a in [*sys.argv[3:], *("8000", "1000")[len(sys.argv) - 3 :]])
    photos = make(source, folder, images, classes)
    cache, dataset = os.path.join(folder, "cache"), os.path.join(folder, "dataset")
    photographs(photos)  # into the page cache
    sources = {form: form_of(photos, form) for form in filter(None, os.environ.get("FORMS", "").split(",")) if form != "dir"}
    sources |= {url: url for url in filter(None, [os.environ.get("URL")])}
    rounds: list[dict[str, float]] = []
    for _ in range(int(os.environ.get("ROUNDS", "1"))):
        rows = folder_of_photos(photos, cache, dataset)
        for name, path in sources.items():
            rows |= {f"{name}: {row}": value for row, value in measured(path, cache, dataset, "numpy").items()}
        rounds.append(rows)
    middle = {row: statistics.median(r[row] for r in rounds) for row in rounds[0]}
    for name in filter(None, os.environ.get("PEERS", "").split(",")):
        middle |= {f"{name}: {row}": value for row, value in against(name, photos, folder, middle).items()}
    for row, value in middle.items():
        print(f"{row:60} {value:8.3f}")


if __name__ == "__main__":
    main()
