"""
Class shares over months
========================

Estimate the share of complaints in each month, although the labels become worse.
"""

# %%
# The messages
# ------------
# 300 messages of customers in each of twelve months, put together from sentences. The
# share of complaints rises from 20 to 50 %.
import numpy as np
import pandas as pd

THINGS = ["lamp", "kettle", "headset", "backpack", "keyboard", "jacket"]
SENTENCES = {
    "complaint": [
        "The {} broke after two days.",
        "My new {} smells of burnt plastic.",
        "I want my money back for the {}.",
        "The {} has a deep scratch.",
    ],
    "question": [
        "Can I order the {} in blue?",
        "Does the {} come in two sizes?",
        "How long is the guarantee of the {}?",
        "When is the {} sold again?",
    ],
}
ENDINGS = ["I bought a {} before.", "The {} was a gift.", "My friend has a {}, too."]
rng = np.random.default_rng(0)
months = pd.period_range("2025-01", periods=12, freq="M")
month = np.repeat(months, 300)
time = np.repeat(np.linspace(0, 1, 12), 300)
y = np.where(rng.random(3600) < 0.2 + 0.3 * time, "complaint", "question")
texts = []
for kind in y:
    text = f"{rng.choice(SENTENCES[kind])} {rng.choice(ENDINGS)}"
    texts.append(text.format(*rng.choice(THINGS, 2)))
print(*texts[:3], sep="\n")

# %%
# The labels
# ----------
# A tool labels the messages. In January it labels 5 % of the complaints as questions,
# in December 60 %. A tenth of the messages is verified.
missed = rng.random(3600) < 0.05 + 0.55 * time
label = np.where((y == "complaint") & missed, "question", y)
label = np.where(rng.random(3600) < 0.05, "complaint", label)
verified = pd.Series(y).where(rng.random(3600) < 0.1)

# %%
# The fit
# -------
# ``sources`` are months, so T changes gradually from month to month.
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import cross_val_predict
from sklearn.pipeline import make_pipeline

from noisytransition import LabelNoiseModel

pipe = make_pipeline(TfidfVectorizer(), LogisticRegression())
proba = cross_val_predict(pipe, texts, label, method="predict_proba")
model = LabelNoiseModel()
model.fit(proba, label, y_verified=verified, sources=pd.Series(month))
print(model.source_summary()[["right", "lower", "upper"]].iloc[[0, 5, 11]].round(2))

# %%
# Shares
# ------
# The shares of each month have valid 90 % intervals. The simple ways are the counts of
# all labels, and of the verified ones.
shares = model.class_shares(by=month.astype(str)).xs("complaint", level=1)
counts = pd.DataFrame({"truth": y, "labels": label, "verified": verified})
counts = (counts == "complaint").where(counts.notna()).groupby(month).mean()
for name, found in {**counts, "class_shares": shares["share"]}.items():
    error = np.abs(found.to_numpy() - counts["truth"].to_numpy()).mean()
    print(f"{name}: December {found.iloc[-1]:.2f}, mean error {error:.3f}")

# %%
import matplotlib.pyplot as plt

fig, ax = plt.subplots(figsize=(7, 4), layout="constrained")
ax.fill_between(shares.index, shares["lower"], shares["upper"], alpha=0.3)
ax.plot(shares.index, shares["share"], label="class_shares")
ax.plot(shares.index, counts["labels"], color="tab:red", label="counts of labels")
ax.plot(
    shares.index, counts["verified"], "o", color="tab:orange", label="verified alone"
)
ax.plot(shares.index, counts["truth"], "k--", label="truth")
ax.set(ylabel="share of complaints", ylim=(0, None), xticks=shares.index[::3])
ax.legend()
