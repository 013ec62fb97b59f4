"""The few statistical choices that several parts share."""

#: standard errors by which the better of two choices must lead to replace the usual one
SELECT_ERRORS = 1.0
#: log of a Bayes factor above which a departure is accepted ("strong" evidence: Kass and Raftery, 1995)
EVIDENCE = 3.0
#: p-value below which a test warns
WARN_P = 1e-3
#: folds of the clean samples
N_FOLDS = 5
