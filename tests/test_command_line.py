"""``python -m noisytransition audit``: a file in, an answer out."""

import contextlib
import io
import re
import shutil
import subprocess
import sys
import textwrap
from pathlib import Path
from unittest import mock

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from noisytransition import TransitionClassifierCV, flip_labels
from noisytransition.__main__ import main

REVIEWS = Path(__file__).parents[1] / "examples" / "reviews.csv"
PAGE = Path(__file__).parents[1] / "docs" / "from_a_csv_file.rst"
TEXT = ["--label", "llm", "--verified", "checked", "--text", "review"]
ISSUES = ["row", "text", "given", "suggested", "probability_correct"]
pytestmark = pytest.mark.xdist_group("audit")  # one process makes the fixtures


@pytest.fixture(scope="module")
def reviews():
    return pd.read_csv(REVIEWS)


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """Folder of a file that was audited, the printed text, and the exit code."""
    folder = tmp_path_factory.mktemp("audit")
    path = folder / "reviews.csv"
    path.write_bytes(REVIEWS.read_bytes())
    with contextlib.redirect_stdout(io.StringIO()) as printed:
        code = main(["audit", str(path), *TEXT])
    return folder, printed.getvalue(), code


@pytest.fixture(scope="module")
def fitted(reviews):
    """Return the classifier of the same steps in Python."""
    words = make_pipeline(TfidfVectorizer(), LogisticRegression(max_iter=1000))
    labels = reviews[["llm", "checked"]].rename(columns={"checked": "verified"})
    return TransitionClassifierCV(words, random_state=0).fit(reviews["review"], labels)


def run(table, folder, *options, name="table.csv"):
    """Exit code of the command for a table, and the folder of its results."""
    path = folder / name
    if not path.exists():
        table.to_csv(path, index=False)
    return main(["audit", str(path), *options]), folder / f"{path.stem}_audit"


# ---------------------------------------------------------------------------- the results of one run
def test_its_files_are_those_of_the_classifier(audited, reviews, fitted):
    folder, _, code = audited
    assert code == 0
    issues, corrected, rows = (
        pd.read_csv(folder / "reviews_audit" / f"{name}.csv") for name in ("issues", "corrected", "to_verify")
    )
    found = fitted.find_label_issues()
    assert len(found) > 10
    columns = {"row": "position", "given": "given_label", "suggested": "suggested_label"}
    columns |= {"probability_correct": "label_quality"}
    expected = found[[*columns.values()]].set_axis([*columns], axis=1).reset_index(drop=True)
    expected.insert(1, "text", reviews["review"][found["position"]].to_numpy())
    pd.testing.assert_frame_equal(issues, expected.round(4), check_dtype=False)
    pd.testing.assert_frame_equal(corrected.drop(columns="corrected"), reviews)
    assert corrected["corrected"].tolist() == fitted.relabel().tolist()
    drawn = fitted.noise_model_.suggest_samples(50, random_state=0)
    assert rows["row"].tolist() == drawn["position"].tolist()
    np.testing.assert_allclose(rows["verified_probability"], drawn["probability"])
    assert reviews["checked"][rows["row"]].isna().all()
    assert rows["verified"].isna().all()


def test_the_printed_answer_and_the_report_have_the_estimates_and_sentences(audited, reviews, fitted):
    folder, text, _ = audited
    model = fitted.noise_model_
    numbers = [*model.accuracy_interval(of="labels"), *model.class_shares().iloc[:, :3].to_numpy().ravel()]
    assert {f"{number:.2f}" for number in numbers} <= set(re.findall(r"\d\.\d\d", text))
    assert fitted.transition_summary(top=1).splitlines()[0] in text
    n_changed = (fitted.relabel() != reviews["llm"]).sum()
    assert f"corrected.csv changes {n_changed} labels" in text
    positions = fitted.find_label_issues()["position"][:10]
    for position in positions:
        assert f"row {position}: {reviews['llm'][position]}" in text
        assert reviews["review"][position][:50] in text
    page = (folder / "reviews_audit" / "report.html").read_text(encoding="utf-8")
    assert reviews["review"][positions.iloc[0]] in page


def test_the_file_is_unchanged_and_results_are_not_overwritten(audited, capsys):
    folder, _, _ = audited
    before = {path: path.read_bytes() for path in folder.rglob("*.*")}
    assert (folder / "reviews.csv").read_bytes() == REVIEWS.read_bytes()
    assert main(["audit", str(folder / "reviews.csv"), *TEXT]) == 2
    assert "reviews_audit" in capsys.readouterr().err
    assert main(["audit", str(folder / "reviews.csv"), "--label", "lmm"]) == 2
    assert "no column 'lmm'" in capsys.readouterr().err
    assert before == {path: path.read_bytes() for path in folder.rglob("*.*")}


def test_the_documented_lines_add_checked_rows_for_the_next_audit(audited, reviews, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    folder = shutil.copytree(audited[0], "examples")
    path = folder + "/reviews_audit/to_verify.csv"
    rows = pd.read_csv(path).astype({"verified": object})
    rows.loc[:29, "verified"] = "praise"
    rows.to_csv(path, index=False)
    lines = re.search("code-block:: python\n\n((?:   .*\n|\n)+)", PAGE.read_text(encoding="utf-8"))
    exec(textwrap.dedent(lines[1]))
    more = pd.read_csv("examples/reviews_2.csv")
    added = more.loc[rows["row"][:30]]
    assert added["checked"].eq("praise").all()
    np.testing.assert_allclose(added["verified_probability"], rows["verified_probability"][:30])
    pd.testing.assert_frame_equal(more.drop(index=added.index)[[*reviews]], reviews.drop(index=added.index))
    assert more["verified_probability"].notna().sum() == 30
    assert main(["audit", "examples/reviews_2.csv", *TEXT]) == 0
    assert "240 rows, 90 verified" in capsys.readouterr().out


# ---------------------------------------------------------------------------- kinds of files
def given_to_fit(*arguments):
    """Samples and labels that reach the fit of a command, which ends there."""
    stopped = mock.patch.object(TransitionClassifierCV, "fit", side_effect=KeyboardInterrupt)
    with stopped as fit, pytest.raises(KeyboardInterrupt):
        main(["audit", *map(str, arguments)])
    return fit.call_args.args


@pytest.mark.parametrize("kind", ["parquet", "xlsx", "semicolons"])
def test_other_formats_have_the_same_samples_and_labels(kind, reviews, tmp_path):
    pytest.importorskip({"parquet": "pyarrow", "xlsx": "openpyxl"}.get(kind, "pandas"))
    path, options = tmp_path / f"table.{kind}", []
    if kind == "semicolons":
        reviews.to_csv(path, index=False, sep=";", encoding="utf-16")
        options = ["--encoding", "utf-16"]
    else:
        {"parquet": reviews.to_parquet, "xlsx": reviews.to_excel}[kind](path, index=False)
    X, labels = given_to_fit(path, *TEXT, *options)
    _, of_csv = given_to_fit(REVIEWS, *TEXT)
    assert list(X) == reviews["review"].tolist()
    pd.testing.assert_frame_equal(labels, of_csv, check_dtype=False)


@pytest.fixture(scope="module")
def table():
    """Rows with a name, a category and numbers; the labels of three people, and some true labels."""
    rng = np.random.default_rng(0)
    true = rng.choice(["ill", "well"], 120)
    is_ill = true == "ill"
    table = pd.DataFrame({"name": [f"P{i}" for i in range(120)], "fever": rng.normal(size=120) + 3 * is_ill})
    table["site"] = np.where(rng.random(120) < 0.5 + 0.4 * is_ill, "north", "south")
    for k, person in enumerate(["ann", "ben", "eve"]):
        table[person] = flip_labels(true, [[0.8, 0.2], [0.2, 0.8]], random_state=k)
    table["verified"] = pd.Series(true).where(rng.random(120) < 0.3)
    return table.assign(true=true)


def test_columns_of_a_table_are_encoded_and_names_left_out(table, tmp_path, capsys):
    pytest.importorskip("skrub")
    of = table.rename(columns={"ann": "label"})[["name", "fever", "site", "label", "verified"]].copy()
    of.loc[::10, ["label", "verified"]] = None  # rows without label
    of.loc[5, "fever"] = np.nan
    code, results = run(of, tmp_path, "--label", "label")
    assert code == 0
    assert "features: fever, site. 'name' differs in every row" in capsys.readouterr().err
    corrected = pd.read_csv(results / "corrected.csv")["corrected"]
    assert (corrected == table["true"])[::10].mean() > 0.8  # the most probable class
    assert (corrected == table["true"]).mean() > (table["ann"] == table["true"]).mean() + 0.1
    assert pd.read_csv(results / "issues.csv")["text"].str.contains("north|south").all()


def test_without_skrub_one_sentence_says_what_to_install(table, tmp_path, capsys, monkeypatch):
    monkeypatch.setitem(sys.modules, "skrub", None)
    assert run(table.drop(columns="true"), tmp_path, "--label", "ann", "ben", "eve")[0] == 2
    assert "pip install skrub" in capsys.readouterr().err


def test_a_row_for_each_answer_is_the_same_as_a_column_for_each_source(table, tmp_path):
    people = ["ann", "ben", "eve"]
    of = table.drop(columns=["true", "site"])
    of["eve"] = of["eve"].where(of.index % 3 > 0)
    of["fever"] = of["fever"].round(1)  # else each row would have its own
    long = of.melt(["name", "fever", "verified"], people, "person", "answer").dropna(subset=["answer"])
    numbers = tmp_path / "numbers.npy"
    np.save(numbers, of[["fever"]])
    options = ["--embeddings", str(numbers)]
    code, wide = run(of, tmp_path, "--label", *people, *options)
    assert code == 0
    more = ["--label", "answer", "--sample", "name", "--source", "person"]
    code, results = run(long, tmp_path, *more, *options, name="long.csv")
    assert code == 0
    of_wide = pd.read_csv(wide / "issues.csv")
    of_long = pd.read_csv(results / "issues.csv")
    assert of_long["row"].tolist() == of["name"][of_wide["row"]].tolist()
    np.testing.assert_allclose(of_long["probability_correct"], of_wide["probability_correct"])
    corrected = pd.read_csv(results / "corrected.csv")
    assert corrected["name"].tolist() == of["name"].tolist()
    assert (corrected["corrected"] == table["true"]).mean() > 0.85


def test_groups_and_probabilities_reach_the_fit(table, tmp_path):
    of = table.assign(ward=np.arange(120) // 2, verified_probability=0.7)
    of.to_csv(tmp_path / "table.csv", index=False)
    np.save(tmp_path / "numbers.npy", of[["fever"]])
    options = ["--embeddings", tmp_path / "numbers.npy", "--group", "ward"]
    X, labels = given_to_fit(tmp_path / "table.csv", "--label", "ann", *options)
    np.testing.assert_array_equal(X, of[["fever"]])
    assert set(labels) == {"ann", "verified", "group", "verified_probability"}
    assert labels["group"].tolist() == of["ward"].tolist()


def test_without_verified_rows_the_answer_says_so(table, tmp_path, capsys):
    pytest.importorskip("skrub")
    of = table[["fever", "site", "ann"]].assign(checked=None)
    code, results = run(of, tmp_path, "--label", "ann", "--verified", "checked")
    printed = capsys.readouterr()
    assert code == 0
    assert "labels correct: unknown" in printed.out
    assert "no sample is verified" in printed.err
    assert len(pd.read_csv(results / "to_verify.csv")) == 50


def test_a_decimal_comma_is_read(table, tmp_path):
    pytest.importorskip("skrub")
    path = tmp_path / "table.csv"
    table.assign(age=1.5).to_csv(path, index=False, sep=";", decimal=",")
    X, _ = given_to_fit(path, "--label", "ann", "--features", "fever", "age")
    np.testing.assert_allclose(X["fever"], table["fever"])
    assert (X["age"] == 1.5).all()


def test_true_labels_with_points_beside_decimal_commas_are_no_feature(table, tmp_path, capsys):
    path = tmp_path / "table.csv"
    is_ill = (table["true"] == "ill").astype(int)
    numbers = table["fever"].map("{:.3f}".format).str.replace(".", ",")
    of = pd.DataFrame({"label": is_ill, "checked": is_ill.where(table.index < 50), "fever": numbers, "pulse": numbers})
    of.to_csv(path, index=False, sep=";")
    assert main(["audit", str(path), "--label", "label"]) == 2
    assert "'checked' looks like true labels" in capsys.readouterr().err


def test_labels_of_an_audit_before_are_no_feature(table, tmp_path):
    pytest.importorskip("skrub")
    path = tmp_path / "table.csv"
    table.drop(columns="true").assign(corrected=table["true"]).to_csv(path, index=False)
    X, _ = given_to_fit(path, "--label", "ann", "ben", "eve")
    assert list(X) == ["fever", "site"]


def test_a_file_without_wrong_labels_has_an_empty_list(table, tmp_path):
    pytest.importorskip("skrub")
    of = table[["fever", "site", "true", "verified"]].assign(verified=table["true"].where(table.index < 1))
    of = of.assign(fever=np.where(of["true"] == "ill", 9.0, 0.0) + table["fever"])
    code, results = run(of, tmp_path, "--label", "true")
    assert code == 0  # also with one verified row
    assert pd.read_csv(results / "issues.csv").columns.tolist() == ISSUES
    assert not len(pd.read_csv(results / "issues.csv"))


# ---------------------------------------------------------------------------- files that are wrong
def wrong_files():
    """Columns of a wrong file, options, and a part of the sentence."""
    reviews, text = pd.read_csv(REVIEWS), ["--text", "review"]
    n = len(reviews)
    yes = np.where(reviews["llm"] == "praise", "yes", "no")
    mixed = np.where(np.arange(n) % 9, reviews["llm"], "3")
    return {
        "no such column": (reviews, ["--label", "lmm", *text], "'llm'"),
        "no such feature": (reviews, ["--label", "llm", "--features", "stars"], "'stars'"),
        "no such columns": (reviews, ["--label", "lmm", "--features", "stars"], "no column 'lmm', 'stars' among"),
        "numbers and text": (reviews.assign(llm=mixed), ["--label", "llm", *text], "numbers"),
        "ids": (reviews.assign(id=np.arange(n)), ["--label", "id", *text], str(n)),
        "all verified": (reviews.assign(checked=reviews["llm"]), TEXT, "all samples are verified"),
        "yes and no": (reviews.assign(checked=pd.Series(yes).where(np.arange(n) < 50)), TEXT, "'checked'"),
        "one class": (reviews.assign(llm="praise"), ["--label", "llm", *text], "2 classes"),
        "no features": (reviews[["llm", "checked"]], TEXT[:4], "--features"),
        "text not named": (reviews, TEXT[:4], "'review' differs in every row"),
        "verified not named": (reviews, ["--label", "llm"], "'checked' looks like true labels"),
        "no source": (reviews, ["--label", "llm", "--sample", "review"], "--source"),
        "two true labels": (
            pd.concat([reviews, reviews.assign(checked="praise")]).assign(who=1),
            [*TEXT[:4], "--sample", "review", "--source", "who"],
            "several labels for one 'review'",
        ),
        "no file of arrays": (reviews, [*TEXT, "--embeddings", "none.npy"], "none.npy"),
    }


@pytest.mark.parametrize(("of", "options", "part"), wrong_files().values(), ids=wrong_files())
def test_a_wrong_file_gets_one_sentence(of, options, part, tmp_path, capsys):
    code, results = run(of, tmp_path, *options)
    printed = capsys.readouterr()
    assert code == 2
    assert part in printed.err
    assert "Traceback" not in printed.err
    assert not printed.out
    assert not results.exists()


@pytest.mark.parametrize(
    ("name", "content"), [("no.csv", None), ("empty.csv", b""), ("latin.csv", "a,b\né,1".encode("cp1252"))]
)
def test_a_file_that_cannot_be_read_gets_one_sentence(name, content, tmp_path, capsys):
    if content is not None:
        (tmp_path / name).write_bytes(content)
    assert main(["audit", str(tmp_path / name), "--label", "b"]) == 2
    text = capsys.readouterr().err
    assert "Traceback" not in text
    assert "Errno" not in text
    assert ("--encoding" in text) == (name == "latin.csv")


def test_it_runs_as_a_module():
    command = [sys.executable, "-m", "noisytransition", "audit", "--help"]
    assert "--verified" in subprocess.run(command, capture_output=True, text=True, check=True).stdout


def test_bundled_reviews_are_those_of_the_script(reviews):
    from examples.reviews import made

    pd.testing.assert_frame_equal(made(240, seed=0), reviews, check_dtype=False)
