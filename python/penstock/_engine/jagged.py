"""Fields of variable length as torch tensors."""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any, overload

import numpy as np
import torch


class Jagged:
    """A batch of records of a field of variable length, as tensors: what ``penstock.Ragged`` is in NumPy.

    ``b[i]`` are the rows of record i, a view, and ``b[i:j]`` and ``b[[3, 1]]`` batches of several; ``len(b)`` is the
    number of records, and iteration goes over them. ``values`` are all rows, and the rows of record i are
    ``values[offsets[i]:offsets[i+1]]``: ``offsets`` is the cu_seqlens of attention kernels, as int64.
    """

    __slots__ = ("offsets", "values")

    def __init__(self, values: torch.Tensor, offsets: torch.Tensor) -> None:
        self.values, self.offsets = values, offsets

    @property
    def lengths(self) -> torch.Tensor:
        """The number of rows of each record."""
        return self.offsets.diff()

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __repr__(self) -> str:
        return f"<{len(self)} jagged records: {self.values.dtype} {tuple(self.values.shape)} on {self.values.device}>"

    @overload
    def __getitem__(self, i: int) -> torch.Tensor: ...

    @overload
    def __getitem__(self, i: slice | list[int] | torch.Tensor) -> Jagged: ...

    def __getitem__(self, i: Any) -> torch.Tensor | Jagged:
        """Return the rows of record i; of a slice, or of an array or list of numbers, a batch of these records."""
        n = len(self)
        if isinstance(i, torch.Tensor) and i.ndim:
            return self._some(torch.arange(n, device=self.offsets.device)[i])
        if isinstance(i, slice) or np.ndim(i):  # torch takes floats and uint8 of NumPy for numbers and a mask, and no negative step
            return self._some(torch.from_numpy(np.arange(n)[i].copy()).to(self.offsets.device))
        i = operator.index(i)
        if not -n <= i < n:
            raise IndexError(f"record {i} is out of range: there are {n}")
        return self.values[self.offsets[i % n] : self.offsets[i % n + 1]]

    def __iter__(self) -> Iterator[torch.Tensor]:
        return iter(torch.split(self.values, self.lengths.tolist()))

    def map(self, function: Callable[[torch.Tensor], torch.Tensor]) -> Jagged:
        """Return a function's results for ``values`` and ``offsets``."""
        return self._like(function(self.values), function(self.offsets))

    def to(self, *arguments: Any, **options: Any) -> Jagged:
        """Return the tensor on a device, or with values of another type: the parameters are the parameters of torch.Tensor.to."""
        values = self.values.to(*arguments, **options)
        return self._like(values, self.offsets.to(values.device, non_blocking=bool(options.get("non_blocking"))))

    def _like(self, values: torch.Tensor, offsets: torch.Tensor) -> Jagged:
        return Jagged(values, offsets)

    def _some(self, records: torch.Tensor) -> Jagged:
        """Return the records of these numbers, all of which there are."""
        starts, lengths = self.offsets[records], self.lengths[records]
        offsets = torch.cat([lengths.new_zeros(1), lengths.cumsum(0)])
        if len(records) and bool((records.diff() == 1).all()):
            return self._like(self.values[starts[0] : starts[-1] + lengths[-1]], offsets)
        rows = torch.repeat_interleave(starts - offsets[:-1], lengths)
        return self._like(self.values[rows + torch.arange(len(rows), device=rows.device)], offsets)

    def pin_memory(self) -> Jagged:
        """Return a copy in page-locked memory, as torch's DataLoader asks for."""
        return self.map(lambda t: t.pin_memory())

    def nested(self) -> torch.Tensor:
        """Return the rows as a nested tensor of jagged layout (torch 2.4 and newer)."""
        return torch.nested.nested_tensor_from_jagged(self.values, self.offsets)


class Sparse(Jagged):
    """A batch of rows that are mostly zero, as tensors: what ``penstock.Sparse`` is in NumPy.

    ``values`` are pairs of a column and the value in it; ``width`` is the number of columns.
    """

    __slots__ = ("width",)

    def __init__(self, values: torch.Tensor, offsets: torch.Tensor, width: int) -> None:
        super().__init__(values, offsets)
        self.width = width

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return len(self), self.width

    @property
    def indptr(self) -> torch.Tensor:
        """Where each row begins, and the end of the last: ``offsets``."""
        return self.offsets

    @property
    def indices(self) -> torch.Tensor:
        """The columns, as int32, or int64 if there are more than that has."""
        return self.values[:, 0].to(torch.int32 if self.width < 1 << 31 else torch.int64).contiguous()

    @property
    def data(self) -> torch.Tensor:
        """The values."""
        return self.values[:, 1].contiguous()

    def scipy(self) -> Any:
        """Return a scipy.sparse.csr_matrix."""
        from scipy.sparse import csr_matrix  # type: ignore[import-untyped]

        parts = (x.cpu().numpy() for x in (self.data, self.indices, self.indptr))
        return csr_matrix(tuple(parts), shape=self.shape)

    def torch(self) -> Any:
        """Return a tensor of layout torch.sparse_csr."""
        indices = self.indices
        return torch.sparse_csr_tensor(self.indptr.to(indices.dtype), indices, self.data, size=self.shape, check_invariants=True)

    def _like(self, values: Any, offsets: Any) -> Sparse:
        return Sparse(values, offsets, self.width)
