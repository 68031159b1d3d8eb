"""Datasets, views and fields as a program reads them: flat files mapped here, all others by ``penstock feed --records``."""
