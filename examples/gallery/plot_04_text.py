"""
Text: labels by keywords, TF-IDF, embeddings
============================================

Label texts by keyword rules, verify a few, and train on sparse TF-IDF features or on
embeddings.
"""

# %%
# The texts
# ---------
# Simulated messages of customers about a bill, a delivery or a device.
import numpy as np

rng = np.random.default_rng(0)
WORDS = {
    "bill": "invoice charged refund amount money twice card payment price",
    "delivery": "parcel courier arrived late address waiting lost street package",
    "device": "screen broken battery restart button update charging noise cable",
}
COMMON = "my the I please again since yesterday help still now hello order"


def message(topic):
    """Return ten words: two of the topic, one of any topic, and seven common ones."""
    own, other = WORDS[topic].split(), WORDS[rng.choice(list(WORDS))].split()
    words = [*rng.choice(own, 2), rng.choice(other), *rng.choice(COMMON.split(), 7)]
    return " ".join(rng.permutation(words))


y = rng.choice(list(WORDS), 1200)
texts = np.array([message(topic) for topic in y])
texts, y, texts_test, y_test = texts[:900], y[:900], texts[900:], y[900:]
print(*texts[:3], sep="\n")

# %%
# Labels from rules
# -----------------
# The first rule that matches gives the label. "charg" is meant for "charged", but also
# matches "charging", a word about devices.
RULES = {
    "bill": ["charg", "invoice", "refund", "money", "payment"],
    "delivery": ["parcel", "courier", "late", "package", "address", "street"],
}


def label(text):
    """Return the topic of the first rule that matches the text."""
    found = (topic for topic, parts in RULES.items() if any(p in text for p in parts))
    return next(found, "device")


y_noisy = np.array([label(text) for text in texts])
print(f"{np.mean(y_noisy != y):.0%} of the labels are wrong")

# %%
# The first 100 messages are verified. Their order is random.
import pandas as pd

labels = pd.DataFrame({"label": y_noisy})
labels.loc[:99, "verified"] = y[:100]

# %%
# The fit
# -------
# The TF-IDF matrix remains sparse.
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline

from noisytransition import EMTransitionClassifier

clf = EMTransitionClassifier(max_epochs=10, random_state=0)
pipe = make_pipeline(TfidfVectorizer(dtype=np.float32), clf)
pipe.fit(texts, labels)
by_rules = [label(text) for text in texts_test]
print(f"test accuracy: {pipe.score(texts_test, y_test):.3f}")
print(f"accuracy of the rules: {np.mean(by_rules == y_test):.3f}")
print(clf.transition_summary())

# %%
# Rules depend on words, so one T does not hold for all samples, and `fit` warns. The T
# above is an average over the samples, fitted to the verified pairs:
for reason, text in clf.diagnostics_.items():
    print(f"{reason}: {text}")

# %%
# Wrong labels
# ------------
# The classifier, the last step of the pipeline, lists the samples of the fit. For other
# samples, it takes the features that the first steps return.
for issue in clf.find_label_issues()[:6].itertuples():
    print(f"{issue.given_label} → {issue.suggested_label}: {texts[issue.position]}")

# %%
import matplotlib.pyplot as plt
from sklearn.metrics import ConfusionMatrixDisplay

from noisytransition import count_transition_matrix

codes, noisy_codes = (np.searchsorted(clf.classes_, names) for names in (y, y_noisy))
matrices = {
    "true": count_transition_matrix(codes, noisy_codes),
    "learned": clf.transition_matrix_,
}
fig, axes = plt.subplots(1, 2, figsize=(9, 4), layout="compressed")
for ax, (title, T) in zip(axes, matrices.items(), strict=True):
    display = ConfusionMatrixDisplay(T, display_labels=clf.classes_)
    display.plot(cmap="Blues", values_format=".2f", ax=ax, colorbar=False)
    ax.set(title=title, xlabel="noisy label", ylabel="true label")

# %%
# Embeddings
# ----------
# Embeddings are a numeric table; scale them. Here they come from latent semantic
# analysis. Embeddings of a sentence encoder are used in the same way:
# ``examples/paper/features.py`` computes them with MiniLM.
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
