"""A model of what a loader yields, in plain Python: NumPy, Pillow, h5py and pandas, and no penstock.

``order`` says which records come in which batch, ``data`` makes raw files and says which fields they have, ``views`` chooses
and combines records, ``pixels`` transforms images, and ``program`` draws a random program over all of these: a source, views,
a sampler, ranks, transforms, a point to resume at. ``tests.test_model`` runs each program with penstock and compares every
batch. Whatever the model and the engine disagree on is a fault of one of them: docs/ decides of which.

The model is written for readers: it makes whole epochs as lists, and has no fast paths. What it does not describe, no program
draws: see ``program.draw``.
"""
