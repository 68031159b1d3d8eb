"""Functions of the user in a DataLoader's transforms: they run in worker processes, between what the engine does."""

from .call import Function, WrongOutput
from .record import PLACE, Record

__all__ = ["PLACE", "Function", "Record", "WrongOutput"]
