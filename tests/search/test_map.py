"""Positions of a neighbourhood."""

import numpy as np
import pytest

from search.ranking.market_map import positions


def test_points_on_a_line_lie_on_the_first_axis_at_their_distances():
    # Centred: -2, -1, 3 along (0, 1, 0); the largest is 3.
    plane = positions(np.array([[5, 1, 0], [5, 2, 0], [5, 6, 0]], np.float32))
    assert plane[:, 0].tolist() == pytest.approx([-2 / 3, -1 / 3, 1.0])
    assert plane[:, 1].tolist() == pytest.approx([0, 0, 0], abs=1e-7)


def test_both_axes_have_one_scale():
    # A cross with arms of 4 and 1.
    plane = positions(np.array([[4, 0], [-4, 0], [0, 1], [0, -1]], np.float32))
    assert np.abs(plane).max(axis=0).tolist() == pytest.approx([1.0, 0.25])


def test_the_same_companies_are_at_the_same_place_whatever_their_order():
    vectors = np.random.default_rng(5).normal(size=(40, 8)).astype(np.float32)
    order = np.random.default_rng(6).permutation(40)
    np.testing.assert_allclose(positions(vectors)[order], positions(vectors[order]), atol=1e-5)


@pytest.mark.parametrize("vectors", [np.zeros((0, 4)), np.ones((1, 4)), np.ones((5, 4)), np.ones((3, 1))])
def test_too_few_or_equal_ones_are_in_the_middle(vectors):
    assert positions(vectors.astype(np.float32)).tolist() == [[0, 0]] * len(vectors)


def test_the_map_around_a_company_has_it_and_its_neighbours(client):
    found = client.get("/v1/map", params={"id": "air-a"}).json()
    assert found["anchor"] == "air-a"
    points = {point["id"]: point for point in found["points"]}
    assert points.keys() == {"air-a", "air-b", "ship", "bank"}
    assert points["air-a"]["score"] == 1.0
    assert points["ship"]["score"] == pytest.approx(0.6, abs=1e-5)
    assert (points["ship"]["name"], points["ship"]["sector"]) == ("Gamma Ferries", "Transport")
    assert max(max(abs(point["x"]), abs(point["y"])) for point in points.values()) == pytest.approx(1.0)
    assert client.get("/v1/map", params={"id": "air-a"}).json() == found


def test_the_map_takes_filters_and_a_number(client):
    def around(**more):
        found = client.get("/v1/map", params={"id": "air-a", **more}).json()["points"]
        return [point["id"] for point in found]

    assert around(sector="Finance") == ["air-a", "bank"]
    assert around(k=1) == ["air-a", "air-b"]


def test_a_question_has_a_map_without_an_anchor(client):
    found = client.post("/v1/map", json={"text": "money", "k": 300}).json()
    assert found["anchor"] is None
    assert {point["id"] for point in found["points"]} == {"air-a", "air-b", "ship", "bank"}


def test_a_map_of_nothing_is_empty(client):
    found = client.post("/v1/map", json={"text": "money", "filters": {"sector": ["none"]}})
    assert found.json() == {"points": [], "anchor": None}
