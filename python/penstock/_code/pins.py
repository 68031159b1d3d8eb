"""Copies of batches in page-locked memory: torch's, and a thread that makes them while the training step runs.

They are for batches of Python code; batches of a feeding process are in memory that _engine/pinned.py locks, without a copy.
"""

from __future__ import annotations

import sys
import warnings
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from .._base.errors import Error


def device(options: Any) -> str | None:
    """Return the type of the device for pinned memory, as torch finds it; None if batches are not pinned. Warn as torch does."""
    if not options.pin_memory:
        return None
    torch = sys.modules.get("torch")
    if torch is None:
        raise Error("pin_memory=True needs batches of torch; leave pin_memory out")
    if options.pin_memory_device:
        warnings.warn(
            f"pin_memory_device is deprecated, the current accelerator will be used as the device,ignore "
            f"pin_memory_device='{options.pin_memory_device}'.",
            stacklevel=5,
        )
    accelerator = getattr(torch, "accelerator", torch.cuda)
    if not accelerator.is_available():
        warnings.warn("'pin_memory' argument is set as true but no accelerator is found, then device pinned memory won't be used.", stacklevel=5)
        return None
    found: str = accelerator.current_accelerator().type if accelerator is not torch.cuda else "cuda"
    if found == "mps":
        warnings.warn("'pin_memory' argument is set as true but not supported on MPS now, device pinned memory won't be used.", stacklevel=5)
        return None
    return found


class Pins:
    """Pins batches for a type of device: at once, or ahead, in a thread."""

    def __init__(self, kind: str) -> None:
        from torch.utils.data._utils.pin_memory import pin_memory

        self._pin: Any = pin_memory  # which has no annotations
        self._kind = kind
        self._thread: ThreadPoolExecutor | None = None
        self._ahead: dict[int, Future[Any]] = {}

    def pinned(self, batch: Any) -> Any:
        """Return a copy of a batch in page-locked memory, by the rules of torch."""
        return self._pin(batch, self._kind)

    def begin(self, number: int, batch: Any) -> None:
        """Begin to pin a batch."""
        if self._thread is None:
            torch = sys.modules["torch"]
            accelerator: Any = getattr(torch, "accelerator", None)
            of_device = () if accelerator is None else (accelerator.set_device_index, (accelerator.current_device_index(),))
            self._thread = ThreadPoolExecutor(1, "pt_data_pin", *of_device)
        self._ahead[number] = self._thread.submit(self._pin, batch, self._kind)

    def take(self, number: int) -> Future[Any] | None:
        """Return what has the pinned batch in the end; None if it was not begun."""
        return self._ahead.pop(number, None)

    def close(self) -> None:
        """Forget the batches that were begun."""
        self._ahead.clear()
        if self._thread is not None:
            self._thread.shutdown(wait=False)
        self._thread = None
