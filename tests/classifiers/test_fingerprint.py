"""What a fit runs tells it apart: code, globals, attributes, data, versions."""

import functools
import importlib
import inspect
import json
import pickle
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from estimators import small
from torch import nn
from torch.utils.data import Dataset, Subset
from training import assert_same, no_training, refused

import noisytransition
from noisytransition import CrossEntropyClassifier
from noisytransition.classifiers import _describe, _fingerprint
from noisytransition.classifiers._describe import describe

MODULE = """
import functools
import importlib
import numpy as np
import torch
from torch import nn, relu
import helpers

FACTOR, TABLE, lower = 2.0, {"a": [1, 2]}, functools.partial(max, 3)

def inner(x, by=1):
    return x * by

@functools.lru_cache
def cached(x):
    return x + 1

def transform(x):
    '''Scale.'''
    return [inner(v) * FACTOR * TABLE["a"][0] + lower(2) + cached(3) for v in x] + [helpers.move(x), relu(x), np.exp(1)]

class Base(nn.Module):
    def scaled(self, x):
        return 2 * x

class Net(Base):
    margin = 0.5

    def __init__(self, n_in=4, n_out=3):
        super().__init__()
        self.layer, self.scale, self.act = nn.Linear(n_in, n_out), 1.0, torch.tanh
        self.register_buffer("hidden", torch.zeros(2), persistent=False)

    @property
    def half(self):
        return self.margin

    def forward(self, x):
        return self.scaled(self.layer(x)) * self.scale

    def unused(self):
        return (lambda x: x + 1)(2)
"""
HELPERS = """
OFFSET = 1

def move(x):
    return x + OFFSET

def other(x):
    return x
"""
EDITS = {
    "forward": ("* self.scale", "/ self.scale"),
    "a method of the base class": ("return 2 * x", "return 3 * x"),
    "a class attribute": ("margin = 0.5", "margin = 0.6"),
    "a property": ("return self.margin", "return 2 * self.margin"),
    "a default value": ("n_out=3", "n_out=4"),
    "a function inside a function": ("lambda x: x + 1", "lambda x: x + 3"),
}
EDITS_OF_FUNCTION = {
    "a global number": ("FACTOR, TABLE, lower = 2.0", "FACTOR, TABLE, lower = 3.0"),
    "a global dict": ('{"a": [1, 2]}', '{"a": [1, 3]}'),
    "a global partial": ("functools.partial(max, 3)", "functools.partial(min, 3)"),
    "a default value of a function that is called": ("by=1", "by=2"),
    "a cached function that is called": ("return x + 1", "return x + 5"),
    "the function": ("* FACTOR *", "* FACTOR +"),
    "a function of another module": ("return x + OFFSET", "return x - OFFSET"),
    "a global of another module": ("OFFSET = 1", "OFFSET = 2"),
}


def described(folder, *edits):
    """Descriptions of a class, an instance and a function after each edit of their modules."""
    found = []
    for old, new in edits:
        for name, source in {"edited": MODULE, "helpers": HELPERS}.items():
            Path(folder, f"{name}.py").write_text(source.replace(old, new))
            sys.modules.pop(name, None)
        edited = importlib.import_module("edited")
        torch.manual_seed(0)
        found.append([describe(edited.Net), describe(edited.Net(4, 3)), describe(edited.transform)])
    return found


SCRIPT = f"""
import importlib, json, sys
from pathlib import Path
import torch
from noisytransition.classifiers._describe import describe
MODULE, HELPERS, folder, edits = json.loads(sys.stdin.read())
sys.path.insert(0, folder)
{inspect.getsource(described)}
print(json.dumps(described(folder, *edits)))
"""


def described_by_a_new_process(folder, *edits):
    """The same, by a process with other hashes."""
    done = subprocess.run(
        [sys.executable, "-B", "-c", SCRIPT],
        input=json.dumps([MODULE, HELPERS, str(folder), edits]),
        env={"PYTHONPATH": str(Path(noisytransition.__file__).parents[1]), "PYTHONHASHSEED": "2"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_an_edit_of_the_code_is_noticed_and_a_new_process_alone_is_not(tmp_path, monkeypatch):
    none, lines = ("@", "@"), ("\n\n", "\n\n\n\n")
    other = "def other(x):\n    return x", "def other(x):\n    return -x"
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)  # which could be taken for that of an edit of equal length
    (before,) = described(tmp_path, none)
    for name in ("edited", "helpers"):
        monkeypatch.delitem(sys.modules, name)
    edits = none, lines, other, *EDITS.values(), *EDITS_OF_FUNCTION.values()
    same, moved, unused, *after = described_by_a_new_process(tmp_path, *edits)
    assert before == same == moved == unused
    for name, text in zip([*EDITS, *EDITS_OF_FUNCTION], after, strict=True):
        changed = [a != b for a, b in zip(before, text, strict=True)]
        assert changed == ([True, True, False] if name in EDITS else [False, False, True]), name


class Scaled(nn.Module):
    def __init__(self, scale=1.0):
        super().__init__()
        self.layer, self.scale, self.inner = nn.Linear(4, 3), scale, nn.Dropout(0.5)
        self.register_buffer("hidden", torch.zeros(2), persistent=False)

    def forward(self, x):
        return self.layer(x) * self.scale


def scaled():
    torch.manual_seed(0)
    return Scaled()


def twice(module, args, output):
    return 2 * output


CHANGES = {
    "attribute": lambda m: setattr(m, "scale", 2.0),
    "attribute of a module inside": lambda m: setattr(m.inner, "p", 0.1),
    "weight": lambda m: m.layer.bias.data.add_(1),
    "buffer that is not saved": lambda m: m.hidden.add_(1),
    "frozen weight": lambda m: m.layer.weight.requires_grad_(False),
    "hook": lambda m: m.layer.register_forward_hook(twice),
    "half precision": lambda m: m.bfloat16(),
}


@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_module_is_another_one(change):
    changed = scaled()
    CHANGES[change](changed)
    assert describe(scaled()) == describe(scaled()) != describe(changed)


class Images(Dataset):
    def __init__(self, X, transform=None):
        self.X, self.transform = X, transform

    def __len__(self):
        return len(self.X)

    def __getitem__(self, i):
        return self.X[i].astype(np.float32)


class Opened(Images):
    def __init__(self, X):
        super().__init__(X)
        self.file = open(__file__)  # noqa: SIM115


class OpenedAndNamed(Opened):
    fit_name = "images, 2"


def test_another_dataset_of_equal_length_is_refused(blobs, tmp_path):
    X, y = blobs[:2]
    first = small(CrossEntropyClassifier).fit(Images(X), y, state=tmp_path / "fit")
    with no_training():
        assert_same(small(CrossEntropyClassifier).fit(Images(X.copy()), y, state=tmp_path / "fit"), first, X)
    order = np.roll(np.arange(len(X)), 1)
    for other in (Images(X + 1), Images(X, twice), Subset(Images(X), order.tolist())):
        with refused(r"differs from this one in \['X, y'\]"):
            small(CrossEntropyClassifier).fit(other, y, state=tmp_path / "fit")


def test_a_dataset_that_cannot_be_described_needs_a_name(blobs, tmp_path):
    X, y = blobs[:2]
    with refused("cannot be described.*fit_name"):
        small(CrossEntropyClassifier).fit(Opened(X), y, state=tmp_path / "fit")
    small(CrossEntropyClassifier).fit(OpenedAndNamed(X), y, state=tmp_path / "fit")


def test_a_generator_resumes_in_another_process_and_one_that_has_moved_does_not(blobs, tmp_path):
    X, y = blobs[:2]
    draws = np.random.RandomState(1)
    first = small(CrossEntropyClassifier, random_state=draws).fit(X, y, state=tmp_path / "fit")
    with no_training():
        again = small(CrossEntropyClassifier, random_state=np.random.RandomState(1)).fit(X, y, state=tmp_path / "fit")
    assert_same(first, again, X)
    with refused(r"differs from this one in \['random_state'\]"):
        small(CrossEntropyClassifier, random_state=draws).fit(X, y, state=tmp_path / "fit")


def test_other_versions_are_another_fit(blobs, tmp_path, monkeypatch):
    X, y = blobs[:2]
    small(CrossEntropyClassifier).fit(X, y, state=tmp_path / "fit")
    for name in ("torch", "skorch", "numpy", "noisytransition"):
        with monkeypatch.context() as patch:
            patch.setattr(sys.modules[name], "__version__", "0.0")
            with refused(rf"differs from this one in .*version of {name}"):
                small(CrossEntropyClassifier).fit(X, y, state=tmp_path / "fit")
    monkeypatch.setattr(_describe.platform, "python_version_tuple", lambda: ("3", "99", "0"))
    with refused("version of Python"):
        small(CrossEntropyClassifier).fit(X, y, state=tmp_path / "fit")


def test_a_library_s_function_is_told_by_its_name_and_version(monkeypatch):
    assert torch.__version__ in describe(torch.optim.SGD)
    assert describe(torch.optim.SGD) != describe(torch.optim.Adam)
    before = describe(nn.functional.relu)
    monkeypatch.setattr(torch, "__version__", "0.0")
    assert describe(nn.functional.relu) != before


def wraps(f):
    @functools.wraps(f)
    def wrapper(x):
        return f(x)

    return wrapper


def one(x):
    return x


@wraps
def decorated(x):
    return x


class Uses:
    """An object of the user's inside one of a library's."""

    def __init__(self, by):
        self.by = by


def test_a_function_of_the_main_module_is_the_user_s(monkeypatch):
    """A library's file is the main module's where Python runs one (``python -m pytest``)."""
    monkeypatch.setattr(sys.modules["__main__"], "__file__", torch.__file__, raising=False)
    flip = eval("lambda x: -x", {"__name__": "__main__"})
    assert flip.__module__ == "__main__"
    with pytest.raises(ValueError, match="lambda"):
        describe(flip, "batch_transform")


def test_decorated_functions_and_objects_inside_a_library_s_are_described():
    before = describe(decorated)
    decorated.__closure__[0].cell_contents.__defaults__ = (1,)
    assert describe(decorated) != before
    assert describe(functools.partial(one, Uses(1))) != describe(functools.partial(one, Uses(2)))
    assert "0x" not in describe(Uses(one))


class Cached(nn.Linear):
    """A module whose class has a property that is computed once."""

    @functools.cached_property
    def scale(self):
        return 2.0

    def forward(self, x):
        return super().forward(x) * self.scale


class OwnSGD(torch.optim.SGD):
    """An optimiser of the user's; torch wraps its step when the first one is made."""

    def step(self, closure=None):
        return super().step(closure)


class Recurrent(nn.Module):
    def __init__(self):
        super().__init__()
        self.lstm, self.last = nn.LSTM(1, 3, batch_first=True), nn.Linear(3, 3)

    def forward(self, x):
        return self.last(self.lstm(x.unsqueeze(2))[0][:, -1])


MODULES = [
    Recurrent(),
    Cached(4, 3),
    nn.utils.parametrizations.weight_norm(nn.Linear(4, 3)),
    torch.compile(nn.Linear(4, 3), backend="eager"),
]


@pytest.mark.parametrize("module", MODULES, ids=["LSTM", "cached property", "weight norm", "compiled"])
def test_modules_that_torch_or_python_add_something_to_are_described(module):
    text = describe(module)
    assert describe(module) == text
    with torch.no_grad():
        next(module.parameters()).add_(1.0)
    assert describe(module) != text


class NeverPickled:
    pass


def test_pickling_an_instance_does_not_change_its_class():
    before = describe(NeverPickled)
    pickle.dumps(NeverPickled())
    assert "__slotnames__" in vars(NeverPickled)
    assert describe(NeverPickled) == before


def test_an_optimizer_of_the_user_s_is_the_same_in_the_next_fit(blobs, tmp_path):
    for _ in range(2):
        small(CrossEntropyClassifier, optimizer=OwnSGD).fit(*blobs[:2], state=tmp_path / "fit")


def test_the_order_of_a_set_does_not_matter():
    items = [Uses(1), Uses("a"), Uses(one)]
    texts = set()
    for order in ([0, 1, 2], [2, 1, 0], [1, 2, 0]):
        fingerprint = _fingerprint.Fingerprint("set")
        texts.add(repr(sorted(fingerprint._apart(items[i], False) for i in order)))
    assert len(texts) == 1


PACKAGE = {
    "pack/__init__.py": "from . import deep",
    "pack/deep/__init__.py": "",
    "pack/deep/ops.py": "K = 1\ndef scale(x):\n    return 2 * x * K\ndef other(x):\n    return x",
    "uses.py": """
import pack.deep.ops

def by_attributes(x):
    return pack.deep.ops.scale(x)

def by_import(x):
    from pack.deep.ops import scale
    return scale(x)

def by_name(x):
    return getattr(pack.deep.ops, "scale")(x)

def of_a_constant(x):
    return x * pack.deep.ops.K

def that_cannot_be_imported(x):
    import pack.nothing
    return x
""",
}


@pytest.mark.parametrize("name", ["by_attributes", "by_import", "by_name", "of_a_constant"])
def test_edits_of_what_is_reached_through_a_package_of_the_user_s(name, tmp_path, monkeypatch):
    (tmp_path / "pack" / "deep").mkdir(parents=True)
    for path, text in PACKAGE.items():
        (tmp_path / path).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    uses = importlib.import_module("uses")
    before, ops = describe(getattr(uses, name)), sys.modules["pack.deep.ops"]
    assert describe(getattr(uses, name)) == before
    assert describe(uses.that_cannot_be_imported)
    monkeypatch.setattr(ops, "other", abs)
    assert describe(getattr(uses, name)) == before
    monkeypatch.setattr(ops, "K", 2)
    assert describe(getattr(uses, name)) != before
    for module in ("uses", "pack.deep.ops", "pack.deep", "pack"):
        monkeypatch.delitem(sys.modules, module)
