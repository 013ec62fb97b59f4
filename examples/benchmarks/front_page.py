"""Write the README's picture and table from the result files of real noisy labels, without any measurement.

python -m examples.benchmarks.front_page
"""

from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

from examples.benchmarks.shared import markdown, read_rows, spread
from examples.cifar import CIFAR10_CLASSES

ROOT = Path(__file__).parents[2]
IGNORING, TUNED, OURS = "ignoring the noise", "fine-tuning", "EM, pairs"
LEGEND = {OURS: "noise matrix (EM)"}
SHOWN = {
    IGNORING: IGNORING,
    "ignoring the noise, logistic regression, C selected": "ignoring, LR",
    "cleanlab": "cleanlab",
    "clean samples only, logistic regression, C selected": "verified samples alone, LR",
    TUNED: TUNED,
    "GLC": "GLC",
    OURS: "**EM**",
    "TransitionClassifierCV, pairs": "**TransitionClassifierCV**",
}
# numbers of noisy and verified samples, and the result file
DATA = {
    "CIFAR-10N, people, features": ("11,700", "300", "real_labels/results/cifar10n.jsonl"),
    "LabelMe, a crowd, features": ("900", "100", "real_labels/results/labelme.jsonl"),
    "Hausa titles, rules, TF-IDF": ("1,945", "100", "real_labels/results/hausa.jsonl"),
    "climate, GPT, embeddings": ("1,499", "100", "real_labels/results/global_warming.jsonl"),
}


def rows_of(file):
    """Read the results of a file."""
    return read_rows(ROOT / "examples" / file)


def values(rows, method, column):
    """Return the values of all seeds."""
    return [row[column] for row in rows if row["method"] == method and column in row]


def table():
    """Return a table of accuracies and of the error of T, for each data set."""
    heads = ["noisy, verified samples", *SHOWN.values(), "error of T: EM"]
    lines = []
    for name, (n, n_verified, file) in DATA.items():
        rows = rows_of(file)
        of = [values(rows, method, "accuracy") for method in SHOWN] + [values(rows, OURS, "transition_error")]
        lines.append((name, [f"{n}, {n_verified}", *(spread(v) if v else "" for v in of)]))
    return markdown(heads, lines)


def picture():
    """Draw T of annotators' labels, and test accuracy with and without T. Pages show 100 pixels per inch."""
    plt.rcParams.update({"font.size": 11, "axes.titlesize": 13, "axes.labelsize": 11})
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(9, 4.7), layout="constrained", gridspec_kw={"width_ratios": [1, 1.05]}
    )
    T = np.mean(values(rows_of(DATA["CIFAR-10N, people, features"][2]), OURS, "T"), axis=0)
    left.imshow(T, cmap="Blues", vmin=0, vmax=1)
    for i, j in np.argwhere(T > 0.05):
        left.text(j, i, f"{100 * T[i, j]:.0f}", ha="center", va="center", color="white" if i == j else "k")
    left.set_xticks(range(10), CIFAR10_CLASSES, rotation=60, ha="right", rotation_mode="anchor")
    left.set_yticks(range(10), CIFAR10_CLASSES)
    left.set(xlabel="given label", ylabel="true class", title="Noise matrix of CIFAR-10N, %")
    for k, (method, color) in enumerate(((IGNORING, "0.6"), (TUNED, "tab:orange"), (OURS, "tab:blue"))):
        found = [values(rows_of(file), method, "accuracy") for *_, file in DATA.values()]
        mean, std = [100 * np.mean(v) for v in found], [100 * np.std(v, ddof=1) for v in found]
        x = np.arange(len(DATA)) + 0.28 * (k - 1)
        right.errorbar(x, mean, std, fmt="o", capsize=3, color=color, label=LEGEND.get(method, method))
        for at, value, above in zip(x, mean, std, strict=True):
            right.text(at, value + above + 0.8, f"{value:.0f}", ha="center")
    right.set_xticks(range(len(DATA)), ["\n".join(name.split(", ")[:2]) for name in DATA])
    right.set(xlim=(-0.5, len(DATA) - 0.4), ylim=(43, 94), title="Test accuracy, %")
    right.spines[["top", "right"]].set_visible(False)
    right.legend(loc="lower left", frameon=False)
    figure.savefig(ROOT / "docs" / "front_page.png", dpi=160)


def main():
    """Write the table and the picture."""
    readme = ROOT / "README.md"
    head, _, rest = readme.read_text().partition("<!-- table -->\n")
    readme.write_text(f"{head}<!-- table -->\n{table()}\n<!-- end -->" + rest.partition("<!-- end -->")[2])
    picture()


if __name__ == "__main__":
    main()
