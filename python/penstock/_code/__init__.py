"""The engine for a user's own dataset: samples by Python code, in worker processes, into shared memory, or rows of arrays in this process.

penstock.DataLoader makes a ``loader.UserLoader`` when its dataset is an object with ``__getitem__`` or ``__iter__``, or a Gather of arrays::

    loader = UserLoader(signature, seed=None, rank=0, world_size=1, on_error="fail", output="torch")

    signature    a Signature: the dataset, and all parameters of torch's DataLoader. Assign another one
                 (dataclasses.replace) to ``loader.signature`` and it holds from the next iter(), as attributes of torch's do.
    seed         None: torch's own order and random numbers, to the bit. An integer of 64 bits: penstock's order, with ranks,
                 and random numbers by record.
    rank, world_size   Which slice of the global batch this process gets; with a seed only, and not of an iterable dataset.
    on_error     "fail", "backfill" or "blank": records whose code raises an exception; the last two with a seed only, and
                 not of an iterable dataset.
    output       "torch", or "numpy": what default collation makes. With "numpy", torch is not imported, unless the dataset
                 was made with it.

``UserLoader`` raises ValueError, TypeError or UnsupportedError in its constructor for what it refuses; no process starts
before the first iter(). Attributes and methods:

    sampler, batch_sampler   As torch's DataLoader has them, built from the signature by its rules (torch's classes where torch is
                 used); read at each iter(), and may be assigned.
    __iter__()   Returns an iterator: an instance of torch's _BaseDataLoaderIter where torch is used. With persistent_workers
                 the same one each time, as in torch: it is ``_iterator``, which may be set to None. Draws from the generators
                 what torch draws. With a seed, each iter() is an epoch, and begins when its first batch is asked for.
    __len__()    As len() of torch's DataLoader; with a seed, the batches of an epoch of this rank.
    state_dict() In microseconds: plain dicts, numbers, strings, bytes, and what the user's own state_dict methods return.
    load_state_dict(state)   For the next iter(). Raises Error or ValueError, with what differs, and leaves all as it was.
    set_epoch(n) With a seed: the epoch of the next iter(). Without, and for iterable datasets: calls set_epoch of the batch
                 sampler, the sampler and the dataset, if they have it.
    epoch        The epoch of the next batch (penstock's, with a seed; without, the number of earlier iter() calls).
    stats()      A dict: batches, workers, wait_ns and others, times in nanoseconds; ``diagnose`` is the sentence of diagnose().
    diagnose()   The limit of the loop, and what to do.
    close()      Ends the workers. Batches that are still referred to stay as they are.

    get_worker_info()   As torch.utils.data.get_worker_info, which works too, for datasets that do without torch.
"""
