"""A zoo of small problems with noisy labels, fixed before any method was run on them."""
