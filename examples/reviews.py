"""Make examples/reviews.csv: sentences from templates, with labels as a language model may give them.

The labels are simulated: a third of the complaints are labelled "praise", and a seventh of the questions "complaint".

    python examples/reviews.py
"""

from pathlib import Path

import numpy as np
import pandas as pd

from noisytransition import flip_labels

THINGS = ["kettle", "desk lamp", "rain jacket", "blender", "headset", "backpack", "keyboard", "garden hose"]
PARTS = {
    "complaint": (
        ["broke after two days", "arrived with a deep scratch", "stopped working last week", "smells of burnt plastic"],
        ["Thanks for nothing.", "The shop does not answer.", "I want my money back.", "A waste of money."],
    ),
    "praise": (
        ["works perfectly", "looks even better than in the photo", "was easy to set up", "feels solid and well made"],
        ["I would buy it again.", "Worth every cent.", "My family loves it.", "Delivery was fast, too."],
    ),
    "question": (
        ["comes in two sizes, I think", "seems to have a spare part", "has a guarantee, it says", "is sold in a set"],
        ["Which one do I need?", "Does it fit the old model?", "How long does it last?", "Can I order it in blue?"],
    ),
}
T = [[2 / 3, 1 / 3, 0], [0, 1, 0], [1 / 7, 0, 6 / 7]]  # complaint, praise, question


def made(n, seed):
    """Make n different reviews, of which a quarter is checked."""
    rng = np.random.default_rng(seed)
    texts = {}
    while len(texts) < n:
        kind = str(rng.choice([*PARTS], p=[0.4, 0.4, 0.2]))
        verb, end = map(rng.choice, PARTS[kind])
        texts[f"The {rng.choice(THINGS)} {verb}. {end}"] = kind
    table = pd.DataFrame({"review": texts.keys(), "llm": texts.values()})
    checked = table["llm"].where(rng.permutation(n) < n // 4)
    return table.assign(llm=flip_labels(table["llm"], T, random_state=seed), checked=checked)


if __name__ == "__main__":
    made(240, seed=0).to_csv(Path(__file__).with_suffix(".csv"), index=False)
