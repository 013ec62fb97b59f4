"""The examples of the docs are those of the pages, not of what builds them or is built."""

import matplotlib

matplotlib.use("Agg")

collect_ignore = ["_build", "conf.py", "gallery", "generated"]
