"""The README's python blocks run, in order, as one program."""

import re
from pathlib import Path

README = Path(__file__).parent.parent / "README.md"


def test_the_code_blocks_run(capsys):
    blocks = re.findall(r"```python\n(.*?)```", README.read_text(), re.DOTALL)
    assert blocks
    namespace = {}
    for block in blocks:
        exec(compile(block, str(README), "exec"), namespace)
    lines = capsys.readouterr().out.splitlines()
    assert re.fullmatch(r"\d -> \d 0\.\d\d \[0\.\d\d, 0\.\d\d\]", lines[0])  # the summary of T
    accuracy, error = map(float, next(line for line in lines if re.fullmatch(r"[\d.]+ [\d.]+", line)).split())
    assert accuracy > 0.85
    assert error < namespace["transition_error"](namespace["T"], namespace["np"].eye(10))
    assert len(namespace["issues"]) > 100
    right = (namespace["relabelled"] == namespace["y"]).mean()
    assert right > (namespace["y_noisy"] == namespace["y"]).mean() + 0.2


def test_the_files_that_are_named_exist():
    named = set(re.findall(r"[`(]((?:examples|docs)/[^`)\s]*|[A-Z]+\.md)[`)]", README.read_text()))
    assert {"CONTRIBUTING.md", "docs/trust.rst"} < named
    assert not {name for name in named if not (README.parent / name).exists()}
