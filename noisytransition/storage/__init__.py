"""Files of the library: plain data and tensors in a file that runs no code when it is read; locks."""

from ._files import UNFINISHED, checksum, locked, unlock
from ._format import check, check_kind, read, write
from ._plain import check_plain, is_plain, plain_history, safe_attributes

__all__ = [
    "UNFINISHED",
    "check",
    "check_kind",
    "check_plain",
    "checksum",
    "is_plain",
    "locked",
    "plain_history",
    "read",
    "safe_attributes",
    "unlock",
    "write",
]
