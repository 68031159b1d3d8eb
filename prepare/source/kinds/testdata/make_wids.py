"""Makes WebDatasets in FOLDER with webdataset, indexes of them with wids_index, and what wids.ShardListDataset reads of them."""
import argparse, os, random, sys
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import webdataset, wids, wids.wids_index
from expect import *
import expect as made

os.chdir(sys.argv[1])
rnd = random.Random(1)


def shards(folder, counts):
    os.makedirs(folder)
    names, key = [], 0
    for k, n in enumerate(counts):
        names.append("%s/%03d.tar" % (folder, k))
        with webdataset.TarWriter(names[-1]) as w:
            for _ in range(n):
                w.write({"__key__": "%06d" % key, "txt": "text %d" % key, "cls": key % 7, "bin": bytes(rnd.randrange(256) for _ in range(key % 5))})
                key += 1
    return names


def put(name, index):
    with open(name, "w") as f:
        json.dump(index, f)
    read(name)


def read(name):
    rows = []
    for s in wids.ShardListDataset(name, transformations=[], cache_dir=None, localname=lambda url: url, keep=True):
        values = {k: v.read() if hasattr(v, "read") else v for k, v in s.items()}
        rows.append([values[".bin"], ints(int(values[".cls"])), values[".txt"]])
    expect(name, ["bin uint8()*", "labels int64()", "text uint8()* utf-8"], rows, kind="tar")


def entries(names, counts):
    return [{"url": n, "nsamples": c} for n, c in zip(names, counts)]


for k in range(40):
    folder, counts = "set%d" % k, [rnd.randrange(1, 6) for _ in range(rnd.randrange(1, 7))]
    names = shards(folder, counts)
    index = folder + ".json"
    if k % 4 == 0:  # by its program, with paths as they were given
        wids.wids_index.main_create(argparse.Namespace(files=names, output=index, name="", base=None, info=None))
        read(index)
        continue
    some = entries(names, counts)
    rnd.shuffle(some)
    if k % 4 == 1:
        some = some[:1 + len(some) // 2]
    if k % 4 == 2:
        for s in some:
            s["url"] = os.path.abspath(s["url"])
    if k % 4 == 3 and len(some) > 1:  # components have paths of their own
        more = [dict(s, url=os.path.abspath(s["url"])) for s in some[1:]]
        put(index, {"name": "x", "shardlist": some[:1], "wids_version": 1, "datasets": [{"name": "y", "shardlist": more}]})
        continue
    put(index, {"wids_version": 1, "shardlist": some, "name": folder})

print(made.count)
