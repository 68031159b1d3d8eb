"""The DataLoader, and the client of the feeding process that makes batches of prepared and raw data."""
