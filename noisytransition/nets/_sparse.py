"""One form for all sparse matrices of the same values."""

from typing import Any

import numpy as np
from scipy.sparse import csr_array


def canonical(X: Any) -> Any:
    """Convert a sparse matrix of any format to CSR with sorted indices, without duplicates and stored zeros.

    A matrix that is in this form already is not copied, and none is changed.
    """
    rows = csr_array(X)
    if rows.has_canonical_format and np.count_nonzero(rows.data) == rows.nnz:
        return rows
    rows = rows.copy()
    rows.sum_duplicates()
    rows.eliminate_zeros()
    return rows
