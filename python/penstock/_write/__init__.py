"""Datasets that are written or changed from Python, by the program preprocess."""
