"""The DataLoader, and the client of the feeding process that makes batches of prepared and raw data.

``dataloader`` checks the parameters (``request``, ``signature``) and finds out what is loaded (``subject``). Batches of prepared and
raw data come from the program ``feed``: ``process`` starts it, ``session`` talks to it by ``wire``, and ``shared`` and ``positions``
are the memory in which its batches lie. ``feeding`` is the loop over them; ``recording`` and ``listed`` have workers of Python finish
them. Arrays in memory and datasets of the user's own code are in the package ``_code``. ``device`` copies batches to a GPU.
"""
