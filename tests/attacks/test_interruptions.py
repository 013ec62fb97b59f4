"""A few trials of each kind; `interruptions.py` has the long form."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import noisytransition


@pytest.mark.skipif(not hasattr(os, "fork"), reason="processes are forked")
def test_attacked_fits_resume_to_the_same_bits():
    script = Path(__file__).with_name("interruptions.py")
    package = Path(noisytransition.__file__).parents[1]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONPATH": str(package)}
    trials = [f"--{kind}=1" for kind in ("kill", "kill-in-a-write", "interrupt", "full-disk")]
    done = subprocess.run([sys.executable, script, *trials], capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
