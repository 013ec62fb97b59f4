"""Find the wrong labels of a file; docs/from_a_csv_file.rst has the same steps in Python."""

import argparse
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np


def main(arguments: list[str] | None = None) -> int:
    """Run the command, and return the exit code: 2 if a file or an option is wrong."""
    parser = argparse.ArgumentParser("noisytransition", description="Train classifiers on noisy labels.")
    of = parser.add_subparsers(required=True, metavar="audit").add_parser("audit", help="find wrong labels of a file")
    of.add_argument("file", type=Path, help="CSV, Excel or Parquet file; it is not changed")
    of.add_argument("--label", nargs="+", required=True, help="column of labels, or a column for each source of labels")
    of.add_argument("--verified", help="column of true labels, empty if not checked; default: 'verified', if it exists")
    of.add_argument("--text", help="column of text")
    of.add_argument("--features", nargs="+", default=[], help="columns of features; default without text: all others")
    of.add_argument("--embeddings", help=".npy file with a row of numbers for each row or sample, or column of arrays")
    of.add_argument("--group", help="column of the group of each row, such as a patient, if rows are not independent")
    of.add_argument("--sample", help="column of the labelled sample, if the file has a row for each answer")
    of.add_argument("--source", help="column of the person, rule or model that answered, with --sample")
    of.add_argument("--encoding", default="utf-8", help="encoding of a CSV file, such as cp1252; default: utf-8")
    of.add_argument("--out", type=Path, help="new or empty folder; default: name of the file and _audit")
    of.add_argument("--seed", type=int, default=0, help="seed of the folds and of the rows to verify; default: 0")
    options = parser.parse_args(arguments)
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.filterwarnings("ignore", "Found unknown categories")  # a category of one fold only
            audit(options)
    except (ValueError, TypeError, OSError, ImportError) as error:
        hint = ". Tables need: pip install skrub openpyxl pyarrow" if isinstance(error, ImportError) else ""
        print(f"noisytransition: {' '.join(str(error).split()).removeprefix('[Errno 2] ')}{hint}", file=sys.stderr)
        return 2
    for text in dict.fromkeys(str(one.message) for one in caught if issubclass(one.category, UserWarning)):
        print(f"warning: {text}", file=sys.stderr)
    return 0


def audit(options: argparse.Namespace) -> None:
    """Read a file, train a classifier, write the results and print the answer."""
    table, labels, others = read(options)
    X, estimator, shown = encoded(table, others, options)
    folder = options.out or options.file.with_name(f"{options.file.stem}_audit")
    if folder.exists() and any(folder.iterdir()):
        raise ValueError(f"the folder {folder} is not empty. Pass another one as --out.")
    print(f"training eleven times on {len(table)} rows", file=sys.stderr)
    from .methods import TransitionClassifierCV  # imports torch

    clf = TransitionClassifierCV(estimator, random_state=options.seed).fit(X, labels.dropna(axis=1, how="all"))
    issues = with_text(clf.find_label_issues(), shown, "given", "suggested", "probability_correct").round(4)
    drawn = clf.noise_model_.suggest_samples(min(50, labels.verified.isna().sum()), random_state=options.seed)
    to_verify = with_text(drawn, shown, "verified_probability").assign(verified=None)
    corrected = table.drop(columns=options.embeddings or [], errors="ignore").assign(corrected=clf.relabel())
    answer = summary(clf.noise_model_, labels, issues, to_verify, corrected["corrected"])
    report = clf.noise_report(display_samples=shown.squeeze(axis=1), title=f"Labels of {options.file.name}")
    folder.mkdir(parents=True, exist_ok=True)
    report.save(folder / "report.html")
    for name, of in {"issues": issues, "corrected": corrected, "to_verify": to_verify}.items():
        of.to_csv(folder / f"{name}.csv", index=False)
    print(*answer, f"in {folder}: report.html, issues.csv, corrected.csv, to_verify.csv", sep="\n")


def read(options: argparse.Namespace) -> tuple[Any, Any, list[str]]:
    """Rows of a file, their table of labels, and the other columns; raise for what `fit` cannot know."""
    table = read_table(options.file, options.encoding)
    options.verified = options.verified or ("verified" if "verified" in table else None)
    single = filter(None, [options.verified, options.text, options.group, options.sample, options.source])
    named = [*options.label, *options.features, *single]
    if unknown := [name for name in named if name not in table]:
        raise ValueError(f"no column {', '.join(map(repr, unknown))} among {list(table)}.")
    for name in options.label:
        check_labels(table[name].dropna(), name)
    labels = table[options.label]
    if options.sample or options.source:
        table, labels = one_row_per_sample(table, options)
    true = table[options.verified].dropna().tolist() if options.verified else []
    given = set(labels.to_numpy().ravel())
    if true and given.isdisjoint(true):
        raise ValueError(f"{options.verified!r} has {true[0]!r}, which is no given label. Enter true labels there.")
    others = [name for name in table if name not in {*named, options.embeddings, "verified_probability", "corrected"}]
    for name in [] if options.verified or options.features else others:
        values = table[name].dropna()
        if 0 < len(values) < len(table) and values.isin(given).all():
            raise ValueError(f"{name!r} looks like true labels: pass it as --verified, or name features by --features.")
    beside = {"verified": options.verified, "group": options.group, "verified_probability": "verified_probability"}
    known = {name: table[column] for name, column in beside.items() if column in table}
    return table, labels.assign(**{"verified": None} | known), others


def read_table(path: Path, encoding: str) -> Any:
    """Read a CSV, Excel or Parquet file; a CSV file by the separator of most columns, and points or commas."""
    import pandas as pd

    if path.suffix == ".parquet":
        table = pd.read_parquet(path)
    elif path.suffix.startswith(".xls"):
        table = pd.read_excel(path)
    else:
        try:
            sep = max(",;\t", key=lambda sep: pd.read_csv(path, sep=sep, encoding=encoding, nrows=0).shape[1])
            points = [point for point in ".," if point != sep]
            tables = [pd.read_csv(path, sep=sep, decimal=d, encoding=encoding, low_memory=False) for d in points]
            table = pd.DataFrame({**tables[0], **tables[-1].select_dtypes("number")})
        except UnicodeError:
            raise ValueError(f"{path} is not encoded as {encoding}. Try --encoding cp1252 or utf-16.") from None
    return table.reset_index(drop=True).rename(columns=str)


def check_labels(labels: Any, name: str) -> None:
    """Raise if labels are no classes: numbers and text, or ids, with less than two rows each on average."""
    number = labels.astype(str).str.fullmatch(r"[-+]?\d*\.?\d+(e[-+]?\d+)?")
    if number.any() and not number.all():
        raise ValueError(f"{name!r} has numbers and text: {labels[number].iloc[0]} and {labels[~number].iloc[0]!r}.")
    if len(labels) < 2 * (n := labels.nunique()):
        raise ValueError(f"{name!r} has {n} different values in {len(labels)} rows. Pass classes, not ids.")


def one_row_per_sample(table: Any, options: argparse.Namespace) -> tuple[Any, Any]:
    """Rows of samples, and their labels with a column for each source, of a table with a row for each answer."""
    if not options.sample or not options.source or len(options.label) > 1:
        raise ValueError("a file with a row for each answer needs --sample, --source and one column as --label.")
    if n := int(table[[options.sample, options.source]].isna().any(axis=1).sum()):
        raise ValueError(f"{n} rows have no {options.sample!r} or no {options.source!r}. Drop these rows.")
    if options.verified and table.groupby(options.sample)[options.verified].nunique().max() > 1:
        raise ValueError(f"{options.verified!r} has several labels for one {options.sample!r}. Correct or empty them.")
    answers = table.dropna(subset=options.label)
    last = answers.drop_duplicates([options.sample, options.source], keep="last")
    if n := len(answers) - len(last):
        print(f"{n} answers are left out: the same source gave the same sample another one later", file=sys.stderr)
    rows = table.drop(columns=[*options.label, options.source]).groupby(options.sample, sort=False).first()
    labels = last.pivot(index=options.sample, columns=options.source, values=options.label[0]).reindex(rows.index)
    return rows.reset_index(), labels.reset_index(drop=True)


def encoded(table: Any, others: list[str], options: argparse.Namespace) -> tuple[Any, Any, Any]:
    """Features, a pipeline that encodes and classifies them, and what is shown of each row."""
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    classifier = LogisticRegression(max_iter=1000)
    names = list(dict.fromkeys(filter(None, [options.text, *options.features]))) or others
    shown = table[names].astype(object).where(table[names].notna(), "").map(lambda value: " ".join(str(value).split()))
    shown.index = table[options.sample] if options.sample else table.index
    if options.embeddings:
        arrays = np.stack(table[options.embeddings]) if options.embeddings in table else np.load(options.embeddings)
        return arrays, make_pipeline(StandardScaler(), classifier), shown
    if names == [options.text]:
        return shown[options.text].to_numpy(), make_pipeline(TfidfVectorizer(), classifier), shown
    ids = [name for name, of in table[names].items() if name in others and of.is_unique and of.dtype.kind not in "fcmM"]
    left_out = "".join(f". {name!r} differs in every row: pass it as --features, or as --text" for name in ids)
    features = [name for name in names if name not in ids]
    if not features:
        raise ValueError(f"no features are left: pass --text, --features or --embeddings{left_out}.")
    print(f"features: {', '.join(features)}{left_out}", file=sys.stderr)
    from skrub import tabular_pipeline

    return table[features], tabular_pipeline(classifier), shown


def with_text(found: Any, shown: Any, *names: str) -> Any:
    """Results for positions, with the name and text of each row in place of the position."""
    rows = shown.iloc[found.position]
    text = [", ".join(values) for values in rows.to_numpy()]
    results = found.drop(columns="position").set_axis(names, axis=1)
    return results.assign(row=rows.index, text=text)[["row", "text", *names]]


def summary(model: Any, labels: Any, issues: Any, to_verify: Any, corrected: Any) -> list[str]:
    """Lines of the answer."""
    is_verified = labels.verified.notna()
    given = labels.drop(columns=["verified", "verified_probability", "group"], errors="ignore")
    has_label = given.notna().any(axis=1)
    n_changed = (given.ne(corrected, axis=0) & given.notna()).to_numpy().sum()
    correct = shares = "unknown, since fewer than two rows are verified"
    plan = "Until then, the list and the flips rest on the classifier alone."
    bounds = "{:.2f} [{:.2f}, {:.2f}]"
    if is_verified.sum() > 1:
        shares = ", ".join(f"{name} {bounds.format(*row)}" for name, *row in model.class_shares().itertuples())
        plan = str(model.plan_verification("shares")).partition(" of suggest_samples")[0].rstrip(".") + "."
    if (is_verified & has_label).sum() > 1:
        correct = bounds.format(*model.accuracy_interval(of="labels"))
    return [
        f"{len(labels)} rows, {is_verified.sum()} verified, {(~has_label).sum()} without label; 90 % intervals:",
        f"labels correct: {correct}",
        f"class shares: {shares}",
        "worst flips, true class -> label: " + "; ".join(model.transition_summary(top=3).splitlines()),
        f"probably wrong: {len(issues)} labels that are not verified. P(correct) of the most suspicious:",
        *("  {4:.2f}  row {0}: {2}, rather {3}: {1:.70}".format(*row) for row in issues[:10].itertuples(index=False)),
        f"corrected.csv changes {n_changed} labels: to true labels, and to suggestions of probability 0.9 or more",
        f"verify next, for the class shares: the {len(to_verify)} rows of to_verify.csv. {plan}",
    ]


if __name__ == "__main__":
    sys.exit(main())
