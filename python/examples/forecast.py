"""Train a small forecast model from an HDF5 file that h5py wrote, end to end:

    python3 forecast.py [FOLDER]

It writes a field of waves that move, hour by hour, on a grid of latitudes and longitudes; makes windows of 6 hours and the hour
after them, which wrap around the circle of longitudes; divides the hours into training and validation sets that share no
element; standardizes by statistics of the training hours; and trains a convolution of PyTorch. It prints the error of the model
and that of persistence, the forecast that nothing changes.
"""

from __future__ import annotations

import os
import sys
import tempfile

import h5py
import numpy as np
import torch

import penstock
from penstock import samplers

HOURS, LAT, LON, PAST = 480, 16, 32, 6


def write(path: str) -> None:
    """Write t2m(time, lat, lon) as netCDF-4 and xarray do: in compressed chunks, with the names and coordinates of axes."""
    rng = np.random.default_rng(0)
    time, lat, lon = np.arange(HOURS)[:, None, None], np.linspace(60, -60, LAT)[:, None], np.linspace(0, 360, LON, endpoint=False)
    waves = sum(rng.normal(3, 1) * np.sin(np.radians(k * (lon - 6 * time)) + rng.uniform(0, 6)) for k in (1, 2, 3))
    values = 280 + 20 * np.cos(np.radians(lat)) + waves + rng.normal(0, 0.2, (HOURS, LAT, LON))
    with h5py.File(path, "w") as f:
        t2m = f.create_dataset("t2m", data=values.astype("f4"), chunks=(24, LAT, LON), compression="gzip")
        for axis, (name, at) in zip(t2m.dims, {"time": np.arange(HOURS), "lat": lat[:, 0], "lon": lon}.items()):
            f[name] = at
            f[name].make_scale(name)
            axis.attach_scale(f[name])


def model() -> torch.nn.Module:
    """Return a network of two convolutions, whose output is added to the last hour."""
    return torch.nn.Sequential(
        torch.nn.Conv2d(PAST, 16, 5, padding=2, padding_mode="circular"), torch.nn.GELU(),
        torch.nn.Conv2d(16, 1, 5, padding=2, padding_mode="circular"),
    )  # fmt: skip


def train(folder: str, epochs: int = 4) -> tuple[float, float]:
    """Train, and return the root mean square errors, in kelvin, of the model and of persistence on the validation set."""
    torch.manual_seed(0)
    torch.set_num_threads(1)  # the model is small
    path = os.path.join(folder, "t2m.nc")
    write(path)
    ds = penstock.open(path)
    windows = ds.windows(
        {"time": PAST, "lat": LAT, "lon": LON},
        stride={"lon": 8},
        pad={"lon": "wrap"},
        outputs={"past": {"of": "t2m"}, "future": {"of": "t2m", "sizes": {"time": 1}, "lead": {"time": PAST}}},
    )
    parts = windows.partition({"train": 0.75, "val": 0.25}, gap=PAST)
    scale = ds.statistics("t2m", ranges=[(0, int(0.75 * HOURS))])
    steps = {"past": [scale.standardize()], "future": [scale.standardize()]}
    net = model()
    optimizer = torch.optim.Adam(net.parameters(), 3e-3)
    with penstock.DataLoader(parts["train"], 32, sampler=samplers.ChunkShuffle("64MiB"), transforms=steps, seed=0) as loader:
        for _ in range(epochs):
            for batch in loader:
                past, future = batch["past"], batch["future"]
                loss = torch.nn.functional.mse_loss(past[:, -1:] + net(past), future)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
    squares, still, n = 0.0, 0.0, 0
    with penstock.DataLoader(parts["val"], 64, transforms=steps) as loader, torch.no_grad():
        for batch in loader:
            past, future = batch["past"], batch["future"]
            squares += float(((past[:, -1:] + net(past) - future) ** 2).sum())
            still += float(((past[:, -1:] - future) ** 2).sum())
            n += future.numel()
    kelvin = float(scale.std.squeeze())
    return kelvin * (squares / n) ** 0.5, kelvin * (still / n) ** 0.5


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made:
        error, persistence = train(sys.argv[1] if len(sys.argv) > 1 else made)
    print(f"error of the model {error:.2f} K, of persistence {persistence:.2f} K")
