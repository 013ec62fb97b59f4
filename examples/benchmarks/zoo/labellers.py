"""Programs that label samples: functions of `Rows` and a seed that return labels, -1 for their own training samples."""

import re
from functools import wraps

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.naive_bayes import MultinomialNB
from sklearn.pipeline import make_pipeline

from .rows import most_votes, some_of_each
from .texts import by_embeddings, embeddings

# Words and descriptions of the classes of `texts.py`, in their order. They were written before any label was counted
LIBRARY_WORDS = {
    "text": "string text character pattern encod decod unicode line word translat",
    "numbers": "number integer float decimal random digit distribution sum round mean",
    "files": "file path director archive compress folder zip link member",
    "processes": "thread process task loop lock queue event future signal pool",
    "internet": "server url http socket address message mail header request connect",
}
LIBRARY_DESCRIPTIONS = {
    "text": "Processing of text: strings, characters, regular expressions, encodings, languages",
    "numbers": "Numbers and mathematics: arithmetic, decimals, fractions, random numbers, statistics",
    "files": "Files and directories: paths, temporary files, archives, compression",
    "processes": "Concurrent execution: threads, processes, asynchronous tasks, locks, queues, signals",
    "internet": "Internet protocols: URLs, HTTP, servers and clients, e-mail, sockets, addresses",
}
PACKAGE_WORDS = {
    "numpy": "array dtype element-wise mask polynomial random axis scalar",
    "pandas": "dataframe series index column time date string label interval",
    "scipy": "distribution sparse filter optimi integra statistic matrix test",
    "sklearn": "estimator cluster classifier regress sample score metadata model feature",
    "torch": "tensor module gradient cuda device layer parameter input",
}


def labelled(source, label, features=None, **params):
    """Return a function of a seed: the samples of `source` with labels of a program, without its training samples.

    `features` converts the samples after the program has seen them. `params` are parameters of `source`.
    """

    @wraps(source)
    def rows(seed):
        found = source(seed, **params)
        answers = label(found, seed)
        found = features(found) if features else found
        kept = answers >= 0
        part = None if found.part is None else found.part[kept]
        return found._replace(X=found.X[kept], y=found.y[kept], part=part, answers=answers[kept])

    return rows


def columns(shown):
    """Show only some columns to the classifier."""
    return lambda rows: rows._replace(X=rows.X[:, shown], X_test=rows.X_test[:, shown])


# ---------------------------------------------------------------------------- tables
def boosting(n, seen=slice(None)):
    """Label by gradient boosting, trained on the columns `seen` of the first n samples and their true labels."""

    def label(rows, seed):
        model = HistGradientBoostingClassifier(random_state=seed).fit(rows.X[:n, seen], rows.y[:n])
        answers = model.predict(rows.X[:, seen])
        answers[:n] = -1
        return answers

    return label


# ---------------------------------------------------------------------------- texts
def votes_of_words(words):
    """Label by rules: a listed beginning of a word in the text is a vote for its class; ties are broken at random."""

    def label(rows, seed):
        found = [[_n_found(of_class.split(), text.lower()) for of_class in words.values()] for text in rows.X]
        return most_votes(np.array(found), seed)

    return label


def _n_found(words, text):
    return sum(re.search(rf"\b{word}", text) is not None for word in words)


def nearest_description(descriptions):
    """Label by a small language model, without training: the class whose description has the nearest embedding."""

    def label(rows, seed):
        of_classes = embeddings(np.array(list(descriptions.values())))
        of_texts = by_embeddings(rows).X  # with the test samples, whose embeddings are in the same file
        return (of_texts @ of_classes.T).argmax(axis=1)

    return label


def model_of_words(per_class):
    """Label by naive Bayes on TF-IDF, trained on a few texts of each class; it stands in for a language model."""

    def label(rows, seed):
        few = some_of_each(rows.y, np.arange(len(rows.y)), per_class)
        model = make_pipeline(TfidfVectorizer(), MultinomialNB()).fit(rows.X[few], rows.y[few])
        answers = model.predict(rows.X)
        answers[few] = -1
        return answers

    return label
