"""``python -m noisytransition audit``: a file in, an answer out."""

import hashlib
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from noisytransition import TransitionClassifierCV, flip_labels
from noisytransition.__main__ import main

REVIEWS = Path(__file__).parents[1] / "examples" / "reviews.csv"
TEXT = ["--label", "llm", "--verified", "checked", "--text", "review"]


@pytest.fixture(scope="module")
def reviews():
    return pd.read_csv(REVIEWS)


@pytest.fixture(scope="module")
def audited(tmp_path_factory):
    """Folder of a file that was audited, the printed text, and the exit code."""
    folder = tmp_path_factory.mktemp("audit")
    path = folder / "reviews.csv"
    path.write_bytes(REVIEWS.read_bytes())
    with pytest.MonkeyPatch.context() as patch:
        lines = []
        patch.setattr("builtins.print", lambda *values, file=None, **_: lines.extend(values if file is None else ()))
        code = main(["audit", str(path), *TEXT])
    return folder, "\n".join(map(str, lines)), code


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
def test_the_issues_are_those_of_the_classifier(audited, reviews, fitted):
    folder, _, code = audited
    issues = pd.read_csv(folder / "reviews_audit" / "issues.csv")
    found = fitted.find_label_issues()
    assert code == 0
    assert len(found) > 10
    assert list(issues) == ["row", "text", "given", "suggested", "probability_correct"]
    assert issues["row"].tolist() == found["position"].tolist()
    assert issues["given"].tolist() == found["given_label"].tolist()
    assert issues["suggested"].tolist() == found["suggested_label"].tolist()
    np.testing.assert_allclose(issues["probability_correct"], found["label_quality"])
    assert issues["text"].tolist() == reviews["review"][found["position"]].tolist()


def test_the_corrected_file_is_the_file_with_one_more_column(audited, reviews, fitted):
    corrected = pd.read_csv(audited[0] / "reviews_audit" / "corrected.csv")
    pd.testing.assert_frame_equal(corrected.drop(columns="corrected"), reviews)
    assert corrected["corrected"].tolist() == fitted.relabel().tolist()


def test_rows_to_verify_are_not_verified_and_have_probabilities(audited, reviews, fitted):
    rows = pd.read_csv(audited[0] / "reviews_audit" / "to_verify.csv")
    drawn = fitted.noise_model_.suggest_samples(50, random_state=0)
    assert rows["row"].tolist() == drawn["position"].tolist()
    np.testing.assert_allclose(rows["verified_probability"], drawn["probability"])
    assert reviews["checked"][rows["row"]].isna().all()
    assert rows["verified"].isna().all()


def test_the_printed_answer_has_the_estimates(audited, reviews, fitted):
    _, text, _ = audited
    model = fitted.noise_model_
    numbers = [*model.accuracy_interval(of="labels"), *model.class_shares().iloc[:, :3].to_numpy().ravel()]
    assert {f"{number:.2f}" for number in numbers} <= set(re.findall(r"\d\.\d\d", text))
    assert fitted.transition_summary(top=1).splitlines()[0] in text
    for position in fitted.find_label_issues()["position"][:10]:
        assert f"row {position}: {reviews['llm'][position]}" in text
        assert reviews["review"][position][:50] in text


def test_the_report_shows_the_sentences(audited, reviews, fitted):
    page = (audited[0] / "reviews_audit" / "report.html").read_text(encoding="utf-8")
    assert reviews["review"][fitted.find_label_issues()["position"].iloc[0]] in page


def test_the_file_is_unchanged_and_results_are_not_overwritten(audited, capsys):
    folder, _, _ = audited
    before = {path: hashlib.sha256(path.read_bytes()).digest() for path in folder.rglob("*.*")}
    assert (folder / "reviews.csv").read_bytes() == REVIEWS.read_bytes()
    assert main(["audit", str(folder / "reviews.csv"), *TEXT]) == 2
    assert "reviews_audit" in capsys.readouterr().err
    assert before == {path: hashlib.sha256(path.read_bytes()).digest() for path in folder.rglob("*.*")}


# ---------------------------------------------------------------------------- kinds of files
@pytest.mark.parametrize("kind", ["parquet", "xlsx", "semicolons"])
def test_other_formats_have_the_same_result(kind, audited, reviews, tmp_path):
    pytest.importorskip({"parquet": "pyarrow", "xlsx": "openpyxl"}.get(kind, "pandas"))
    path = tmp_path / f"table.{kind}"
    if kind == "parquet":
        reviews.to_parquet(path)
    elif kind == "xlsx":
        reviews.to_excel(path, index=False)
    else:
        reviews.to_csv(path, index=False, sep=";", encoding="utf-16")
    options = ["--encoding", "utf-16"] if kind == "semicolons" else []
    code, results = run(None, tmp_path, *TEXT, *options, name=path.name)
    assert code == 0
    pd.testing.assert_frame_equal(
        pd.read_csv(results / "issues.csv"), pd.read_csv(audited[0] / "reviews_audit" / "issues.csv")
    )


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
    assert "name" in capsys.readouterr().err
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


def test_groups_and_probabilities_reach_the_fit(table, tmp_path, monkeypatch):
    of = table.assign(ward=np.arange(120) // 2, verified_probability=0.7)
    seen = []
    fit = TransitionClassifierCV.fit

    def watched(self, X, y, **options):
        seen.append(y)
        return fit(self, X, y, **options)

    monkeypatch.setattr(TransitionClassifierCV, "fit", watched)
    np.save(tmp_path / "numbers.npy", of[["fever"]])
    options = ["--embeddings", str(tmp_path / "numbers.npy"), "--group", "ward"]
    assert run(of, tmp_path, "--label", "ann", *options)[0] == 0
    assert set(seen[0]) == {"ann", "verified", "group", "verified_probability"}
    assert seen[0]["group"].tolist() == of["ward"].tolist()


def test_without_verified_rows_the_answer_says_so(table, tmp_path, capsys):
    pytest.importorskip("skrub")
    of = table[["fever", "site", "ann"]].assign(checked=None)
    code, results = run(of, tmp_path, "--label", "ann", "--verified", "checked")
    printed = capsys.readouterr()
    assert code == 0
    assert "labels correct: unknown" in printed.out
    assert "no sample is verified" in printed.err
    assert len(pd.read_csv(results / "to_verify.csv")) == 50


# ---------------------------------------------------------------------------- files that are wrong
def wrong_files(reviews):
    """Columns of a wrong file, options, and a part of the sentence."""
    n = len(reviews)
    text = ["--text", "review"]
    yes = np.where(reviews["llm"] == "praise", "yes", "no")
    mixed = np.where(np.arange(n) % 9, reviews["llm"], "3")
    return {
        "no such column": (reviews, ["--label", "lmm", *text], "'llm'"),
        "no such feature": (reviews, ["--label", "llm", "--features", "stars"], "'stars'"),
        "numbers and text": (reviews.assign(llm=mixed), ["--label", "llm", *text], "numbers"),
        "ids": (reviews.assign(id=np.arange(n)), ["--label", "id", *text], str(n)),
        "all verified": (reviews.assign(checked=reviews["llm"]), TEXT, "every row is verified"),
        "yes and no": (reviews.assign(checked=pd.Series(yes).where(np.arange(n) < 50)), TEXT, "'checked'"),
        "one class": (reviews.assign(llm="praise"), ["--label", "llm", *text], "2 classes"),
        "no features": (reviews[["llm", "checked"]], TEXT[:4], "--features"),
        "no source": (reviews, ["--label", "llm", "--sample", "review"], "--source"),
        "no file of arrays": (reviews, [*TEXT, "--embeddings", "none.npy"], "none.npy"),
    }


@pytest.mark.parametrize("fault", wrong_files(pd.read_csv(REVIEWS)))
def test_a_wrong_file_gets_one_sentence(fault, reviews, tmp_path, capsys):
    of, options, part = wrong_files(reviews)[fault]
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
    assert ("--encoding" in text) == (name == "latin.csv")


@pytest.mark.parametrize("options", [[], ["audit"], ["audit", "file.csv"], ["audit", "file.csv", "--label"]])
def test_wrong_usage_exits_with_2(options):
    with pytest.raises(SystemExit, match="2"):
        main(options)


def test_it_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "noisytransition", "audit", "--help"], capture_output=True, text=True, check=True
    )
    assert "--verified" in done.stdout


def test_bundled_reviews_are_those_of_the_script(reviews):
    from examples.reviews import made

    pd.testing.assert_frame_equal(made(240, seed=0), reviews, check_dtype=False)
