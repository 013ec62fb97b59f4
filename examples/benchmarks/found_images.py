"""Ten photos that people labelled wrong, as a picture for the first page of the documentation.

    python examples/benchmarks/found_images.py --data DIR    # DIR as for label_issues.py

The labels are those of people, CIFAR-10N "worse", for the first 10,000 images of CIFAR-10. 500 random images are
verified: CIFAR-10's own label is their true label. `TransitionClassifierCV` of logistic regression (C=0.001, not tuned)
on the features of `image_features.py` lists the labels that are probably wrong. The picture has the ten most suspicious
ones, whether wrong or not.
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
import pandas as pd
from image_features import image_features
from shared import markdown, publish, versions
from sklearn.linear_model import LogisticRegression

from examples.cifar import CIFAR10_CLASSES
from noisytransition import TransitionClassifierCV

N, N_VERIFIED, N_SHOWN = 10_000, 500, 10
DOCS = Path(__file__).parents[2] / "docs"


def find(folder):
    """Return the images and the list of suspicious labels, with the true classes."""
    names = np.array(CIFAR10_CLASSES)
    images = np.load(folder / "X_train.npy", mmap_mode="r")[:N]
    true = names[np.load(folder / "y_train.npy")[:N].astype(int)]
    labels = pd.DataFrame({"label": names[np.load(folder / "cifar10n_worse.npy")[:N].astype(int)]})
    checked = labels.sample(N_VERIFIED, random_state=0).index
    labels.loc[checked, "verified"] = true[checked]
    clf = TransitionClassifierCV(LogisticRegression(C=0.001, max_iter=1000), random_state=0)
    issues = clf.fit(image_features(images, 0), labels).find_label_issues()
    return images, issues.assign(true_class=true[issues["position"]])


def draw(images, shown):
    """Draw the images with their label, and the suggestion."""
    figure, axes = plt.subplots(2, 5, figsize=(8, 4.4), layout="constrained")
    for axis, one in zip(axes.flat, shown.itertuples(), strict=True):
        axis.imshow(images[one.position], interpolation="bilinear")
        axis.set_title(f"{one.given_label}\n{one.suggested_label}?", fontsize=15)
        axis.axis("off")
    figure.savefig(DOCS / "found_images.png", dpi=100)


def main():
    """Write the picture and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True)
    images, issues = find(parser.parse_args().data)
    shown = issues[:N_SHOWN]
    draw(images, shown)
    wrong = issues["given_label"] != issues["true_class"]
    text = f"{len(issues):,} of {N - N_VERIFIED:,} labels listed; {wrong.mean():.0%} of them are wrong, and "
    text += f"{wrong[:100].sum()} of the first 100. {versions()}. See `found_images.py`. The first {N_SHOWN}:"
    lines = [(str(one.position), [one.given_label, one.suggested_label, one.true_class]) for one in shown.itertuples()]
    table = markdown(["label", "suggested", "true class"], lines)
    publish("found_images.md", ["# Wrong labels of photos", text, table])


if __name__ == "__main__":
    main()
