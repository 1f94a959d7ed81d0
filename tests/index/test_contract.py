"""What every index does, whatever keeps it: run against each back end of conftest.py."""

import itertools
import pickle
import random
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import pytest
from companies import DIMENSION, MODEL, OTHER_MODEL, company, found, state, statuses, vector
from pytest import approx

from common.errors import InputError
from index import base
from index.base import POOL, Spec
from index.document import Document, Filters
from index.errors import CompanyMissing, IndexMissing, IndexUnusable, WrongModel
from index.open import open_index

EAST, NORTH = vector(1, 0, 0, 0), vector(0, 1, 0, 0)
TRADES = [
    company("brewery", 1, (1, 0, 0, 0), name="Étoile Brewing", description="Brews beers and ales", sector="Food",
            industry="Brewing", country="BE", tags=("craft", "b2c")),
    company("winery", 1, (0.8, 0.6, 0, 0), name="The Estate", description="Wine from its own slopes", sector="Food",
            industry="Wine", country="FR", tags=("b2c",)),
    company("carmaker", 1, (0, 1, 0, 0), name="Acme Motors", description="Electric cars", sector="Industry",
            industry="Cars", country="FR", tags=("b2b", "craft")),
    company("parts", 1, (0, 0.6, 0.8, 0), name="Motor Parts", description="Parts for cars and brewing equipment",
            sector="Industry", industry="Cars", country="DE"),
]  # fmt: skip


@pytest.fixture
def trades(index):
    assert statuses(index.write(TRADES)) == ["indexed"] * 4
    index.refresh()
    return index


def put(index, *documents):
    outcomes = index.write(documents)
    index.refresh()
    return statuses(outcomes)


# opening


def test_an_address_with_nothing_at_it_is_refused_with_the_commands_that_fill_it(url):
    with pytest.raises(IndexMissing, match=r"python -m index create --index .* --serving") as refusal:
        open_index(url)
    assert str(pickle.loads(pickle.dumps(refusal.value))) == str(refusal.value)


def test_created_once_it_is_opened_and_knows_its_model(url):
    open_index(url, create=Spec(MODEL, DIMENSION)).write([company("a")])
    again = open_index(url, create=Spec(MODEL, DIMENSION))
    assert (again.spec(), list(again.known(["a"]))) == (Spec(MODEL, DIMENSION), ["a"])
    assert open_index(url).status().physical.endswith(f"-{MODEL}-1")


def test_created_for_another_model_it_is_refused_with_the_command_that_moves_it(index):
    with pytest.raises(WrongModel, match=f"model {MODEL}, not of {OTHER_MODEL}; `python -m pipelines.reindex") as error:
        open_index(index.url, create=Spec(OTHER_MODEL, DIMENSION))
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


# versions


def test_a_company_comes_back_as_it_was_written(index):
    document = company("a", 7, (0.6, 0.8, 0, 0), sector="S", industry="I", country="C", website="w", tags=("t", "u"))
    before = time.time_ns() // 1000
    assert put(index, document) == ["indexed"]
    kept = index.get("a")
    assert replace(kept, indexed_at=0) == document
    assert kept.embedding.dtype == np.float32 and kept.embedding.tolist() == document.embedding.tolist()
    assert before <= kept.indexed_at <= time.time_ns() // 1000


def test_the_newest_version_wins_and_an_equal_one_is_stale(index):
    assert put(index, company("a", 5, name="five")) == ["indexed"]
    assert put(index, company("a", 4, name="four"), company("a", 5, name="five")) == ["stale", "stale"]
    assert index.get("a").name == "five"
    assert put(index, company("a", 6, name="six")) == ["indexed"]
    assert index.get("a").name == "six"


def test_documents_of_one_call_are_written_one_after_the_other(index):
    documents = [company("a", 1), company("a", 3), company("a", 2), company("a", 3), company("b", 1)]
    assert put(index, *documents) == ["indexed", "indexed", "stale", "stale", "indexed"]
    assert (index.get("a").version, index.get("a").name) == (3, "Company a")


def of_one_version(id, version=5):
    """Contents that compete for one version, the least first; the tombstone is the greatest."""
    companies = [company(id, version, (1, 2, 3, number), name=f"{id} {number}") for number in range(2)]
    return [*sorted(companies, key=lambda one: one.order), Document.tombstone(id, version)]


@pytest.mark.parametrize("together", [True, False], ids=["in one call", "in several"])
def test_equal_versions_with_different_content_end_alike_in_any_order(index, together):
    ends = {}
    for number, order in enumerate(itertools.permutations(range(3))):
        documents = [of_one_version(f"{number}")[place] for place in order]
        for call in [documents] if together else [[one] for one in documents]:
            index.write(call)
        ends[f"{number}"] = Document.tombstone(f"{number}", 5)
    for number, order in enumerate(itertools.permutations(range(2))):
        documents = [of_one_version(f"two {number}")[place] for place in order]
        outcomes = [put(index, *documents)] if together else [put(index, one) for one in documents]
        assert [*itertools.chain(*outcomes)] == (["indexed", "indexed"] if order == (0, 1) else ["indexed", "stale"])
        ends[f"two {number}"] = of_one_version(f"two {number}")[1]
    index.refresh()
    kept = state(index)
    assert {id: replace(one, indexed_at=0) for id, (one, _) in kept.items()} == ends
    assert kept["two 0"][1] == ends["two 0"].embedding.tolist()  # the winner's own vector


def test_a_later_version_wins_over_one_that_won_within_its_own(index):
    least, greater, tombstone = of_one_version("a", 5)
    for one in (least, greater, tombstone):  # whatever a store counts of its own
        put(index, one)
    assert put(index, company("a", 6)) == ["indexed"]
    assert put(index, tombstone, greater) == ["stale", "stale"]
    assert index.get("a").version == 6


def test_two_that_write_one_version_at_once_end_as_one_after_the_other(backend):
    url = backend.new_url()
    writers = [open_index(url, create=Spec(MODEL, DIMENSION)) for _ in range(2)]
    least, greater = of_one_version("")[:2]
    for turn in range(10):
        pairs = [replace(one, id=f"{turn}") for one in (least, greater)]
        with ThreadPoolExecutor(2) as pool:
            list(pool.map(lambda writer, one: writer.write([one]), writers, pairs))
    assert {one.name for one in writers[0].get_many(map(str, range(10))).values()} == {greater.name}


def test_forced_an_equal_version_is_written_again_and_an_older_one_is_stale(index):
    least, greater, tombstone = of_one_version("a", 5)
    put(index, greater)
    assert statuses(index.write([least], force=True)) == ["indexed"]
    assert index.get("a").name == least.name
    assert statuses(index.write([least], force=True)) == ["indexed"]
    assert statuses(index.write([tombstone], force=True)) == ["deleted"]
    assert statuses(index.write([least], force=True)) == ["indexed"]  # a delete that was a mistake
    assert statuses(index.write([company("a", 4)], force=True)) == ["stale"]
    assert statuses(index.write([company("a", 5, None, description=least.description)], force=True)) == ["indexed"]
    assert index.get("a").embedding.tolist() == least.embedding.tolist()


def test_nothing_written_is_nothing_done(index):
    assert index.write([]) == []


def test_an_older_update_cannot_revive_a_deleted_company(index):
    put(index, company("a", 1))
    assert put(index, Document.tombstone("a", 5)) == ["deleted"]
    assert put(index, company("a", 4), Document.tombstone("a", 5)) == ["stale", "stale"]
    assert index.get_many(["a"]) == {}
    assert put(index, company("a", 6)) == ["indexed"]
    assert index.get("a").version == 6


def test_a_delete_that_arrives_first_is_remembered(index):
    assert put(index, Document.tombstone("a", 5)) == ["deleted"]
    assert put(index, company("a", 4)) == ["stale"]
    assert index.known(["a"])["a"].deleted


def test_known_tells_versions_and_hashes_of_many_ids(index):
    put(index, company("a", 3), Document.tombstone("b", 4))
    known = index.known(["a", "b", "c", "a", "\ud800"])
    a, b = known.pop("a"), known.pop("b")
    assert (a.version, a.text_hash, a.fields_hash) == (3, company("a").text_hash, company("a").fields_hash)
    assert (a.model, a.deleted, b.version, b.deleted, known) == (MODEL, False, 4, True, {})


def test_a_thousand_random_histories_end_as_if_delivered_in_order(backend):
    chance = random.Random(5)
    inorder, shuffled = (open_index(backend.new_url(), create=Spec(MODEL, DIMENSION)) for _ in range(2))
    history = []
    for number in range(1000):
        # two companies each, told apart by the number of their history
        for version in (chance.randint(1, 4) for _ in range(chance.randint(1, 6))):
            id = f"{number}-{chance.randint(0, 1)}"
            deletes = chance.random() < 0.3
            name = f"{id} {version} {chance.randint(0, 2)}"  # versions come again, with other contents
            written = company(id, version, (1, version, number, 1), name=name)
            history.append(Document.tombstone(id, version) if deletes else written)
    deliveries = history + chance.sample(history, len(history) // 2)
    chance.shuffle(deliveries)
    inorder.write(history)
    start = 0
    while start < len(deliveries):
        size = chance.choice([1, 7, 100, 900])
        shuffled.write(deliveries[start : start + size])
        start += size
    inorder.refresh(), shuffled.refresh()
    greatest = {one.id: one for one in sorted(history, key=lambda one: one.order)}
    expected = state(inorder)
    assert {id: one.order for id, (one, _) in expected.items()} == {id: one.order for id, one in greatest.items()}
    assert 100 < sum(one.deleted for one, _ in expected.values()) < len(expected) - 100
    assert state(shuffled) == expected


# what cannot be kept


@pytest.mark.parametrize(
    ("changes", "field"),
    [
        ({"id": ""}, "id"),
        ({"id": "é" * 257}, "id"),
        ({"id": "\ud800"}, "id"),
        ({"version": -1}, "version"),
        ({"version": 2**63}, "version"),
        ({"name": "\udfff"}, "name"),
        ({"tags": ("fine", "\udfff")}, "tags"),
        ({"embedding": vector(1, 0, 0)}, "embedding"),
        ({"embedding": vector(1, 0, 0, np.nan)}, "embedding"),
        ({"embedding": vector(0, 0, 0, 0)}, "embedding"),
        ({"embedding": None}, "embedding"),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, dict) else value,
)
def test_a_document_that_cannot_be_kept_fails_alone_with_the_field_named(index, changes, field):
    bad, good = replace(company("bad"), **changes), company("good")
    first, second = index.write([bad, good])
    assert (first.status, first.reason.split(":")[0], second.status) == ("failed", field, "indexed")
    assert list(index.known([bad.id, "good"])) == ["good"]


def test_an_id_of_512_bytes_and_the_greatest_version_are_kept(index):
    document = company("é" * 256, 2**63 - 1)
    assert put(index, document) == ["indexed"]
    assert index.get(document.id).version == 2**63 - 1


def test_a_vector_of_another_model_is_refused_and_nothing_of_the_call_written(index):
    with pytest.raises(WrongModel):
        index.write([company("a"), replace(company("b"), model=OTHER_MODEL)])
    assert index.known(["a", "b"]) == {}
    assert statuses(index.write([Document.tombstone("a", 1)])) == ["deleted"]  # has no vector, and so no model


# fields around an unchanged text


def test_changed_fields_keep_the_stored_vector(index):
    put(index, company("a", 1, (0, 1, 0, 0)))
    assert put(index, company("a", 2, None, sector="new")) == ["indexed"]
    assert (index.get("a").sector, index.get("a").embedding.tolist()) == ("new", [0, 1, 0, 0])
    assert found(index.nearest(NORTH, 1, model=MODEL, filters=Filters(sector=("new",)))) == ["a"]


def test_a_changed_text_without_a_vector_fails_and_leaves_what_was_there(index):
    put(index, company("a", 1))
    (outcome,) = index.write([company("a", 2, None, description="another text")])
    assert (outcome.status, outcome.reason.split(":")[0]) == ("failed", "embedding")
    assert index.get("a").version == 1


# searching by vector


def test_nearest_is_by_cosine_whatever_the_length_of_the_query(trades):
    hits = trades.nearest(3 * EAST, 3, model=MODEL)
    assert [(hit.document.id, hit.score) for hit in hits] == [
        ("brewery", approx(1)),
        ("winery", approx(0.8)),
        ("carmaker", approx(0, abs=1e-6)),
    ]
    assert hits[1].document.name == "The Estate" and hits[1].document.tags == ("b2c",)
    assert found(trades.nearest(EAST, 99, model=MODEL, exact=True)) == ["brewery", "winery", "carmaker", "parts"]


@pytest.mark.parametrize(
    ("filters", "ids"),
    [
        (Filters(sector=("Food",)), {"brewery", "winery"}),
        (Filters(country=("FR", "DE")), {"winery", "carmaker", "parts"}),
        (Filters(country=("FR",), sector=("Industry",)), {"carmaker"}),
        (Filters(tags=("craft", "nothing")), {"brewery", "carmaker"}),
        (Filters(industry=("Cars",), exclude_ids=("parts",)), {"carmaker"}),
        (Filters(sector=("food",)), set()),  # values are exact
        (Filters(sector=("",)), set()),
    ],
)
def test_filters_take_any_value_of_a_field_and_all_of_the_fields(trades, filters, ids):
    assert set(found(trades.nearest(EAST, 10, model=MODEL, filters=filters))) == ids
    assert set(found(trades.search("beers wine cars", 10, filters=filters))) == ids


def test_nearest_to_a_stored_company_leaves_itself_out(trades):
    assert found(trades.nearest_to("carmaker", 2)) == ["parts", "winery"]  # both 0.6: equal ones by id
    assert found(trades.nearest_to("carmaker", 1, filters=Filters(sector=("Food",)))) == ["winery"]
    with pytest.raises(CompanyMissing, match="'nobody'") as error:
        trades.nearest_to("nobody", 2)
    assert str(pickle.loads(pickle.dumps(error.value))) == str(error.value)


@pytest.mark.parametrize(
    "query", [vector(1, 0), vector(0, 0, 0, 0), vector(np.inf, 0, 0, 0), np.ones((1, 4), np.float32)]
)
def test_a_query_without_neighbours_is_refused(trades, query):
    with pytest.raises(InputError, match="vector of 4 finite numbers"):
        trades.nearest(query, 3, model=MODEL)


def test_a_query_of_another_model_is_refused(trades):
    with pytest.raises(WrongModel):
        trades.nearest(EAST, 3, model=OTHER_MODEL)
    with pytest.raises(WrongModel):
        trades.hybrid("beer", EAST, 3, model=OTHER_MODEL)


def test_none_to_find_is_refused(trades):
    with pytest.raises(InputError, match="at least 1, got 0"):
        trades.nearest(EAST, 0, model=MODEL)
    with pytest.raises(InputError, match="at least 1, got -1"):
        trades.search("beer", -1)


# searching by words


@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("cars", ["carmaker", "parts"]),
        ("MOTORS", ["carmaker", "parts"]),
        ("etoile", ["brewery"]),
        ("estate", ["winery"]),
        ("zebra", []),
        ("", []),
        ('"cars" AND (name:*) \\ \0', ["carmaker", "parts"]),
        ("\ud800 estate", ["winery"]),
    ],
)
def test_words_of_name_and_description_are_found_and_nothing_is_syntax(trades, text, ids):
    assert sorted(found(trades.search(text, 10))) == ids


def test_a_word_in_the_name_counts_more_than_in_the_description(trades):
    hits = trades.search("brewing", 10)
    assert found(hits) == ["brewery", "parts"] and hits[0].score > hits[1].score


def test_hybrid_puts_first_what_words_find_too_among_companies_of_about_the_same_meaning(trades):
    # by meaning: carmaker 0.954, winery 0.3 * 0.8 + 0.954 * 0.6 = 0.812; one of two words is the winery's industry:
    # (0.2 + 0.2) / 2 = 0.2 more, and what the words score
    query = vector(0.3, 0.954, 0, 0)
    assert found(trades.nearest(query, 2, model=MODEL)) == ["carmaker", "winery"]
    hits = trades.hybrid("wine slopes", query, 2, model=MODEL)
    assert [(hit.document.id, hit.score) for hit in hits] == [
        ("winery", approx(0.812, abs=1e-3)),  # cosines
        ("carmaker", approx(0.954, abs=1e-3)),
    ]
    assert all(hit.document.embedding is None for hit in hits)
    assert found(trades.hybrid("wine", NORTH, 9, model=MODEL, filters=Filters(country=("DE",)))) == ["parts"]


def test_a_common_word_does_not_outweigh_what_is_meant(trades):
    # one of 4 has the word, which says little: carmaker 1.0 against 0.6 and some hundredths
    assert found(trades.search("slopes", 9)) == ["winery"]
    assert found(trades.hybrid("slopes", NORTH, 9, model=MODEL))[0] == "carmaker"


@pytest.mark.parametrize(
    ("typed", "id"),
    [
        ("Etoile Brewing", "brewery"),
        ("etoilebrewing", "brewery"),
        ("Étoile Brewing S.A.", "brewery"),
        ("estate", "winery"),
        ("AC ME Motors plc", "carmaker"),
        ("Acmi Motors", "carmaker"),
    ],
)
def test_a_name_comes_first_however_it_is_typed_and_whatever_it_means(trades, typed, id):
    far = vector(0, 0, 0.6, 0.8)  # parts 0.48, the others 0
    assert found(trades.nearest(far, 1, model=MODEL)) == ["parts"]
    assert found(trades.hybrid(typed, far, 9, model=MODEL))[0] == id
    elsewhere = Filters(country=("DE",))
    assert found(trades.hybrid(typed, far, 9, model=MODEL, filters=elsewhere)) == ["parts"]


def test_a_name_is_found_among_companies_that_are_all_nearer(index):
    others = [company(f"c{number:03d}", 1, (1, 0, 0, 0), description="Sails") for number in range(POOL + 10)]
    put(index, *others, company("meant", 1, (0, 1, 0, 0), name="Ryanair", description="Flies"))
    assert found(index.hybrid("ryan air", EAST, 3, model=MODEL))[0] == "meant"
    assert found(index.hybrid("Rynair", EAST, 3, model=MODEL))[0] == "meant"
    put(index, Document.tombstone("meant", 2))
    assert "meant" not in found(index.hybrid("ryan air", EAST, 3, model=MODEL))


def test_a_fused_list_is_one_list_whatever_is_asked_of_it(index):
    chance = np.random.default_rng(2)
    trades = ("steel", "glass", "paper", "cement", "timber")
    put(
        index,
        *(
            company(f"c{number:03d}", 1, chance.normal(size=4), description=" ".join(chance.choice(trades, 3)))
            for number in range(3 * POOL)
        ),
    )
    whole = found(index.hybrid("steel glass", EAST, 3 * POOL, model=MODEL))
    assert len(whole) == len(set(whole)) == 3 * POOL  # past those that were looked at for the first page
    for k in (1, 7, 10, 25, 30, 80, 2 * POOL + 1):
        assert found(index.hybrid("steel glass", EAST, k, model=MODEL)) == whole[:k]


def test_a_fused_list_goes_no_deeper_than_its_bound(index, monkeypatch):
    monkeypatch.setattr(base, "POOL", 3)
    monkeypatch.setattr(base, "DEEPEST_RANK", 6)
    # Those that are meant and those that have the word are different ones.
    put(index, *(company(f"m{number}", 1, (1, 0.01 * number, 0, 0), description="Sails") for number in range(9)))
    put(index, *(company(f"w{number}", 1, (0, 1, 0, 0), description="Digs coal") for number in range(9)))
    assert len(index.hybrid("coal", EAST, 6, model=MODEL)) == 6
    assert len(index.hybrid("coal", EAST, 99, model=MODEL)) == 12  # six by each


def test_suggestions_begin_as_typed_then_have_a_word_that_does(trades):
    assert [one.name for one in trades.suggest("mot")] == ["Motor Parts", "Acme Motors"]
    assert [one.id for one in trades.suggest(" ÉTO")] == ["brewery"] == [one.id for one in trades.suggest("eto")]
    assert [one.name for one in trades.suggest("mot", k=1)] == ["Motor Parts"]
    assert [trades.suggest(text) for text in ("", "  ", "otor", "m%", "m_t", "\ud800")] == [[]] * 6


def test_facets_count_what_the_filters_let_through(trades):
    assert trades.facets() == {
        "sector": [("Food", 2), ("Industry", 2)],
        "industry": [("Cars", 2), ("Brewing", 1), ("Wine", 1)],
        "country": [("FR", 2), ("BE", 1), ("DE", 1)],
        "tags": [("b2c", 2), ("craft", 2), ("b2b", 1)],
    }
    assert trades.facets(Filters(country=("DE",)))["industry"] == [("Cars", 1)]
    assert trades.facets(Filters(country=("DE",)))["tags"] == []
    assert trades.facets(top=1)["industry"] == [("Cars", 2)]


def test_values_with_quotes_and_control_characters_are_matched_and_never_syntax(index):
    chance = random.Random(3)
    alphabet = "'\"\\\0%_;-)(\n\t$`é😀 aOR1="
    values = ["".join(chance.choices(alphabet, k=chance.randint(1, 12))) for _ in range(60)]
    values += ["' OR 1=1 --", "'; DROP TABLE companies; --", "\\'", "''", "]", "'])", "/* */"]
    values = sorted(set(values))
    written = [
        company(f"{value}#{number}", 1, name=f"Company {value}", sector=value, tags=(value,))
        for number, value in enumerate(values)
    ]
    assert set(put(index, *written)) == {"indexed"}
    for one in written:
        for filters in (Filters(sector=(one.sector,)), Filters(tags=one.tags)):
            assert found(index.nearest(EAST, 99, model=MODEL, filters=filters)) == [one.id]
        assert list(index.get_many([one.id])) == [one.id]
    assert len(index.nearest(EAST, 99, model=MODEL, filters=Filters(exclude_ids=(written[0].id,)))) == len(written) - 1
    assert index.known(["' OR 1=1 --", "') OR (deleted = false"]) == {}
    assert [one.name for one in index.suggest("' OR 1=1")] == ["Company ' OR 1=1 --"]


# tombstones


def test_a_deleted_company_is_in_no_answer(trades):
    assert put(trades, Document.tombstone("brewery", 2)) == ["deleted"]
    answers = [trades.nearest(EAST, 9, model=MODEL, exact=exact) for exact in (True, False)]
    answers += [trades.search("etoile brewing beers", 9), trades.hybrid("etoile beers", EAST, 9, model=MODEL)]
    answers += [trades.nearest_to("winery", 9)]
    assert all(answers) and not any("brewery" in found(hits) for hits in answers)
    assert trades.suggest("etoile") == [] == trades.facets(Filters(industry=("Brewing",)))["sector"]
    assert "brewery" not in {one.id for batch in trades.scan() for one in batch}
    with pytest.raises(CompanyMissing):
        trades.get("brewery")
    with pytest.raises(CompanyMissing):
        trades.nearest_to("brewery", 3)


def test_a_tombstone_keeps_nothing_but_id_and_version(index):
    put(index, replace(company("a", 3), deleted=True))
    ((kept, embedding),) = state(index).values()
    assert (kept, embedding) == (Document.tombstone("a", 3), None)


def test_purge_removes_the_tombstones_written_before_and_no_company(trades):
    put(trades, Document.tombstone("brewery", 2), Document.tombstone("unheard-of", 2))
    assert trades.purge(3600) == 0
    assert trades.status().tombstones == 2
    assert trades.purge(0) == 2
    trades.refresh()
    assert (trades.status().live, trades.status().tombstones) == (3, 0)
    assert trades.known(["brewery", "unheard-of"]) == {}


def test_what_is_known_is_removed_without_a_tombstone_unless_it_changed_since(index):
    put(index, company("a", 1), company("b", 1), Document.tombstone("c", 1), company("d", 1))
    known = index.known(["a", "b", "c"])
    put(index, company("b", 2))
    assert index.remove(known) == 2
    assert index.remove(known) == index.remove({}) == 0
    assert index.known("abcd").keys() == {"b", "d"}
    assert put(index, company("a", 1), company("c", 2)) == ["indexed", "indexed"]


# the whole of it


def test_status_counts_and_dates(trades):
    put(trades, Document.tombstone("brewery", 8))
    status = trades.status()
    assert (status.live, status.tombstones, status.newest_version) == (3, 1, 8)
    assert (status.model, status.dimension) == (MODEL, DIMENSION)
    assert status.created_at <= status.newest_write <= time.time_ns() // 1000
    assert status.bytes > 0


def test_status_of_an_empty_index_has_no_newest(index):
    status = index.status()
    assert (status.live, status.tombstones, status.newest_version, status.newest_write) == (0, 0, None, None)


def test_an_empty_index_answers_with_nothing(index):
    assert index.nearest(EAST, 3, model=MODEL) == index.search("beer", 3) == index.suggest("a") == []
    assert index.facets() == {"sector": [], "industry": [], "country": [], "tags": []}
    assert list(index.scan()) == []


def test_a_scan_sees_the_state_in_which_it_began(index):
    put(index, *(company(f"c{number:02d}", 1) for number in range(20)))
    scan = index.scan(batch_size=5)
    seen = next(scan)
    assert len(seen) == 5
    put(index, company("new", 1), Document.tombstone("c19", 2), company("c00", 2))
    index.optimise()
    seen += [one for batch in scan for one in batch]
    assert sorted(one.id for one in seen) == [f"c{number:02d}" for number in range(20)]
    assert {one.version for one in seen} == {1}
    assert all(one.embedding.tolist() == [1, 0, 0, 0] for one in seen)


def test_a_scan_since_a_mark_has_all_that_was_written_after_it(index):
    put(index, company("before", 1), company("changed", 1))
    mark = index.mark()
    put(index, company("changed", 2), company("new", 1), Document.tombstone("gone", 1))
    seen = {one.id: one.version for batch in index.scan(tombstones=True, since=mark) for one in batch}
    assert {id: version for id, version in seen.items() if id != "before"} == {"changed": 2, "new": 1, "gone": 1}


def test_a_scan_of_what_is_known_has_every_document(index):
    put(index, *(company(f"c{number}", number) for number in range(7)), Document.tombstone("gone", 9))
    pages = list(index.scan_known(batch_size=3))
    assert [len(page) for page in pages] == [3, 3, 2]
    merged = {id: known for page in pages for id, known in page.items()}
    assert merged == index.known(merged) and len(merged) == 8


def test_a_load_ends_with_everything_searchable(index):
    with index.loading():
        for number in range(5):
            index.write([company(f"c{number}", 1, name=f"Loaded {number}")])
    index.refresh()
    assert len(index.search("loaded", 9)) == len(index.nearest(EAST, 9, model=MODEL)) == 5


def test_optimising_changes_no_answer(trades):
    def answers():
        return state(trades), found(trades.nearest(EAST, 9, model=MODEL)), found(trades.search("cellar cars", 9))

    put(trades, Document.tombstone("parts", 2), company("winery", 2, (0.8, 0.6, 0, 0), name="The Cellar"))
    before = answers()
    trades.optimise()
    trades.refresh()
    assert answers() == before


# a new model


def test_a_successor_is_unseen_until_it_goes_live_and_rollback_brings_the_former_back(index):
    put(index, company("a"))
    successor = index.successor(Spec(OTHER_MODEL, 3))
    new = replace(company("a", embedding=(1, 0, 0)), model=OTHER_MODEL)
    assert put(successor, new) == ["indexed"]
    assert index.spec() == Spec(MODEL, DIMENSION) and index.get("a").model == MODEL
    successor.go_live()
    assert index.spec() == Spec(OTHER_MODEL, 3)  # whoever had it open follows
    assert found(index.nearest(vector(1, 0, 0), 1, model=OTHER_MODEL)) == ["a"]
    assert open_index(index.url).get("a").model == OTHER_MODEL
    with pytest.raises(WrongModel):
        index.write([company("b")])
    assert index.rollback().endswith(f"-{MODEL}-1")
    assert index.spec() == Spec(MODEL, DIMENSION) and index.get("a").model == MODEL


def test_a_successor_begun_before_is_gone_on_with(index):
    index.successor(Spec(OTHER_MODEL, 3)).write([replace(company("a", embedding=(1, 0, 0)), model=OTHER_MODEL)])
    again = open_index(index.url).successor(Spec(OTHER_MODEL, 3))
    assert list(again.known(["a"])) == ["a"]
    assert again.status().physical.endswith(f"-{OTHER_MODEL}-2")
    assert index.successor(Spec("f" * 16, 3)).status().physical.endswith("-3")


def test_the_former_index_can_be_read_beside_the_live_one(index):
    put(index, company("a"))
    assert index.former() is None
    index.successor(Spec(OTHER_MODEL, 3)).go_live()
    former = index.former()
    assert (former.spec(), list(former.known("a"))) == (Spec(MODEL, DIMENSION), ["a"])
    assert index.known("a") == {}
    index.rollback()
    assert index.former() is None and former.spec().model == MODEL


def test_dropping_the_former_leaves_the_live_one_alone(index):
    put(index, company("a"))
    assert index.drop_former() == []
    index.successor(Spec("f" * 16, 3))  # begun, and given up
    successor = index.successor(Spec(OTHER_MODEL, 3))
    put(successor, replace(company("a", embedding=(1, 0, 0)), model=OTHER_MODEL))
    successor.go_live()
    assert [name.rpartition("-")[2] for name in index.drop_former()] == ["1", "2"]
    assert index.former() is None and index.get("a").model == OTHER_MODEL
    with pytest.raises(IndexUnusable, match="no index before"):
        index.rollback()
    assert index.successor(Spec(MODEL, DIMENSION)).status().physical.endswith("-4")


def test_while_a_move_lives_there_is_no_other_and_nothing_is_dropped(index):
    live, successor = index.fixed(), index.successor(Spec(OTHER_MODEL, 3))
    other = open_index(index.url)
    with live.moving(successor):
        with pytest.raises(IndexUnusable, match="is being moved"):
            other.drop_former()
        with pytest.raises(IndexUnusable, match="is being moved"), other.fixed().moving(successor):
            pass
    with other.fixed().moving(successor):
        pass
    assert len(other.drop_former()) == 1


def test_nothing_is_written_to_a_frozen_index_but_by_who_waits(index):
    live, successor = index.fixed(), index.successor(Spec(OTHER_MODEL, DIMENSION))
    other = open_index(index.url)
    with ThreadPoolExecutor(1) as pool:
        with live.moving(successor), live.frozen() as holds:
            writing = pool.submit(other.write, [company("a")])
            time.sleep(0.5)
            assert not writing.done() and live.known(["a"]) == {} and holds()
            assert other.search("company", 9) == []  # reads go on
            put(successor, replace(company("b"), model=OTHER_MODEL))
            successor.go_live()
        with pytest.raises(WrongModel):
            writing.result(30)
    assert live.known(["a"]) == {}


def test_whether_tombstones_were_ever_purged_is_known(index):
    put(index, Document.tombstone("a", 1))
    assert not index.status().purged
    assert index.purge(3600) == 0 and not index.status().purged
    assert index.purge(0) == 1 and index.status().purged


def test_the_first_index_has_nothing_to_go_back_to(index):
    with pytest.raises(IndexUnusable, match="no index before"):
        index.rollback()
