"""The README's python blocks run, in order, as one program."""

import functools
import re
from pathlib import Path

import numpy as np

import noisytransition
from noisytransition import transition_error

README = Path(__file__).parent.parent / "README.md"


def test_the_code_blocks_run(capsys, monkeypatch):
    """A fifth of the epochs is enough to see the results."""
    few = functools.partial(noisytransition.EMTransitionClassifier, max_epochs=6)
    monkeypatch.setattr(noisytransition, "EMTransitionClassifier", few)
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert blocks
    namespace = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), namespace)
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\d -> \d 0\.\d\d \[0\.\d\d, 0\.\d\d\]", lines[0])  # the summary of T
    issues, y = namespace["issues"], namespace["y"]
    wrong = (namespace["df"]["label"] != y)[issues["position"]]
    clf, X, T = namespace["clf"], namespace["X"], namespace["pair_noise"](10, 0.4)
    assert clf.score(X, y) > 0.85
    assert transition_error(T, clf.transition_matrix_) < transition_error(T, np.eye(10))
    relabelled = clf.relabel(X, namespace["df"])
    assert (relabelled == y).mean() > (namespace["df"]["label"] == y).mean() + 0.2
    assert len(issues) > 400
    assert wrong.mean() > 0.95
    assert (y[issues["position"]] == issues["suggested_label"]).mean() > 0.9
    assert issues.index.isin(namespace["checked"]).sum() == 0


def test_the_files_that_are_named_exist():
    named = set(re.findall(r"[`(]((?:examples|docs)/[^`)\s]*|[A-Z]+\.md)[`)]", README.read_text()))
    assert {"CONTRIBUTING.md", "docs/trust.rst"} < named
    assert not {name for name in named if not (README.parent / name).exists()}
