"""What can go wrong between a name and its arrays."""


class DatasetError(RuntimeError):
    """A data set could not be found, obtained or read."""


class ChecksumError(DatasetError):
    """A file does not hold the bytes that the registry expects."""


class DownloadError(DatasetError):
    """No address of a file gave it; says which file, and how to place it by hand."""


class UnsafeArchiveError(DatasetError):
    """An archive has a member that is no plain file, or lies outside its folder."""
