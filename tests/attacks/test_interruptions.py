"""A few trials of each kind; `interruptions.py` has the long form."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import noisytransition


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
@pytest.mark.parametrize("kind", ["kill", "kill-in-a-write", "interrupt", "full-disk"])
def test_attacked_fits_resume_to_the_same_bits(kind):
    script = Path(__file__).with_name("interruptions.py")
    package = Path(noisytransition.__file__).parents[1]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(package)}
    done = subprocess.run([sys.executable, script, f"--{kind}", "13"], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
