"""Files as communities write them, each beside its Dataset by hand: DataLoader, open and preprocess must yield the same.

A layout is a function that writes its file into a folder, and returns the path and the records that h5py, NumPy and
plain Python read. What DataLoader makes of the path alone is the outcome: right; declared, with the choice that its
refusal offers; converted, by the command or program in its refusal; or refused. The table at the end has all of them.
"""

import collections
import io
import json
import os
import re
import shlex
import shutil
import subprocess
import tempfile
import unittest

import numpy as np

import penstock

from . import data
from .test_units import natural

try:
    import h5py
    from PIL import Image
    from safetensors.numpy import save_file

    MISSING = ""
except ImportError as e:
    MISSING = f"no {e.name}"

setUpModule = data.name_programs

#: The outcome and the choices of each layout, and the function that writes it.
LAYOUTS = {}


def layout(outcome="right", *choices, split=None):
    """Register a layout. ``choices`` are those that people take of what refusals offer, such as "--records *[:]"."""

    def register(write):
        assert write.__name__ not in LAYOUTS, write.__name__
        LAYOUTS[write.__name__] = (write, outcome, choices, split)
        return write

    return register


def name(path):
    """Return the name of the field that a dataset makes."""
    return path


def some(*shape, dtype="f4", high=200):
    """Return random values."""
    g = np.random.default_rng(sum(shape) + 1)
    return g.integers(0, high, shape).astype(dtype) if np.dtype(dtype).kind in "iub" else g.normal(size=shape).astype(dtype)


def put(path, tree, attrs=()):
    """Write an HDF5 file of arrays by their paths, and attributes by theirs."""
    with h5py.File(path, "w") as f:
        for key, value in tree.items():
            f[key] = value
        for key, value in dict(attrs).items():
            where, _, key = key.rpartition("@")
            f[where or "/"].attrs[key] = value
    return path


def read(d):
    """Return a dataset as an array, or what it is without axes."""
    if h5py.check_string_dtype(d.dtype):
        return d.asstr()[()]
    return d[()]


def members(g, path=""):
    """Return the arrays of a group by their paths in it."""
    if isinstance(g, h5py.Dataset):
        return {"data": read(g)}
    found = {}
    g.visititems(lambda path, d: found.update({path: read(d)}) if isinstance(d, h5py.Dataset) else None)
    return found


def rows(arrays, without=(), **more):
    """Return the rows of arrays of one length."""
    arrays = {k: v for k, v in arrays.items() if k not in without}
    n = len(next(iter(arrays.values())))
    assert all(len(a) == n for a in arrays.values()), {k: len(a) for k, a in arrays.items()}
    return [{name(k): a[i] for k, a in arrays.items()} | {k: v[i] for k, v in more.items()} for i in range(n)]


def steps(units, without=()):
    """Return the rows of units, with the numbers of episode and step."""
    list_ = []
    for k, arrays in enumerate(units):
        for i, r in enumerate(rows(arrays, without)):
            list_.append(r | {"episode": k, "step": i})
    return list_


def whole(units, without=()):
    """Return units as records."""
    return [{name(k): v for k, v in u.items() if k not in without} for u in units]


def groups(path, above="/", order=natural):
    """Return the arrays of each group below another."""
    with h5py.File(path) as f:
        return [members(f[above][k]) for k in order(f[above])]


def files_of(folder):
    return [os.path.join(folder, n) for n in natural(os.listdir(folder))]


def encoded(i, form="JPEG"):
    b = io.BytesIO()
    Image.fromarray((some(9, 12, 3, dtype="u1") + i).astype("u1")).save(b, form)
    return b.getvalue()


def vlen(f, path, values, dtype="u1"):
    d = f.create_dataset(path, (len(values),), h5py.vlen_dtype(dtype))
    for i, v in enumerate(values):
        d[i] = np.frombuffer(v, dtype) if isinstance(v, bytes) else v


class Class(str):
    """A value whose label has that name."""


# Robots


def demos(f, lengths=(3, 5, 4)):
    for i, n in enumerate(lengths):
        g = f.create_group(f"data/demo_{i}")
        g["actions"], g["dones"], g["rewards"], g["states"] = some(n, 7, dtype="f8"), some(n, dtype="i8"), some(n, dtype="f8"), some(n, 9, dtype="f8")
        for obs in "obs", "next_obs":
            g[f"{obs}/robot0_eef_pos"], g[f"{obs}/object"] = some(n, 3, dtype="f8"), some(n, 10, dtype="f8")
        g.attrs["num_samples"], g.attrs["model_file"] = n, "<mujoco/>"
    f["data"].attrs["env_args"], f["data"].attrs["total"] = "{}", sum(lengths)


@layout()
def robomimic(folder):
    with h5py.File(path := folder + "/low_dim_v141.hdf5", "w") as f:
        demos(f)
    return path, steps(groups(path, "data"))


@layout(split="mask/train")
def robomimic_split(folder):
    with h5py.File(path := folder + "/low_dim_v141.hdf5", "w") as f:
        demos(f, (3, 2, 5, 4))
        f["mask/train"], f["mask/valid"], f["mask/20_percent"] = (
            np.array([b"demo_0", b"demo_3"]),
            np.array([b"demo_1", b"demo_2"]),
            np.array([b"demo_1"]),
        )
    with h5py.File(path) as f:
        want = {k: [members(f["data"][d]) for d in f["mask"][k].asstr()[:]] for k in f["mask"]}
    return path, [r | {"episode": (0, 3)[r["episode"]]} for r in steps(want["train"])]


@layout()
def robosuite_images(folder):
    with h5py.File(path := folder + "/image.hdf5", "w") as f:
        for i, n in enumerate((2, 4)):
            f.create_dataset(f"data/demo_{i}/obs/agentview_image", data=some(n, 8, 8, 3, dtype="u1"), chunks=(1, 8, 8, 3), compression="gzip")
            f[f"data/demo_{i}/actions"] = some(n, 7)
    return path, steps(groups(path, "data"))


@layout()
def libero(folder):
    with h5py.File(path := folder + "/KITCHEN_demo.hdf5", "w") as f:
        for i, n in enumerate((2, 4, 3)):
            for m, shape in {"actions": (7,), "dones": (), "obs/agentview_rgb": (8, 8, 3), "obs/ee_ori": (3,), "robot_states": (9,)}.items():
                f[f"data/demo_{i}/{m}"] = some(n, *shape, dtype="u1" if m in ("dones", "obs/agentview_rgb") else "f8")
        f["data"].attrs["problem_info"] = '{"language_instruction": "open the drawer"}'
    return path, steps(groups(path, "data"))


def aloha_episode(path, n, images, **more):
    tree = {"action": some(n, 14), "observations/qpos": some(n, 14), "observations/qvel": some(n, 14), "observations/images/cam_high": images}
    put(path, tree | more, {"@sim": True, "@compress": bool(more)})


@layout("declared", "--records *[:]")
def act_simulation(folder):
    for i in range(3):
        aloha_episode(f"{folder}/episode_{i}.hdf5", 4, some(4, 6, 8, 3, dtype="u1"))
    return folder, steps(map(groups_of_file, files_of(folder)))


def groups_of_file(path):
    with h5py.File(path) as f:
        return members(f)


@layout("declared", "--records *[:]", "--fields")
def aloha_jpeg(folder):
    for i, n in enumerate((3, 2, 4)):
        jpegs = [encoded(k + i) for k in range(n)]
        most = max(map(len, jpegs))
        padded = np.stack([np.frombuffer(b.ljust(most, b"\0"), "u1") for b in jpegs])
        aloha_episode(f"{folder}/episode_{i}.hdf5", n, padded, compress_len=np.array([[len(b) for b in jpegs]], "f8"))
    want = steps(map(groups_of_file, files_of(folder)), ["compress_len"])
    key = name("observations/images/cam_high")
    return folder, [r | {key: r[key].tobytes().rstrip(b"\0")} for r in want]


@layout("declared", "--records *[:]", "--align start")
def maniskill(folder):
    with h5py.File(path := folder + "/trajectory.h5", "w") as f:
        for i, n in enumerate((3, 5)):
            g = f.create_group(f"traj_{i}")
            g["actions"], g["success"], g["terminated"], g["truncated"] = some(n, 8), some(n, dtype="?"), some(n, dtype="?"), some(n, dtype="?")
            g["obs/agent/qpos"], g["obs/extra/tcp_pose"], g["env_states/actors/cube"] = some(n + 1, 9), some(n + 1, 7), some(n + 1, 13)
    return path, steps({k: v[: len(u["actions"])] for k, v in u.items()} for u in groups(path))


@layout("declared", "--records *[:]", "--align start")
def minari(folder):
    with h5py.File(path := folder + "/main_data.hdf5", "w") as f:
        f.attrs["total_episodes"], f.attrs["env_spec"] = 3, "{}"
        for i, n in enumerate((3, 5, 2)):
            g = f.create_group(f"episode_{i}", track_order=True)
            g.attrs["id"], g.attrs["total_steps"], g.attrs["seed"] = i, n, 42
            g["observations/achieved_goal"], g["observations/observation"] = some(n + 1, 2, dtype="f8"), some(n + 1, 4, dtype="f8")
            g["actions"], g["rewards"], g["terminations"], g["truncations"] = some(n, 2), some(n, dtype="f8"), some(n, dtype="?"), some(n, dtype="?")
            g["infos/qpos"] = some(n + 1, 2, dtype="f8")
    return path, steps({k: v[: len(u["actions"])] for k, v in u.items()} for u in groups(path))


@layout("declared", "--fields")
def d4rl(folder):
    n = 12
    tree = {"observations": some(n, 11), "actions": some(n, 3), "rewards": some(n), "terminals": some(n, dtype="?"), "timeouts": some(n, dtype="?")}
    tree |= {"infos/qpos": some(n, 6, dtype="f8"), "infos/action_log_probs": some(n), "metadata/algorithm": "SAC", "metadata/iteration": 3}
    tree["metadata/policy/fc0/weight"], tree["metadata/policy/fc0/bias"] = some(8, 11), some(8)
    put(path := folder + "/hopper_medium-v2.hdf5", tree)
    return path, rows({k: v for k, v in tree.items() if not k.startswith("metadata")})


@layout("declared", "--records */episodes/*[:]")
def rlbench(folder):
    with h5py.File(path := folder + "/reach_target.h5", "w") as f:
        for v in range(2):
            for e, n in enumerate((2, 3)):
                f[f"variation{v}/episodes/episode{e}/front_rgb"] = some(n, 6, 6, 3, dtype="u1")
                f[f"variation{v}/episodes/episode{e}/joint_positions"] = some(n, 7, dtype="f8")
    return path, steps(groups(path, "variation0/episodes") + groups(path, "variation1/episodes"))


@layout()
def calvin_steps(folder):
    for i in range(3):
        np.savez(
            f"{folder}/episode_{i:07}.npz", rgb_static=some(6, 6, 3, dtype="u1"), rel_actions=some(7, dtype="f8"), robot_obs=some(15, dtype="f8")
        )
    return folder, [dict(np.load(p)) for p in files_of(folder)]


# Scanners


@layout("declared", "--records *[:]")
def fastmri(folder):
    for i, n in enumerate((3, 4)):
        tree = {"kspace": (some(n, 2, 8, 5, dtype="f8") + 1j * some(n, 2, 8, 5, dtype="f8")).astype("c8"), "reconstruction_rss": some(n, 4, 4)}
        attrs = {"@acquisition": "CORPD_FBK", "@max": 0.0004, "@norm": 0.06, "@patient_id": f"p{i}"}
        put(f"{folder}/file100000{i}.h5", tree | {"ismrmrd_header": "<?xml version='1.0'?>"}, attrs)
    want = steps(map(groups_of_file, files_of(folder)), ["ismrmrd_header"])
    return folder, [r | {"kspace": np.stack([r["kspace"].real, r["kspace"].imag], -1)} for r in want]


@layout("declared", "--records *")
def brats_slices(folder):
    for i in range(4):
        put(f"{folder}/volume_1_slice_{i}.h5", {"image": some(8, 8, 4, dtype="f8"), "mask": some(8, 8, 3, dtype="u1", high=2)})
    return folder, whole(map(groups_of_file, files_of(folder)))


@layout()
def brats_npz(folder):
    for i in range(3):
        np.savez_compressed(f"{folder}/BraTS-GLI-0000{i}.npz", image=some(4, 6, 6, 5), seg=some(6, 6, 5, dtype="u1", high=4))
    return folder, [dict(np.load(p)) for p in files_of(folder)]


@layout()
def brain_volumes_with_label(folder):
    for i in range(3):
        np.savez_compressed(f"{folder}/s{i}.npz", vol=some(6, 7, 5), age=np.float64(40 + i), sex=np.int64(i % 2))
    return folder, [dict(np.load(p)) for p in files_of(folder)]


@layout("right")
def pcam(folder):
    with h5py.File(path := folder + "/camelyonpatch_level_2_split_valid_x.h5", "w") as f:
        f.create_dataset("x", data=some(5, 6, 6, 3, dtype="u1"), chunks=(1, 6, 6, 3), compression="gzip")
    with h5py.File(path) as f:
        return path, rows(members(f))


@layout("refused")
def pcam_folder(folder):
    put(folder + "/camelyonpatch_level_2_split_valid_x.h5", {"x": some(5, 6, 6, 3, dtype="u1")})
    put(folder + "/camelyonpatch_level_2_split_valid_y.h5", {"y": some(5, 1, 1, 1, dtype="u1", high=2)})
    return folder, []


@layout()
def captions_of_images(folder):
    with h5py.File(path := folder + "/karpathy.h5", "w") as f:
        f["features"] = some(6, 8)
        f["captions"] = np.array([[f"a {w} <of> é {i}" for w in ("cat", "dog", "bird")] for i in range(6)], h5py.string_dtype())
        f["tags"] = np.array([[b"x", b"yz"]] * 6, "S4")
    with h5py.File(path) as f:
        features = f["features"][:]
    texts = [[f"a {w} <of> é {i}" for w in ("cat", "dog", "bird")] for i in range(6)]
    captions = [json.dumps(t, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c").replace(">", "\\u003e") for t in texts]
    return path, [{"features": x, "captions": c, "tags": '["x","yz"]'} for x, c in zip(features, captions)]


@layout()
def group_for_each_sample(folder):
    with h5py.File(path := folder + "/samples.h5", "w") as f:
        for i in range(11):
            f[f"sample_{i}/image"], f[f"sample_{i}/label"] = some(6, 5, dtype="u1"), i % 3
    return path, whole(groups(path))


@layout()
def samples_of_several_sizes(folder):
    with h5py.File(path := folder + "/samples.h5", "w") as f:
        for i in range(4):
            f[f"{i:04}/waveform"], f[f"{i:04}/sr"], f[f"{i:04}/text"] = some(20 + i), 16000, f"größe {i}"
    return path, whole(groups(path))


@layout("declared", "--records *")
def dataset_for_each_sample(folder):
    put(path := folder + "/features.h5", {f"video_{i}": some(3 + i, 6) for i in range(12)})
    return path, whole(groups(path))


@layout("declared", "--records *")
def dataset_of_one_shape_for_each_sample(folder):
    put(path := folder + "/features.h5", {f"{i:012}.jpg": some(36, 6) for i in range(12)})
    return path, whole(groups(path))


@layout()
def jpeg_vlen(folder):
    files = [encoded(i) for i in range(4)]
    with h5py.File(path := folder + "/imagenet.h5", "w") as f:
        vlen(f, "encoded_images", files)
        f["targets"] = np.array([3, 1, 2, 0])
    return path, [{"encoded_images": b, "targets": t} for b, t in zip(files, [3, 1, 2, 0])]


@layout()
def png_opaque(folder):
    files = [encoded(i, "PNG") for i in range(4)]
    with h5py.File(path := folder + "/patches.h5", "w") as f:
        most = max(map(len, files))
        f.create_dataset("images", data=np.array([np.void(b.ljust(most, b"\0")) for b in files]))
        f["targets"] = np.arange(4)
    return path, [{"images": b.rstrip(b"\0"), "targets": t} for t, b in enumerate(files)]


@layout()
def frames_of_videos(folder):
    with h5py.File(path := folder + "/ucf101.h5", "w") as f:
        for i, n in enumerate((2, 3)):
            vlen(f, f"v_{i}/frames", [encoded(k) for k in range(n)])
            f[f"v_{i}/label"] = i
    with h5py.File(path) as f:
        return path, [{"frames": [b.tobytes() for b in f[k]["frames"]], "label": i} for i, k in enumerate(natural(f))]


# MATLAB


def matlab(path, tree):
    """Write arrays in the order of MATLAB, with the attributes that it adds, behind its block of 512 bytes."""
    with h5py.File(path, "w", userblock_size=512) as f:
        for key, a in tree.items():
            d = f.create_dataset(key, data=np.asarray(a).T)
            d.attrs["MATLAB_class"] = np.bytes_({"f8": "double", "u1": "uint8", "f4": "single", "u2": "char"}[np.asarray(a).dtype.str[1:]])
    with open(path, "r+b") as f:
        f.write(b"MATLAB 7.3 MAT-file, Platform: GLNXA64".ljust(124) + b"\x00\x02IM")
    return path


@layout()
def matlab_arrays(folder):
    path = matlab(folder + "/digits.mat", {"X": some(6, 5, 3, 8, dtype="u1"), "y": some(1, 8, dtype="f8")})
    with h5py.File(path) as f:
        return path, rows({"X": f["X"][:], "y": f["y"][:]})


@layout("declared", "--fields X")
def matlab_column(folder):
    path = matlab(folder + "/digits.mat", {"X": some(6, 5, 3, 8, dtype="u1"), "y": some(8, 1, dtype="f8")})
    with h5py.File(path) as f:
        return path, rows({"X": f["X"][:]})


@layout()
def nyu_depth(folder):
    path = matlab(
        folder + "/nyu_depth_v2_labeled.mat", {"images": some(6, 5, 3, 4, dtype="u1"), "depths": some(6, 5, 4), "accelData": some(4, 4, dtype="f4")}
    )
    with h5py.File(path, "r+") as f:
        for k in "rawDepthFilenames", "scenes":
            refs = []
            for i in range(4):
                f[f"#refs#/{k}{i}"] = np.array([[ord(c)] for c in f"{k}/{i}"], "u2")
                refs.append(f[f"#refs#/{k}{i}"].ref)
            d = f.create_dataset(k, data=np.array([refs], object), dtype=h5py.ref_dtype)
            d.attrs["MATLAB_class"] = np.bytes_("cell")
        return path, rows({k: f[k][:] for k in ("images", "depths", "accelData")})


@layout("refused", "for i = 1:numel(trials), h5create('trials.h5', sprintf('/%d', i), size(trials{i})); ", 'records="*"')
def matlab_cell(folder):
    path = matlab(folder + "/cells.mat", {})
    with h5py.File(path, "r+") as f:
        refs = []
        for i in range(4):
            f[f"#refs#/{i}"] = some(3 + i, 2, dtype="f8")
            refs.append(f[f"#refs#/{i}"].ref)
        f.create_dataset("trials", data=np.array([refs], object), dtype=h5py.ref_dtype).attrs["MATLAB_class"] = np.bytes_("cell")
    return path, []


# Tables in HDF5


@layout("refused", "python3 -c 'import pandas; pandas.DataFrame(pandas.read_hdf(", '"df")).rename(columns=str).to_parquet(')
def pandas_fixed(folder):
    with h5py.File(path := folder + "/frame.h5", "w") as f:
        f.attrs.update(
            {"CLASS": np.bytes_("GROUP"), "PYTABLES_FORMAT_VERSION": np.bytes_("2.1"), "TITLE": np.bytes_(""), "VERSION": np.bytes_("1.0")}
        )
        g = f.create_group("df")
        g.attrs.update(
            {"pandas_type": np.bytes_("frame"), "pandas_version": np.bytes_("0.15.2"), "encoding": np.bytes_("UTF-8"), "nblocks": 2, "ndim": 2}
        )
        g["axis0"], g["axis1"] = np.array([b"a", b"b", b"c"]), np.arange(5)
        g["block0_items"], g["block0_values"] = np.array([b"a", b"c"]), some(5, 2, dtype="f8")
        g["block1_items"], g["block1_values"] = np.array([b"b"]), some(5, 1, dtype="i8")
    return path, []


@layout()
def pandas_table(folder):
    """As TopTagging's files are."""
    rows_ = np.zeros(6, [("index", "i8"), ("values_block_0", "f4", (8,)), ("values_block_1", "i8", (2,))])
    rows_["index"], rows_["values_block_0"], rows_["values_block_1"] = np.arange(6), some(6, 8), some(6, 2, dtype="i8")
    with h5py.File(path := folder + "/train.h5", "w") as f:
        f.attrs.update({"CLASS": np.bytes_("GROUP"), "PYTABLES_FORMAT_VERSION": np.bytes_("2.1")})
        d = f.create_dataset("table/table", data=rows_, chunks=(4,), maxshape=(None,))
        d.attrs.update({"CLASS": np.bytes_("TABLE"), "FIELD_0_NAME": np.bytes_("index"), "NROWS": 6})
        d.parent.attrs.update({"pandas_type": np.bytes_("frame_table"), "table_type": np.bytes_("appendable_frame"), "encoding": np.bytes_("UTF-8")})
        f.create_dataset("table/_i_table/index/sorted", data=np.zeros((0, 4), "i8"), maxshape=(None, 4), chunks=(1, 4))
        f["table/_i_table/index/bounds"] = np.zeros((0, 2), "i8")
    with h5py.File(path) as f:
        t = f["table/table"][:]
        return path, rows({f"table/table/{k}": t[k] for k in t.dtype.names})


@layout()
def pytables(folder):
    with h5py.File(path := folder + "/events.h5", "w") as f:
        f.create_dataset("images", data=some(5, 4, 4, dtype="u2"), maxshape=(None, 4, 4), chunks=(2, 4, 4), shuffle=True, compression="gzip").attrs[
            "CLASS"
        ] = np.bytes_("EARRAY")
        t = np.zeros(5, [("energy", "f8"), ("id", "i4"), ("name", "S6"), ("pos", [("x", "f4"), ("y", "f4")]), ("track", "f4", (3,))])
        t["energy"], t["id"], t["name"], t["track"] = some(5, dtype="f8"), np.arange(5), [b"a", b"bb", b"", b"cccccc", b"d"], some(5, 3)
        t["pos"]["x"], t["pos"]["y"] = some(5), some(5) * 2
        f.create_dataset("hits", data=t, chunks=(2,), maxshape=(None,)).attrs["CLASS"] = np.bytes_("TABLE")
    want = {
        "images": some(5, 4, 4, dtype="u2"),
        "hits/energy": t["energy"],
        "hits/id": t["id"],
        "hits/name": t["name"].astype(str),
        "hits/track": t["track"],
    }
    return path, rows(want | {"hits/pos/x": t["pos"]["x"], "hits/pos/y": t["pos"]["y"]})


@layout()
def enumerations(folder):
    with h5py.File(path := folder + "/labels.h5", "w") as f:
        f.create_dataset("species", data=np.array([0, 2, 1, 1], "i1"), dtype=h5py.enum_dtype({"cat": 0, "dog": 1, "owl": 2}, "i1"))
        f.create_dataset("flag", data=np.array([4, 1, 4, 2], "u2"), dtype=h5py.enum_dtype({"low": 1, "mid": 2, "high": 4}, "u2"))
        f["x"] = some(4, 3)
    return path, rows({"species": [Class(s) for s in ("cat", "owl", "dog", "dog")], "flag": np.array([4, 1, 4, 2], "u2"), "x": some(4, 3)})


@layout()
def strings(folder):
    texts = ["a", "größer", "", "日本"]
    with h5py.File(path := folder + "/texts.h5", "w") as f:
        f["vlen"], f["fixed"] = texts, np.array([t.encode() for t in texts])
        f.create_dataset("column", data=np.array([[t.encode()] for t in texts]))
        f.create_dataset("characters", data=np.array([list(b"ab\0"), list(b"xyz"), list(b"\0\0\0"), list(b"q\0\0")], "u1").view("S1").reshape(4, 3))
    return path, rows({"vlen": texts, "fixed": texts, "column": texts, "characters": ["ab", "xyz", "", "q"]})


@layout()
def numbers_of_all_types(folder):
    tree = {
        t[1:] + {"<": "l", ">": "b", "|": ""}[t[0]]: some(4, 2, dtype=t, high=2) for t in ("<f2", ">f4", ">i2", "|u1", ">u8", "<i4", ">f8", "|i1")
    }
    tree["flags"] = some(4, dtype="?", high=2)
    return put(folder + "/n.h5", tree), rows(tree)


@layout()
def complex_numbers(folder):
    z = (some(4, 3) + 1j * some(4, 3) * 2).astype("c8")
    return put(folder + "/z.h5", {"z": z, "y": some(4)}), rows({"z": np.stack([z.real, z.imag], -1), "y": some(4)})


@layout()
def vlen_numbers(folder):
    values = [some(n, dtype="f4") for n in (3, 0, 5, 1)]
    with h5py.File(path := folder + "/v.h5", "w") as f:
        d = f.create_dataset("spikes", (4,), h5py.vlen_dtype("f4"), chunks=(2,), compression="gzip")
        for i, v in enumerate(values):
            d[i] = v
        f["label"] = np.arange(4)
    return path, [{"spikes": v, "label": i} for i, v in enumerate(values)]


# Files of other sciences


def molecules(folder, tree, path="/ani.h5"):
    with h5py.File(path := folder + path, "w") as f:
        for i, (n, atoms) in enumerate(((3, 4), (2, 5), (4, 3))):
            for key, value in tree(n, atoms).items():
                f[f"C{i + 1}H4/{key}"] = value
    return path


@layout("declared", "--records *", "--fields")
def ani_molecules(folder):
    path = molecules(folder, lambda n, a: {"coordinates": some(n, a, 3), "energies": some(n, dtype="f8"), "species": some(a, dtype="i8")})
    return path, whole(groups(path), ["coordinates"])  # which have two axes of any length


@layout()
def conformations(folder):
    path = molecules(folder, lambda n, a: {"coordinates": some(n, 5, 3), "energies": some(n, dtype="f8"), "forces": some(n, 5, 3)})
    return path, steps(groups(path))


@layout("declared", "--records *")
def qm9_molecules(folder):
    path = molecules(folder, lambda n, a: {"coordinates": some(a, 3), "species": some(a, dtype="u1"), "energy": np.float64(n)})
    return path, whole(groups(path))


@layout("declared", "--records *")
def open_catalyst(folder):
    path = molecules(folder, lambda n, a: {"pos": some(a, 3), "atomic_numbers": some(a, dtype="i8"), "cell": some(3, 3), "forces": some(a, 3)})
    return path, whole(groups(path))


@layout("declared", "--records *")
def catalyst_with_energy(folder):
    path = molecules(folder, lambda n, a: {"pos": some(a, 3), "atomic_numbers": some(a, dtype="i8"), "y": np.float64(a)})
    return path, whole(groups(path))


@layout()
def md17(folder):
    np.savez(path := folder + "/md17_ethanol.npz", E=some(6, 1, dtype="f8"), F=some(6, 5, 3, dtype="f8"), R=some(6, 5, 3, dtype="f8"))
    return path, rows(dict(np.load(path)))


@layout("declared", "--fields")
def md17_with_constants(folder):
    np.savez(
        path := folder + "/md17_ethanol.npz",
        E=some(6, 1, dtype="f8"),
        F=some(6, 5, 3, dtype="f8"),
        R=some(6, 5, 3, dtype="f8"),
        z=some(5, dtype="u1"),
        name="ethanol",
    )
    return path, rows(dict(np.load(path)), ["z", "name"])


@layout()
def tiny_nerf(folder):
    np.savez(path := folder + "/tiny_nerf_data.npz", images=some(6, 5, 5, 3), poses=some(6, 4, 4), focal=np.float64(138.8))
    return path, rows(dict(np.load(path)), ["focal"])


@layout()
def events_flat(folder):
    n = 12
    tree = {
        "events/x": some(n, dtype="u2"),
        "events/y": some(n, dtype="u2"),
        "events/t": np.arange(n, dtype="u4"),
        "events/p": some(n, dtype="u1", high=2),
    }
    return put(folder + "/events_.h5", tree), rows(tree)


@layout("declared", "--fields")
def dsec(folder):
    n = 12
    tree = {
        "events/x": some(n, dtype="u2"),
        "events/y": some(n, dtype="u2"),
        "events/t": np.arange(n, dtype="u4"),
        "events/p": some(n, dtype="u1", high=2),
    }
    put(path := folder + "/events.h5", tree | {"ms_to_idx": some(4, dtype="u8"), "t_offset": np.int64(5)})
    return path, rows(tree)


@layout()
def modelnet40(folder):
    n = 5
    return put(
        folder + "/ply_data_train0.h5",
        {"data": some(n, 16, 3), "faceId": some(n, 16, dtype="i4"), "label": some(n, 1, dtype="u1"), "normal": some(n, 16, 3)},
    ), rows(groups_of_file(folder + "/ply_data_train0.h5"))


@layout()
def modelnet40_folder(folder):
    for k, n in (("train0", 5), ("train1", 3), ("test0", 4)):
        put(f"{folder}/ply_data_{k}.h5", {"data": some(n, 16, 3), "label": some(n, 1, dtype="u1")})
    with open(folder + "/train_files.txt", "w") as f:
        f.write("data/modelnet40/ply_data_train0.h5\n")
    files = [p for p in files_of(folder) if p.endswith(".h5")]
    return folder, steps(map(groups_of_file, files))


@layout()
def shapenet_part(folder):
    return put(folder + "/ply_data_val0.h5", {"data": some(4, 16, 3), "label": some(4, 1, dtype="u1"), "pid": some(4, 16, dtype="u1")}), rows(
        groups_of_file(folder + "/ply_data_val0.h5")
    )


@layout("declared", "--fields")
def neurodata(folder):
    tree = {"acquisition/ecephys/data": some(20, 4, dtype="i2"), "acquisition/ecephys/timestamps": some(20, dtype="f8"), "units/id": np.arange(3)}
    tree |= {
        "units/spike_times": some(11, dtype="f8"),
        "units/spike_times_index": np.array([4, 6, 11]),
        "session_description": "mouse",
        "file_create_date": ["2024"],
    }
    path = put(folder + "/sub-01.nwb", tree, {"@nwb_version": "2.6.0"})
    return path, rows({k: v for k, v in tree.items() if k.startswith("acquisition")})


@layout("declared", "--records *[:]", "--fields")
def jets_folder(folder):
    for i in range(3):
        tree = {
            "jetConstituentList": some(5, 6, 4),
            "jets": some(5, 7),
            "jetFeatureNames": [f"j_{k}" for k in range(7)],
            "particleFeatureNames": list("abcd"),
        }
        put(f"{folder}/jetImage_7_{i}.h5", tree)
    return folder, steps(map(groups_of_file, files_of(folder)), ["jetFeatureNames", "particleFeatureNames"])


@layout()
def jets(folder):
    tree = {
        "jetConstituentList": some(5, 6, 4),
        "jets": some(5, 7),
        "jetFeatureNames": [f"j_{k}" for k in range(7)],
        "particleFeatureNames": list("abcd"),
    }
    return put(folder + "/jetImage_7.h5", tree), rows(tree, ["jetFeatureNames", "particleFeatureNames"])


@layout("declared", "--fields")
def ligo(folder):
    tree = {"strain/Strain": some(40, dtype="f8"), "meta/GPSstart": 1126259446, "meta/Detector": "L1", "meta/Duration": 32}
    tree |= {"quality/simple/DQmask": some(4, dtype="u4"), "quality/simple/DQShortnames": [b"DATA", b"CBC"]}
    return put(folder + "/L-L1_LOSC.hdf5", tree), rows({"strain/Strain": tree["strain/Strain"]})


@layout()
def galaxy10(folder):
    tree = {
        "ans": some(5, dtype="u1", high=10),
        "images": some(5, 6, 6, 3, dtype="u1"),
        "ra": some(5, dtype="f8"),
        "dec": some(5, dtype="f8"),
        "redshift": some(5, dtype="f8"),
        "pxscale": some(5, dtype="f8"),
    }
    return put(folder + "/Galaxy10_DECals.h5", tree), rows(tree)


@layout()
def eurosat(folder):
    tree = {"images": some(4, 8, 8, 13, dtype="u2"), "labels": np.eye(4, 10, dtype="f8")}
    return put(folder + "/EuroSAT.h5", tree), rows(tree)


@layout()
def ptbxl(folder):
    return put(folder + "/ecg_tracings.hdf5", {"tracings": some(4, 20, 12), "exam_id": np.arange(4)}), rows(
        {"tracings": some(4, 20, 12), "exam_id": np.arange(4)}
    )


@layout("declared", "--fields")
def pdebench_1d(folder):
    tree = {"tensor": some(4, 6, 8), "t-coordinate": some(7), "x-coordinate": some(8)}
    return put(folder + "/1D_Advection.hdf5", tree), rows({"tensor": tree["tensor"]})


@layout("declared", "--records *")
def pdebench_seeds(folder):
    with h5py.File(path := folder + "/2D_diff-react.h5", "w") as f:
        for i in range(3):
            f[f"{i:04}/data"], f[f"{i:04}/grid/t"], f[f"{i:04}/grid/x"], f[f"{i:04}/grid/y"] = some(5, 6, 6, 2), some(5), some(6), some(6)
    return path, whole(groups(path))


@layout("declared", "--fields")
def scene_graphs(folder):
    tree = {
        "img_to_first_box": np.array([0, 3, 5]),
        "img_to_last_box": np.array([2, 4, 8]),
        "labels": some(9, 1, dtype="i8"),
        "boxes_1024": some(9, 4, dtype="i4"),
        "split": np.array([0, 0, 2]),
    }
    return put(folder + "/VG-SGG.h5", tree), rows({k: tree[k] for k in ("img_to_first_box", "img_to_last_box", "split")})


@layout()
def fashiongen(folder):
    texts = np.array([[b"a red shirt"], [b"shoes"], [b"black jeans"]])
    tree = {
        "index": np.arange(3)[:, None],
        "input_image": some(3, 8, 8, 3, dtype="u1"),
        "input_description": texts,
        "input_category": np.array([[b"SHIRTS"], [b"SHOES"], [b"JEANS"]]),
    }
    want = {k: [t[0].decode() for t in v] if v.dtype.kind == "S" else v for k, v in tree.items()}
    return put(folder + "/fashiongen_256_256_train.h5", tree), rows(want)


@layout()
def sleep_night(folder):
    tree = {"signals/eeg/C3-A2": some(9, 30), "signals/eog/E1": some(9, 30), "hypnogram": some(9, dtype="i4", high=5)}
    return put(folder + "/night.h5", tree), rows(tree)


@layout()
def sleep_nights(folder):
    for i, n in enumerate((3, 4, 2)):
        put(f"{folder}/shhs1-20000{i}.h5", {"signals/eeg/C3": some(n, 30), "hypnogram": some(n, dtype="i4", high=5)})
    return folder, steps(map(groups_of_file, files_of(folder)))


@layout()
def librispeech_features(folder):
    with h5py.File(path := folder + "/feats.h5", "w") as f:
        for i, n in enumerate((5, 8, 6)):
            f[f"1034-121119-{i:04}/fbank"], f[f"1034-121119-{i:04}/text"], f[f"1034-121119-{i:04}/speaker"] = some(n, 8), f"THE CAT {i}", 1034
    return path, whole(groups(path))


@layout("declared", "--records *[:]")
def speech_commands(folder):
    """A dataset for each class."""
    put(path := folder + "/speech.h5", {"yes": some(3, 20), "no": some(4, 20), "up": some(2, 20)})
    return path, steps(groups(path))


@layout("declared", "--records *[:]")
def faces_by_identity(folder):
    with h5py.File(path := folder + "/vggface2.h5", "w") as f:
        for i, n in enumerate((2, 3, 2)):
            f[f"n00000{i}/images"] = some(n, 6, 6, 3, dtype="u1")
    return path, steps(groups(path))


@layout()
def splits_in_groups(folder):
    put(
        path := folder + "/mnist.h5",
        {f"{s}/{k}": some(n, *shape, dtype="u1") for s, n in (("train", 5), ("test", 2)) for k, shape in (("images", (4, 4)), ("labels", ()))},
    )
    return path, [r for k in ("train", "test") for r in rows(group_of(path, k))]


def group_of(path, where):
    with h5py.File(path) as f:
        return members(f[where])


@layout("declared", "--fields")
def keras_mnist(folder):
    np.savez(
        path := folder + "/mnist.npz",
        x_train=some(5, 4, 4, dtype="u1"),
        y_train=some(5, dtype="u1"),
        x_test=some(2, 4, 4, dtype="u1"),
        y_test=some(2, dtype="u1"),
    )
    return path, rows({k: v for k, v in np.load(path).items() if "train" in k})


@layout("declared", "--fields")
def medmnist(folder):
    tree = {
        f"{s}_{k}": some(n, *shape, dtype="u1", high=9)
        for s, n in (("train", 5), ("val", 3), ("test", 2))
        for k, shape in (("images", (4, 4)), ("labels", (1,)))
    }
    np.savez(path := folder + "/pathmnist.npz", **tree)
    return path, rows({k: v for k, v in tree.items() if "train" in k})


@layout()
def images_and_labels(folder):
    np.savez_compressed(path := folder + "/data.npz", images=some(5, 4, 4, 3, dtype="u1"), labels=some(5, dtype="i4"))
    return path, rows(dict(np.load(path)))


@layout()
def npy_pairs(folder):
    np.save(folder + "/X.npy", some(5, 3, 4)), np.save(folder + "/y.npy", np.asfortranarray(some(5, 2)))
    return folder, rows({"X": some(5, 3, 4), "y": some(5, 2)})


@layout("declared", "--records *")
def npy_for_each_sample(folder):
    for i in range(4):
        np.save(f"{folder}/patient_{i}.npy", some(3 + i, 4))
    return folder, [{"data": np.load(p)} for p in files_of(folder)]


@layout()
def npz_shards(folder):
    for i, n in enumerate((3, 4)):
        np.savez(f"{folder}/shard_{i}.npz", image=some(n, 4, 4, dtype="u1"), label=some(n, dtype="i8"))
    return folder, steps(dict(np.load(p)) for p in files_of(folder))


@layout()
def safetensors_shards(folder):
    for i, n in enumerate((3, 4)):
        save_file({"latents": some(n, 4, 4), "labels": some(n, dtype="i8")}, f"{folder}/latents_{i:03}.safetensors")
    return folder, steps({"latents": some(n, 4, 4), "labels": some(n, dtype="i8")} for n in (3, 4))


@layout("declared", "--records *")
def motion_scenes(folder):
    """As Waymo's scenes are cached: agents and points of the road."""
    for i, (n, m) in enumerate(((3, 9), (2, 7))):
        np.savez(f"{folder}/scene_{i}.npz", agents=some(n, 6, 4), agent_types=some(n, dtype="i8"), road=some(m, 2), road_types=some(m, dtype="i8"))
    return folder, [dict(np.load(p)) for p in files_of(folder)]


# What files do


@layout()
def empty_episode(folder):
    with h5py.File(path := folder + "/e.h5", "w") as f:
        for i, n in enumerate((2, 0, 3)):
            f[f"data/demo_{i}/actions"], f[f"data/demo_{i}/rewards"] = some(n, 2), some(n)
    return path, steps(groups(path, "data"))


@layout()
def soft_links(folder):
    with h5py.File(path := folder + "/s.h5", "w") as f:
        f["store/a"], f["store/b"] = some(4, 2), some(4)
        f["alias"] = h5py.SoftLink("/store/a")
        f["broken"] = h5py.SoftLink("/nowhere")
    return path, rows({"store/a": some(4, 2), "store/b": some(4), "alias": some(4, 2)})


@layout()
def soft_links_to_episodes(folder):
    with h5py.File(path := folder + "/s.h5", "w") as f:
        for i, n in enumerate((2, 3)):
            f[f"all/demo_{i}/actions"], f[f"all/demo_{i}/rewards"] = some(n, 2), some(n)
        f["best/first"] = h5py.SoftLink("/all/demo_1")
    return path, steps(groups(path, "all"))


@layout("converted")
def external_links(folder):
    for i, n in enumerate((2, 3)):
        put(f"{folder}/part{i}.h5", {"x": some(n, 2), "y": some(n)})
    with h5py.File(path := folder + "/all.h5", "w") as f:
        for i in range(2):
            f[f"part{i}"] = h5py.ExternalLink(f"part{i}.h5", "/")
    return path, steps(map(groups_of_file, (f"{folder}/part{i}.h5" for i in range(2))))


@layout()
def virtual_dataset(folder):
    lay = h5py.VirtualLayout((5, 2), "f4")
    for i, (a, b) in enumerate(((0, 2), (2, 5))):
        put(f"{folder}/part{i}.h5", {"x": some(b - a, 2)})
        lay[a:b] = h5py.VirtualSource(f"part{i}.h5", "x", (b - a, 2))
    with h5py.File(path := folder + "/all.h5", "w") as f:
        f.create_virtual_dataset("x", lay)
        f["y"] = np.arange(5)
    return path, rows({"x": np.concatenate([some(2, 2), some(3, 2)]), "y": np.arange(5)})


@layout()
def user_block(folder):
    with h5py.File(path := folder + "/u.h5", "w", userblock_size=1024) as f:
        f["x"] = some(4, 3)
    return path, rows({"x": some(4, 3)})


@layout()
def references(folder):
    with h5py.File(path := folder + "/r.h5", "w") as f:
        f["x"] = some(4, 3)
        f.create_dataset("refs", data=[f["x"].ref] * 4, dtype=h5py.ref_dtype)
        f.create_dataset("regions", data=[f["x"].regionref[i : i + 1] for i in range(4)], dtype=h5py.regionref_dtype)
    return path, rows({"x": some(4, 3)})


@layout()
def netcdf(folder):
    with h5py.File(path := folder + "/era5.nc", "w") as f:
        f["time"], f["lat"], f["lon"] = np.arange(5), some(3), some(4)
        for k in "time", "lat", "lon":
            f[k].make_scale(k)
        for k in "t2m", "u10":
            d = f.create_dataset(k, data=some(5, 3, 4), maxshape=(None, 3, 4), chunks=(1, 3, 4))
            for axis, dim in enumerate(("time", "lat", "lon")):
                d.dims[axis].attach_scale(f[dim])
    return path, rows({k: some(5, 3, 4) for k in ("t2m", "u10")} | {"time": np.arange(5)})


# Without a header


@layout("declared", "--records *:float32[*,4]")
def kitti(folder):
    """As OpenPCDet reads them."""
    for i, n in enumerate((5, 3, 0, 7)):
        some(n, 4).tofile(f"{folder}/{i:06}.bin")
    return folder, [{"data": np.fromfile(file, "f4").reshape(-1, 4)} for file in files_of(folder)]


@unittest.skipIf(MISSING, MISSING)
class LayoutsTest(unittest.TestCase):
    def setUp(self):
        self.folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, self.folder)

    def records(self, door, path, where, images=False):
        """Return the records by a door, with labels as the names of their classes."""
        if door == "DataLoader":
            with penstock.DataLoader(path, 3, output="numpy", prepare="off", **where) as loader:
                return [{n: v[i] for n, v in batch.items()} for batch in loader for i in range(int(batch.mask.sum()))]
        if door == "preprocess":
            path = penstock.preprocess(path, os.path.join(self.folder, "prepared"), overwrite=True, progress=False, keep_encoded=images, **where).dest
            where = {}
        with penstock.open(path, **where) as ds:
            classes = {n: f.classes for n, f in ds.fields.items() if f.classes}
            return [{n: Class(classes[n][int(v)]) if n in classes else v for n, v in ds[i].items()} for i in range(len(ds))]

    def same(self, got, want, what):
        self.assertEqual(len(got), len(want), what)
        for i, (a, b) in enumerate(zip(got, want)):
            self.assertEqual(sorted(a), sorted(b), what)
            for key, y in b.items():
                x, which = a[key], (what, i, key)
                if isinstance(y, Class):
                    if what != "DataLoader":
                        self.assertEqual(x, y, which)
                elif isinstance(y, list):  # of image files
                    self.assertEqual([file.tobytes() for file in x], y, which)
                elif isinstance(y, (str, bytes)):
                    x = x.encode() if isinstance(x, str) else np.asarray(x).tobytes()
                    self.assertEqual(x, y.encode() if isinstance(y, str) else y, which)
                else:
                    x, y = np.asarray(x), np.asarray(y)
                    self.assertEqual((x.shape, x.dtype.kind), (y.shape, y.dtype.kind), which)
                    np.testing.assert_array_equal(x, y, str(which))

    def outcome(self, path, want, choices, split, told):
        """Return what happens to people who have the path. What they are told is appended to ``told``."""
        where, outcome = {"split": split} if split else {}, "right"
        for _ in range(4):
            try:
                got = self.records("DataLoader", path, where)
            except penstock.Error as e:
                told.append(str(e))
            else:
                self.same(got, want, "DataLoader")
                for door in ("open", "preprocess") if not split else ("open",):
                    self.same(self.records(door, path, dict(where), any(isinstance(v, bytes) for v in want[0].values())), want, door)
                return outcome
            offered = re.findall(r'\b(records|fields|align|split)=("[^"]*"|\["(?:[^"\\]|\\.|", ")*"\])', told[-1])
            offered = [(flag, json.loads(value)) for flag, value in offered]
            if h5copy := re.search(r"h5copy .*", told[-1]):
                command = shlex.split(h5copy[0])
                subprocess.run(command, check=True, capture_output=True)
                path, outcome = command[command.index("-o") + 1], "converted"
                continue
            taken = [
                c
                for c in offered
                if c[0] not in where and (f"--{c[0]}" in choices or f"--{c[0]} {','.join(c[1]) if c[0] == 'fields' else c[1]}" in choices)
            ]
            if not taken:
                return "refused"
            where[taken[0][0]] = taken[0][1]
            outcome = "declared"
        return "refused"

    def test_layouts(self):
        found, lines = collections.Counter(), []
        only = os.environ.get("PENSTOCK_TEST_LAYOUTS", "").split(",")
        for title, (write, expected, choices, split) in LAYOUTS.items():
            if only != [""] and title not in only:
                continue
            with self.subTest(layout=title):
                folder = os.path.join(self.folder, title)
                os.mkdir(folder)
                path, want = write(folder)
                told = []
                outcome = self.outcome(path, want, choices, split, told)
                found[outcome] += 1
                lines.append(f"{title:40} {outcome}")
                self.assertEqual(outcome, expected, told)
                for words in choices if outcome == "refused" else ():
                    self.assertIn(words, told[-1])
        print(*lines, dict(found), sep="\n")


if __name__ == "__main__":
    unittest.main()
