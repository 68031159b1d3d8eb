"""Photos to batches for training, by the libraries that this Python has, as their users do it.

usage: photos.py FOLDER    one JSON request a line in, one JSON answer a line out

The work: the files of FOLDER/training, in some order; RandomResizedCrop(224), a random flip, and
(x/255 - mean)/std as float32, channels first, in batches of 64. Two threads, or processes.
"""
import glob
import math
import os
import random
import sys

from served import cpu_time, serve, timed

SIDE, BATCH, THREADS = 224, 64, 2
MEAN, STD = (.485, .456, .406), (.229, .224, .225)
FILES = sorted(glob.glob(os.path.join(sys.argv[1], "training", "*", "*")))
WAYS, VERSIONS = [], []


def draw(w, h):
    """torchvision's RandomResizedCrop.get_params: left, top, width, height."""
    for _ in range(10):
        area = w * h * random.uniform(.08, 1)
        ratio = math.exp(random.uniform(math.log(3 / 4), math.log(4 / 3)))
        cw, ch = round(math.sqrt(area * ratio)), round(math.sqrt(area / ratio))
        if 0 < cw <= w and 0 < ch <= h:
            return random.randint(0, w - cw), random.randint(0, h - ch), cw, ch
    side = min(w, h)
    return (w - side) // 2, (h - side) // 2, side, side


def way(text):
    def add(make):
        WAYS.append((text, make))
        return make
    return add


try:
    sys.path.append(os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "python"))  # after an installed wheel
    import penstock
    from penstock import transforms as T

    @way("penstock.DataLoader rebuilt, NumPy, 2 threads")
    def _():
        def epoch():  # one that is kept would begin the next epoch while others are measured
            with penstock.DataLoader(
                os.path.join(sys.argv[1], "dataset"), BATCH, shuffle=True, num_workers=THREADS, output="numpy",
                transforms=[T.RandomResizedCrop(SIDE), T.RandomHorizontalFlip(), T.ToTensor(), T.Normalize(MEAN, STD)],
            ) as loader:
                return sum(len(b["images"]) for b in loader)
        return epoch
except ImportError:
    pass

try:
    import torch
    import torchvision
    from PIL import Image
    from torchvision import transforms as tv1
    from torchvision.transforms import v2
    torch.set_num_threads(1)
    VERSIONS.append(f"torchvision {torchvision.__version__}")

    class Photos(torch.utils.data.Dataset):
        def __init__(self, load, transform):
            self.load, self.transform = load, transform

        def __len__(self):
            return len(FILES)

        def __getitem__(self, i):
            return self.transform(self.load(FILES[i]))

    def pillow(path):
        return Image.open(path).convert("RGB")

    def tensor(path):
        return torchvision.io.decode_image(torchvision.io.read_file(path), torchvision.io.ImageReadMode.RGB)

    def loading(load, transform):
        loader = torch.utils.data.DataLoader(Photos(load, transform), BATCH, shuffle=True, num_workers=THREADS, persistent_workers=True)
        return lambda: sum(len(b) for b in loader)

    @way("torchvision on Pillow, DataLoader, 2 workers")
    def _():
        return loading(pillow, tv1.Compose([tv1.RandomResizedCrop(SIDE), tv1.RandomHorizontalFlip(), tv1.ToTensor(), tv1.Normalize(MEAN, STD)]))

    @way("torchvision tensors, DataLoader, 2 workers")
    def _():
        return loading(tensor, v2.Compose([
            v2.RandomResizedCrop(SIDE, antialias=True), v2.RandomHorizontalFlip(), v2.ToDtype(torch.float32, scale=True), v2.Normalize(MEAN, STD)]))
except ImportError:
    pass

try:
    from concurrent.futures import ThreadPoolExecutor

    import cv2
    import numpy as np
    import simplejpeg
    cv2.setNumThreads(1)
    VERSIONS.append(f"simplejpeg {simplejpeg.__version__}, OpenCV {cv2.__version__}")
    SCALE = np.float32(1 / (255 * np.array(STD)))[:, None, None]
    SHIFT = np.float32(np.array(MEAN) / np.array(STD))[:, None, None]

    def opencv(interpolation):
        pool = ThreadPoolExecutor(THREADS)

        def one(args):
            path, out = args
            with open(path, "rb") as f:
                m = simplejpeg.decode_jpeg(f.read(), "RGB")
            x, y, w, h = draw(m.shape[1], m.shape[0])
            m = cv2.resize(m[y:y + h, x:x + w], (SIDE, SIDE), interpolation=interpolation)
            if random.random() < .5:
                m = cv2.flip(m, 1)
            np.multiply(m.transpose(2, 0, 1), SCALE, out=out)
            np.subtract(out, SHIFT, out=out)

        def epoch():
            order, n = random.sample(FILES, len(FILES)), 0
            for i in range(0, len(order), BATCH):
                part = order[i:i + BATCH]
                batch = np.empty((len(part), 3, SIDE, SIDE), np.float32)
                list(pool.map(one, zip(part, batch)))
                n += len(batch)
            return n
        return epoch

    @way("simplejpeg and OpenCV INTER_LINEAR, 2 threads")
    def _():
        return opencv(cv2.INTER_LINEAR)

    @way("simplejpeg and OpenCV INTER_AREA, 2 threads")
    def _():
        return opencv(cv2.INTER_AREA)
except ImportError:
    pass

try:
    import nvidia.dali
    from nvidia.dali import fn, pipeline_def, types
    VERSIONS.append(f"DALI {nvidia.dali.__version__}")

    def dali(antialias):
        @pipeline_def(batch_size=BATCH, num_threads=THREADS, device_id=None)
        def pipeline():
            data, _ = fn.readers.file(files=FILES, labels=[0] * len(FILES), random_shuffle=True, name="photos")
            m = fn.decoders.image_random_crop(data, device="cpu", output_type=types.RGB, random_area=[.08, 1], random_aspect_ratio=[3 / 4, 4 / 3])
            m = fn.resize(m, device="cpu", resize_x=SIDE, resize_y=SIDE, interp_type=types.INTERP_LINEAR, antialias=antialias)
            return fn.crop_mirror_normalize(m, dtype=types.FLOAT, output_layout="CHW", mirror=fn.random.coin_flip(),
                                            mean=[255 * v for v in MEAN], std=[255 * v for v in STD])
        p = pipeline()
        p.build()

        def epoch():
            n = 0
            while n < len(FILES):
                n += len(p.run()[0])
            return n
        return epoch

    @way("DALI on the CPU, 2 threads")
    def _():
        return dali(False)

    @way("DALI on the CPU, antialiased, 2 threads")
    def _():
        return dali(True)
except ImportError:
    pass

try:
    from importlib.metadata import version

    import numpy as np
    import spdl.io
    import spdl.pipeline
    VERSIONS.append("SPDL {}".format(version("spdl")))

    @way("SPDL, 2 threads")
    def _():
        mean, std = (np.float32(v)[:, None, None] for v in (MEAN, STD))

        def one(path):
            packets = spdl.io.demux_image(path)
            codec = packets.codec
            x, y, w, h = draw(codec.width, codec.height)
            flip = ",hflip" if random.random() < .5 else ""
            frames = spdl.io.decode_packets(
                packets, filter_desc=f"crop={w}:{h}:{x}:{y},scale={SIDE}:{SIDE}:flags=bilinear{flip},format=pix_fmts=rgb24")
            m = spdl.io.to_numpy(spdl.io.convert_frames(frames))
            return (np.float32(m.reshape(SIDE, SIDE, 3).transpose(2, 0, 1)) / 255 - mean) / std

        def epoch():
            order, n = random.sample(FILES, len(FILES)), 0
            p = spdl.pipeline.PipelineBuilder().add_source(order).pipe(one, concurrency=THREADS)
            p = p.aggregate(BATCH).pipe(np.stack).add_sink(2).build(num_threads=THREADS)
            with p.auto_stop():
                for b in p:
                    n += len(b)
            return n
        return epoch
except ImportError:
    pass

try:
    from importlib.metadata import version

    import numpy as np
    from ffcv.fields import IntField, RGBImageField
    from ffcv.fields.rgb_image import RandomResizedCropRGBImageDecoder
    from ffcv.loader import Loader, OrderOption
    from ffcv.transforms import NormalizeImage, RandomHorizontalFlip, ToTensor, ToTorchImage
    from ffcv.writer import DatasetWriter
    VERSIONS.append("FFCV {}".format(version("ffcv")))

    @way("FFCV, JPEG of quality 95, 2 workers")
    def _():
        path = os.path.join(sys.argv[1], "photos.beton")

        class Photos:
            def __len__(self):
                return len(FILES)

            def __getitem__(self, i):
                return Image.open(FILES[i]).convert("RGB"), 0
        if not os.path.exists(path):
            writer = DatasetWriter(path, {"image": RGBImageField(write_mode="jpg", jpeg_quality=95), "label": IntField()}, num_workers=1)
            writer.from_indexed_dataset(Photos())
        mean, std = (255 * np.array(v) for v in (MEAN, STD))
        loader = Loader(path, batch_size=BATCH, num_workers=THREADS, order=OrderOption.RANDOM, os_cache=True, pipelines={
            "image": [RandomResizedCropRGBImageDecoder((SIDE, SIDE)), RandomHorizontalFlip(), NormalizeImage(mean, std, np.float32),
                      ToTensor(), ToTorchImage()], "label": None})
        return lambda: sum(len(b[0]) for b in loader)
except ImportError:
    pass

try:
    import tensorflow as tf
    VERSIONS.append(f"tf.data of TensorFlow {tf.__version__}")

    @way("tf.data, 2 threads")
    def _():
        def one(path):
            data = tf.io.read_file(path)
            begin, size, _ = tf.image.sample_distorted_bounding_box(
                tf.image.extract_jpeg_shape(data), tf.zeros([1, 0, 4]), area_range=(.08, 1), aspect_ratio_range=(3 / 4, 4 / 3), max_attempts=10,
                use_image_if_no_bounding_boxes=True)
            window = tf.concat([begin[:2], size[:2]], 0)
            m = tf.image.random_flip_left_right(tf.image.resize(tf.image.decode_and_crop_jpeg(data, window, channels=3), (SIDE, SIDE)))
            return tf.transpose((m / 255 - MEAN) / STD, (2, 0, 1))
        options = tf.data.Options()
        options.threading.private_threadpool_size = THREADS
        ds = tf.data.Dataset.from_tensor_slices(FILES).shuffle(len(FILES)).map(one, num_parallel_calls=THREADS)
        ds = ds.batch(BATCH).prefetch(2).with_options(options)
        return lambda: sum(len(b) for b in ds)
except ImportError:
    pass


EPOCHS = {}


def answer(q):
    if not q["do"]:
        return {"text": ", ".join(VERSIONS), "ways": [{"name": text, "text": text} for text, _ in WAYS]}
    if q["do"] not in EPOCHS:
        EPOCHS[q["do"]] = dict(WAYS)[q["do"]]()
    found = []
    cost = timed(lambda: found.append(EPOCHS[q["do"]]()), cpu_time)
    if abs(found[0] - len(FILES)) >= BATCH:
        raise ValueError(f"{q['do']}: {found[0]} photos of {len(FILES)}")
    return {k: v * len(FILES) / found[0] for k, v in cost.items()}  # DALI's last batch is full


serve(answer)
