"""Noise reports from arrays, without training a classifier."""

from html.parser import HTMLParser
from types import SimpleNamespace

import numpy as np
import pandas as pd

from noisytransition import LabelNoiseModel, flip_labels
from noisytransition.likelihood._pair_posterior import OneT
from noisytransition.noise_model._samples import LabelledSamples
from noisytransition.report import NoiseReport
from noisytransition.report._facts import Clean, Draw, make_facts
from noisytransition.report._report import _shown


def some_model(names, T=None, counts=None, bars="around", diagnostics=None):
    """Noise model with T of random flips, with bounds around it; without bounds if `bars` is None."""
    rng, c = np.random.default_rng(0), len(names)
    flips = 0.7 * np.eye(c) + 0.3 * rng.dirichlet(np.full(c, 0.3), size=c)
    random_counts = rng.uniform(20, 60, size=c)
    T = flips if T is None else T
    model = LabelNoiseModel.from_transition_matrix(T, list(names), random_counts if counts is None else counts)
    model.diagnostics_ = diagnostics or {}
    if bars is not None:
        bars = (np.maximum(T - 0.05, 0), np.minimum(T + 0.1, 1)) if isinstance(bars, str) else bars
        model.uncertainty_ = SimpleNamespace(interval=lambda level: bars, std=np.full_like(T, 0.05))
    return model


def judged(T):
    """200 rows of random posteriors with noisy labels by T."""
    proba = np.random.default_rng(0).dirichlet(np.full(len(T), 0.05), size=200)
    given = flip_labels(proba.argmax(axis=1), T, random_state=0)
    return LabelledSamples(proba, given, np.full(200, -1)).judge(OneT(T))


def clean(T):
    """80 clean rows that a classifier predicts well, with noisy labels by T."""
    rng, c = np.random.default_rng(1), len(T)
    y = rng.integers(c, size=80)
    proba = rng.dirichlet(np.full(c, 0.3), size=80) / 2 + np.eye(c)[np.where(rng.random(80) < 0.8, y, (y + 1) % c)] / 2
    return Clean(proba, y, flip_labels(y, T, random_state=1), draw=Draw(np.ones(80)))


def make(clf, *, rows=None, clean=None, samples=None, index=None, title="Noise report"):
    """A report of a classifier."""
    rows = judged(clf.transition_matrix_) if rows is None else rows
    listed = rows.issues()[:200]
    source = [f"text of row {i}" for i in range(len(rows.noisy))] if samples is None else samples
    names = None if index is None else pd.Index(index)
    shown = _shown(source, names, len(rows.noisy), listed, None)
    return NoiseReport(make_facts(clf, rows, clean or Clean(), shown, 0.9, title))


class Page(HTMLParser):
    """Elements of a page with their attributes, and the texts of its table cells, row by row and table by table."""

    VOID = frozenset(["meta", "link", "img", "input", "br", "circle", "path"])

    def __init__(self, text):
        super().__init__()
        self.open, self.elements, self.tables, self.texts = [], [], [], []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        if tag not in self.VOID:
            self.open.append(tag)
        if tag == "table":
            self.tables.append([])
        elif tag == "tr":
            self.tables[-1].append([])
        elif tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open and self.open[-1] not in ("style", "script"):
            self.texts.append(data)
        if {"td", "th"} & set(self.open):
            self.tables[-1][-1][-1] += data.strip()

    def of(self, tag):
        """Attributes of all elements of a kind."""
        return [attrs for name, attrs in self.elements if name == tag]
