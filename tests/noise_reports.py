"""Noise reports from arrays, as no classifier would have to be trained for."""

from html.parser import HTMLParser

import numpy as np

from noisytransition import class_conditional_test, flip_labels
from noisytransition.report import Clean, Fitted, Judged, NoiseReport, make_facts, sample_facts
from noisytransition.transition import label_posterior

NO_BARS = "No error bars here."


def fitted(names, seed=0, **changed):
    """T of random flips, with bounds around it."""
    rng, c = np.random.default_rng(seed), len(names)
    T = 0.7 * np.eye(c) + 0.3 * rng.dirichlet(np.full(c, 0.3), size=c)
    bounds = np.maximum(T - 0.05, 0), np.minimum(T + 0.1, 1)
    settings = {"parameters": {"lr": "0.1"}, "versions": {"version of Python": "3"}}
    of = Fitted("SomeClassifier", list(names), T, rng.uniform(20, 60, size=c), bounds, {}, settings)
    return of._replace(**changed)


def judged(T, n=200, seed=0):
    """Rows of random posteriors with noisy labels by T."""
    rng = np.random.default_rng(seed)
    proba = rng.dirichlet(np.full(len(T), 0.05), size=n)
    given = flip_labels(proba.argmax(axis=1), T, random_state=seed)
    posterior = label_posterior(proba, given, T)
    quality = posterior[np.arange(n), given]
    agreement = float((proba.argmax(axis=1) == given).mean())
    return Judged(given, quality, posterior.argmax(axis=1), posterior.max(axis=1), agreement)


def clean(T, n=80, seed=1, paired=True):
    """Clean rows that a classifier predicts well, with noisy labels by T."""
    rng, c = np.random.default_rng(seed), len(T)
    y = rng.integers(c, size=n)
    proba = rng.dirichlet(np.full(c, 0.3), size=n) / 2 + np.eye(c)[np.where(rng.random(n) < 0.8, y, (y + 1) % c)] / 2
    if not paired:
        return Clean(proba, y, None, "Not tested.")
    noisy = flip_labels(y, T, random_state=seed)
    return Clean(proba, y, noisy, class_conditional_test(y, noisy, proba=proba, n_permutations=19, random_state=0))


def make(names=("ant", "bee", "cat"), *, max_rows=200, max_classes=50, samples=None, index=None, **given):
    """A report; its parts, `fitted`, `judged` and `clean`, may be given."""
    of = given.get("fitted") or fitted(names)
    rows = given.get("judged") or judged(of.T)
    listed = rows.issues(max_rows).tolist()
    source = [f"text of row {i}" for i in range(len(rows.given))] if samples is None else samples
    facts = make_facts(
        of,
        rows,
        given.get("clean"),
        sample_facts(source, listed),
        listed if index is None else [index[i] for i in listed],
        level=0.9,
        precision=given.get("precision", 0.05),
        max_classes=max_classes,
        title=given.get("title", "Noise report"),
        created="2026-01-02T03:04:05+00:00",
    )
    return NoiseReport(facts)


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
