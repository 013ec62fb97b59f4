"""
Text: labels by keywords, TF-IDF, embeddings
============================================

Label sentences by keyword rules, check a few, and train on sparse TF-IDF features, or
on embeddings of the sentences.
"""

# %%
# The sentences
# -------------
# Made data: messages of customers about a bill, a delivery or a device.
import numpy as np

rng = np.random.default_rng(0)
WORDS = {
    "bill": "invoice charged refund amount money twice card payment price",
    "delivery": "parcel courier arrived late address waiting lost street package",
    "device": "screen broken battery restart button update charging noise cable",
}
COMMON = "my the I please again since yesterday help still now hello order"


def message(topic):
    """Return ten words: two of the topic, one of any topic, and common ones."""
    own, other = WORDS[topic].split(), WORDS[rng.choice(list(WORDS))].split()
    words = [*rng.choice(own, 2), rng.choice(other), *rng.choice(COMMON.split(), 7)]
    return " ".join(rng.permutation(words))


y = rng.choice(list(WORDS), 1200)
texts = np.array([message(topic) for topic in y])
texts, y, texts_test, y_test = texts[:900], y[:900], texts[900:], y[900:]
print(*texts[:3], sep="\n")

# %%
# Labels by rules
# ---------------
# The rules are tried in this order. The first one looks for "charg", to find "charged",
# and finds "charging" too, which is said of devices.
RULES = {
    "bill": ["charg", "invoice", "refund", "money", "payment"],
    "delivery": ["parcel", "courier", "late", "package", "address", "street"],
}


def label(text):
    """Return the topic of the first rule that has a word in the text."""
    found = (topic for topic, parts in RULES.items() if any(p in text for p in parts))
    return next(found, "device")


y_noisy = np.array([label(text) for text in texts])
print(f"{np.mean(y_noisy != y):.0%} of the labels are wrong")

# %%
# The first 100 messages, which are in no order, were read:
import pandas as pd

labels = pd.DataFrame({"label": y_noisy})
labels.loc[:99, "verified"] = y[:100]

# %%
# The fit
# -------
# The matrix of words stays sparse.
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from noisytransition import EMTransitionClassifier

clf = EMTransitionClassifier(max_epochs=10, random_state=0)
pipe = make_pipeline(TfidfVectorizer(dtype=np.float32), clf)
pipe.fit(texts, labels)
by_rules = [label(text) for text in texts_test]
print(f"test accuracy: {pipe.score(texts_test, y_test):.3f}")
print(f"that of the rules: {np.mean(by_rules == y_test):.3f}")
print(clf.transition_summary())

# %%
# Rules go by words, so that T is not the same for all rows. The fit warns of this. The
# T above is a mean over the rows, fitted to the pairs of rule and true label:
for reason, text in clf.diagnostics_.items():
    print(f"{reason}: {text}")

# %%
# What the rules get wrong
# ------------------------
# The steps before the classifier give the features that its methods take.
X = pipe[:-1].transform(texts)
for issue in clf.find_label_issues(X, labels)[:6].itertuples():
    print(f"{issue.given_label} → {issue.suggested_label}: {texts[issue.position]}")

# %%
from noisytransition import TransitionMatrixDisplay, count_transition_matrix

codes, noisy_codes = (np.searchsorted(clf.classes_, names) for names in (y, y_noisy))
TransitionMatrixDisplay.from_estimator(
    clf, true_matrix=count_transition_matrix(codes, noisy_codes)
)

# %%
# Embeddings
# ----------
# Vectors of the sentences are a table like any other; scale them. Here they come from
# latent semantic analysis. Those of a sentence encoder are given to ``fit`` in the same
# way: ``examples/paper/features.py`` makes an array with MiniLM.
from sklearn.decomposition import TruncatedSVD
from sklearn.preprocessing import StandardScaler

embed = make_pipeline(
    TfidfVectorizer(dtype=np.float32),
    TruncatedSVD(20, random_state=0),
    StandardScaler(),
)
on_embeddings = EMTransitionClassifier(max_epochs=10, random_state=0)
on_embeddings.fit(embed.fit_transform(texts), labels)
print(f"test accuracy: {on_embeddings.score(embed.transform(texts_test), y_test):.3f}")
