"""Uses of torch's DataLoader in public code, with the arguments that they pass: penstock's DataLoader has the same batches, to the bit."""

import random
import re
import sys
import unittest
import warnings

import numpy as np
import torch
from torch.utils.data import BatchSampler, Dataset, DistributedSampler, IterableDataset, RandomSampler, TensorDataset, get_worker_info

import penstock
from tests.peers import SEED, chosen
from tests.peers.test_user_datasets import copied, same, seed_all

#: By what their samples are: repository, file and line, and the arguments besides the dataset, as ABBREVIATED.
#: A bare name is a variable there; * stands for others that are passed on.
USES = {
    "memory": """
        lightning boring_classes.py:145() lightning language_model/train.py:69(bs=20,sh=T) lightning train_fabric.py:141(bs,sa)
        dinov2 log_regression.py:283(bs,dl=F,nw=0,pw=F) skorch run-no-skorch.py:31(bs=64) minGPT adder.py:151(bs=100,nw=0,dl=F)
        Time-Series-Library data_factory.py:40(bs,sh,nw,dl) sentence-transformers trainer.py:835()
        Megatron-LM run_simple_mcore_train_loop.py:117(bs=8,sh=T)
        composer custom_models.py:31(dl=F,sh=T,bs=256) ignite mnist.py:39(bs,sh=T) ffcv linear_regression.py:57(bs=2048,nw=8,sh=T)""",
    "images": """
        examples imagenet/main.py:419(bs,sh=F,nw,pm=T) examples dcgan/main.py:107(bs,sh=T,nw) examples multigpu.py:77(bs,pm=T,sh=F,sa)
        examples mingpt/trainer.py:74(bs,pm=T,sh=F,nw,sa) mae main_finetune.py:202(sa,bs,nw,pm,dl=T) dino eval_linear.py:72(bs,nw,pm=T)
        dino eval_image_retrieval.py:113(sa,bs=1,nw,pm=T,dl=F) Swin-Transformer build.py:69(sa,bs,nw,pm,dl=T) lightning imagenet.py:169(bs,nw,pm=T)
        ignite cifar100/utils.py:38(bs,nw=12,sh=T,dl=T,pm=T) DeepLearningExamples dataloaders.py:446(sa,bs,sh,nw,wi,pm=T,cf,dl=T,pw=T,pf)
        guided-diffusion image_datasets.py:59(bs,sh=F,nw=1,dl=T) denoising-diffusion denoising_diffusion_pytorch.py:955(bs,sh=T,pm=T,nw)
        edm training_loop.py:70(sa,bs,*) edm fid.py:56(bsa,nw,pf) dinov2 loaders.py:207(sa,bs,nw,pm=T,dl,pw,cf)
        open_clip data.py:1040(bs,sh,nw,pm=T,sa,dl,cf) open_clip genlip_zeroshot.py:196(bs,sh=T,nw,g,cf)""",
    "ragged": """
        detr main.py:155(bsa,cf,nw) detr main.py:157(bs,sa,dl=F,cf,nw) detectron2 build.py:361(nw,cf,wi,pf,pw,pm,g,*)
        detectron2 build.py:377(bs,dl,nw,cf,wi,pf,pw,pm,g,*)
        densepose build.py:663(bs,sa,nw,cf,wi) SlowFast loader.py:116(bs,nw,pm,dl,cf,wi) SlowFast loader.py:133(bsa,nw,pm,cf,wi)
        Efficientdet loader.py:183(sh=F,nw,bsa,pm,cf)
        MONAI data_analyzer.py:317(bs=1,sh=F,nw,cf,pm) torchgeo benchmark.py:160(bsa,nw,cf) torchgeo geo.py:282(bs,sa,bsa,nw,cf,pw)
        mmengine _flexible_runner.py:914(sa,bsa,cf,wi,*) Megatron-LM sequence_packing_utils.py:1192(bs,sh=F,cf)""",
    "texts": """
        peft beft_finetuning.py:63(cf,bs,pm=T) diffusers train_dreambooth_lora_flux_advanced.py:1861(bs,sh=T,cf,nw)
        diffusers train_dreambooth_lora_flux2.py:1523(bsa,cf,nw)
        diffusers train_text_to_image_xla.py:601(sa,cf,nw,bs,pf) trl dpo_trainer.py:1124(bs,cf,nw,pm,sh=F) trl ppo_trainer.py:533(bs,sh=T,cf,dl=T)
        trl a2po_trainer.py:223(bs,cf) trl async_grpo_trainer.py:881(bs=1,cf,nw=0) torchtune early_exit.py:653(bs,sa,dl=T,cf)
        OLMo data/__init__.py:114(bs,cf,nw,sa,pm,pf,pw,to) OLMo data/__init__.py:169(bs,dl,cf,nw,pm,pf,pw,to)
        Megatron-LM data_samplers.py:111(bsa,cf,nw,pm=T,pw,wi,*)
        Megatron-LM run_text_generation.py:150(bs=N,nw,sa,pm=T) Megatron-LM finetune_utils.py:83(bs,sa,sh=F,nw,dl,pm=T,cf)
        BART finetune.py:304(bsa,cf,nw,pm=T)
        DeepSpeed dataloader.py:143(bs,pm,sa,nw,dl,cf) rl chat.py:668(bs,sh,cf,g) spdl dataloader.py:103(bs,sa,nw,cf,pm=T,pf,pw,mc)""",
    "audio": """
        vits train.py:75(nw=8,sh=F,pm=T,cf,bsa) vits train.py:79(nw=8,sh=F,bs,pm=T,dl=F,cf) fairseq iterators.py:503(cf,bsa,nw,to,pm=T,pw)
        fairseq iterators.py:869(cf,bsa,nw,pw)
        fairseq iterators.py:215(bs,cf,nw,to,wi,pm=T,pw) speechbrain dynamic_mixing.py:221(bs,nw,cf,wi) lhotse set.py:2302(bs=N,sa,nw)
        lhotse set.py:2798(bs=N,nw=1,pf)
        wav2vec2 dataset.py:148(cf,bsa,nw,pm=T,pw) open_clip audio_data.py:457(bs,sh,nw,pm=T,sa,dl,cf,*)""",
    "objects": """
        pytorch_geometric attentive_fp.py:107(bs=200,cf) pytorch_geometric distributed_batching.py:80(bs=128,sa,cf)
        DeepLearningExamples qm9.py:153(sh=F,bs,nw,cf)
        DeepLearningExamples trainer.py:108(bs,nw,sa,sh,pm=T,cf,mc) openfold precompute_embeddings.py:116(cf,bsa)
        pytorch-forecasting _encoder_decoder_data_module.py:1039(bs,nw,sh=T,cf) lerobot lerobot_train.py:340(nw,bs,sh,sa,pm,dl=F,cf,pf,pw,mc)""",
    "streams": """
        open_clip data.py:1023(bs=N,sh=F,nw,pm=T,pw) pytorch-image-models naflex_loader.py:387(bs=N,sh=F,nw,sa=N,pm,wi,pw)
        streaming c4.py:121(bs,nw,pf)
        lerobot train_with_streaming.py:72(nw=4,bs=16,pm,dl=T,pf=2) rl countdown.py:161(bs,cf) lance vector.py:324(bs=1,pm=T,cf)
        examples language_translation/data.py:93(bs,cf) sentence-transformers computing_embeddings_streaming.py:32(bs)""",
}  # fmt: skip

ABBREVIATED = {
    "bs": "batch_size", "sh": "shuffle", "sa": "sampler", "bsa": "batch_sampler", "nw": "num_workers", "cf": "collate_fn", "pm": "pin_memory",
    "dl": "drop_last", "pw": "persistent_workers", "pf": "prefetch_factor", "wi": "worker_init_fn", "to": "timeout", "mc": "multiprocessing_context",
    "g": "generator",
}  # fmt: skip


class Drawn(Dataset):
    """Samples of a kind, augmented at random."""

    def __init__(self, kind, n):
        self.kind, self.n = kind, n

    def __len__(self):
        return self.n

    def __getitem__(self, i):
        length = 1 + int(i) * 7 % 5
        if self.kind == "images":
            image = np.full((3, 9, 9), int(i), np.uint8)
            at = random.randrange(3)
            image = torch.from_numpy(image[:, at : at + 6, at : at + 6].astype(np.float32)) + torch.rand(1)
            return (image.flip(-1) if np.random.rand() < 0.5 else image), int(i) % 4
        if self.kind == "ragged":
            return torch.rand(3, length, 2), {"boxes": torch.rand(length, 4), "image_id": torch.tensor(int(i))}
        if self.kind == "texts":
            return {"input_ids": [int(i)] * length, "labels": random.randrange(9), "text": f"text {i}"}
        if self.kind == "audio":
            return {"wave": torch.rand(length * 4), "length": length * 4, "name": f"{i}.wav"}
        return {"x": torch.rand(length, 2), "z": np.random.rand(length)}


class Stream(IterableDataset):
    """Samples that workers divide."""

    def __init__(self, n):
        self.n = n

    def __iter__(self):
        info = get_worker_info()
        first, step = (0, 1) if info is None else (info.id, info.num_workers)
        for i in range(first, self.n, step):
            yield {"image": torch.rand(2, 3), "n": i, "name": f"{i}"}


class Graphs:
    """A batch of an own class."""

    def __init__(self, samples):
        self.x, self.sizes = torch.cat([s["x"] for s in samples]), [len(s["x"]) for s in samples]
        self.z = np.concatenate([s["z"] for s in samples])

    def pin_memory(self):
        return self


def padded(samples):
    longest = max(len(s["input_ids"]) for s in samples)
    ids = torch.zeros(len(samples), longest, dtype=torch.int64)
    for row, s in zip(ids, samples):
        row[: len(s["input_ids"])] = torch.tensor(s["input_ids"])
    return {"input_ids": ids, "attention_mask": ids != 0, "labels": torch.tensor([s["labels"] for s in samples])}


def waves(samples):
    return (
        torch.nn.utils.rnn.pad_sequence([s["wave"] for s in samples], True),
        torch.tensor([s["length"] for s in samples]),
        [s["name"] for s in samples],
    )


def columns(samples):
    return (*zip(*samples), random.random())


def as_list(samples):
    return samples


def with_noise(samples):
    batch = torch.utils.data.default_collate(samples)
    batch[0].add_(torch.rand(1))
    return batch


def seeded(worker_id):
    random.seed(torch.initial_seed() % (1 << 32) + worker_id)


COLLATE = {"memory": as_list, "images": with_noise, "ragged": columns, "texts": padded, "audio": waves, "objects": Graphs, "streams": as_list}


def uses():
    """Yield kind, place and arguments of each use."""
    for kind, text in USES.items():
        for place, arguments in re.findall(r"(\S+ \S+?:?\d*)\(([^)]*)\)", text):
            yield kind, place, [a.partition("=")[::2] for a in arguments.split(",") if a not in ("", "*")]


def program(kind, given, rng):
    """Return what makes the arguments of a use, with values for its variables."""
    n = rng.randint(3, 40)
    names = {ABBREVIATED[name] for name, _ in given}
    fixed = {ABBREVIATED[name]: {"T": True, "F": False, "N": None}.get(value, value) for name, value in given if value}
    fixed = {name: int(value) if isinstance(value, str) else value for name, value in fixed.items()}
    if "num_workers" in fixed:
        fixed["num_workers"] = min(fixed["num_workers"], 3)
    workers = fixed.get("num_workers", rng.choice([0, 1, 2, 3]) if "num_workers" in names else 0)
    size = fixed.get("batch_size", rng.choice([1, 2, 3, 4, 8, 50]) if "batch_size" in names else 1)
    seed, drop, pin, shuffle, factor, keep, distributed = (
        rng.randrange(1 << 30), rng.random() < 0.5, rng.random() < 0.5, rng.random() < 0.7, rng.randint(1, 4), rng.random() < 0.5, rng.random() < 0.5,
    )  # fmt: skip
    both = "batch_sampler" in names and "sampler" in names  # one of them is None there
    by_batch = "batch_sampler" in names and (not both or rng.random() < 0.5)

    def arguments():
        if kind == "streams":
            dataset = Stream(n)
        elif kind == "memory":
            dataset = TensorDataset(torch.arange(3 * n).view(n, 3).float(), torch.arange(n))
        else:
            dataset = Drawn(kind, n)
        sampler = DistributedSampler(dataset, 2, seed % 2, seed=3) if distributed and kind != "streams" else RandomSampler(range(n))
        variable = {
            "batch_size": size, "num_workers": workers, "collate_fn": COLLATE[kind], "drop_last": drop, "pin_memory": pin, "shuffle": shuffle,
            "prefetch_factor": factor if workers else None, "persistent_workers": keep and workers > 0, "worker_init_fn": seeded, "timeout": 100,
            "multiprocessing_context": "fork" if workers else None, "generator": torch.Generator().manual_seed(seed),
            "sampler": None if by_batch else sampler, "batch_sampler": BatchSampler(sampler, 3, drop) if by_batch else None,
        }  # fmt: skip
        found = {**{name: variable[name] for name in names}, **fixed}
        if by_batch:
            found.pop("batch_size", None)
        if not workers:
            found.pop("timeout", None)
            found = {k: v for k, v in found.items() if not (k in ("persistent_workers", "prefetch_factor") and v)}
        if ("sampler" in found and found["sampler"] is not None) or by_batch:
            found["shuffle"] = False
        return dataset, found

    return arguments, seed, rng.randint(1, 2)


def seen(make, arguments, seed, epochs):
    """Return what a program sees."""
    seed_all(seed)
    dataset, given = arguments()
    found = []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            loader = make(dataset, **given)
        except Exception as e:
            return [(type(e), str(e))]
        if hasattr(dataset, "__len__"):
            found.append(len(loader))
        for epoch in range(epochs):
            if hasattr(loader.sampler, "set_epoch"):
                loader.sampler.set_epoch(epoch)
            for batch in loader:
                found.append(vars(batch) if isinstance(batch, Graphs) else copied(batch))
            found.append((random.random(), float(np.random.rand()), torch.rand(1).item()))
    return found


class PublicUses(unittest.TestCase):
    def test_same_batches(self):
        """Each use at least twice; `PEERS_CASES=1000` varies the values of their variables further."""
        known, cases, differ = list(uses()), len(chosen(200)), []
        self.assertEqual(len(known), 86)
        for k in range(cases):
            kind, place, given = known[k % len(known)]
            made = program(kind, given, random.Random(f"{SEED} {k}"))
            mine, theirs = seen(penstock.DataLoader, *made), seen(torch.utils.data.DataLoader, *made)
            try:
                self.assertEqual(len(mine), len(theirs), (mine[:1], theirs[:1]))
                for n, (a, b) in enumerate(zip(mine, theirs)):
                    same(self, a, b, f"seen {n}")
            except AssertionError as e:
                differ.append(f"case {k}, {place}: {made[0]()[1]}: {str(e)[:300]}")
        print(f"public uses: {cases} programs of {len(known)} uses, {len(differ)} differ, PEERS_SEED={SEED}", *differ, sep="\n", file=sys.stderr)
        self.assertFalse(differ)
