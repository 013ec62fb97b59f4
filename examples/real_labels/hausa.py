"""News titles in Hausa with labels from rules.

    python -m examples.real_labels.hausa --data DIR

DIR has ``hausa_*.tsv``: the corpus of Hedderich et al., "Transfer Learning and Distant Supervision for Multilingual
Transformer Models", EMNLP 2020 (github.com/uds-lsv/transfer-distant-transformer-african). File names are in lower case,
with the prefix ``hausa_``. A rule gives a title the topic whose word list has a word of the title. Half of the labels
are wrong. Features are sparse TF-IDF vectors of character n-grams.
"""

from functools import lru_cache

import numpy as np
import pandas as pd
from sklearn.feature_extraction.text import TfidfVectorizer

from examples.real_labels.common import main, split


@lru_cache
def read(folder):
    """Read features, true labels and noisy labels of the training titles; features and labels of the test titles."""
    clean, noisy, test = (
        pd.read_csv(folder / f"hausa_{name}.tsv", sep="\t")
        for name in ("train_clean", "train_clean_noisy_labels", "test")
    )
    if not (clean["news_title"] == noisy["news_title"]).all():
        raise ValueError("hausa_train_clean_noisy_labels.tsv must have the titles of hausa_train_clean.tsv in order.")
    topics = np.unique(clean["label"])
    y, y_noisy, y_test = (np.searchsorted(topics, frame["label"]) for frame in (clean, noisy, test))
    words = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5), min_df=3, sublinear_tf=True)
    X, X_test = words.fit_transform(clean["news_title"]), words.transform(test["news_title"])
    return X.tocsr(), X_test.tocsr(), y, y_noisy, y_test


def load(seed, folder):
    """Load the samples of a split."""
    X, X_test, y, y_noisy, y_test = read(folder)
    return split(X, y, y_noisy, X_test, y_test, seed)


if __name__ == "__main__":
    from examples.real_labels.hausa import load

    main("hausa", __doc__, load)
