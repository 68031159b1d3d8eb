"""Datasets, views and fields as a program reads them: flat files mapped here, all others by ``penstock feed --records``.

``dataset`` and ``view`` are what users hold, and ``records`` and ``ragged`` their fields. A DataLoader opens its path here, too, to
know fields and records, and leaves the reading to the feeding process.
"""
