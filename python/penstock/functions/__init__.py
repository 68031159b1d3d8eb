"""Functions of the user in a DataLoader's transforms: they run in worker processes, between what the engine does."""

from .call import Function, WrongOutput
from .random_state import record_seed, seed_random

__all__ = ["Function", "WrongOutput", "record_seed", "seed_random"]
