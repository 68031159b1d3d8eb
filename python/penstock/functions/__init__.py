"""Functions of the user in a DataLoader's transforms: they run in worker processes, between what the engine does."""

from .call import Function, WrongOutput
from .random_state import record_seed, seed_random
from .record import PLACE, Record

__all__ = ["PLACE", "Function", "Record", "WrongOutput", "record_seed", "seed_random"]
