"""Small problems with noisy labels (the zoo), fixed before any method was run on them."""
