"""What goes wrong with a dataset."""


class Error(Exception):
    """A dataset cannot be used. The text says where, what, and what to do."""


class CorruptError(Error):
    """Bytes are not what the format or the manifest says."""


class UnsupportedError(Error):
    """A dataset that may be valid, but not for this reader."""
