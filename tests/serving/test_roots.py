"""Base paths that a client names: below what the operator named, whatever links and dots lie on the way."""

import pytest

from serving.server.config.roots import OutsideRoots, Roots


def allowed(path, *roots) -> bool:
    try:
        Roots(map(str, roots)).check(str(path))
    except OutsideRoots as error:
        assert repr(str(path)) in str(error) and "--reload_roots" in str(error)
        return False
    return True


def test_a_root_and_what_is_below_it_are_allowed_and_nothing_beside_it(tmp_path):
    root = tmp_path / "models"
    for path in (root, f"{root}/", root / "pause", root / "a" / "b", f"file://{root}/pause", f"{root}/a/../pause"):
        assert allowed(path, root)
    beside = [tmp_path, "/", "", ".", tmp_path / "models2", root / ".." / "other", f"{root}/../models2", "a\0b"]
    urls = [f"file://{tmp_path}/other", f"file://{root}/%2e%2e/other", f"file://elsewhere{root}"]
    for path in (*beside, *urls):
        assert not allowed(path, root)


def test_one_root_of_several_is_enough(tmp_path):
    roots = (tmp_path / "a", "gs://bucket/b")
    assert allowed(tmp_path / "a" / "x", *roots) and allowed("gs://bucket/b/x", *roots)
    assert not allowed(tmp_path / "b" / "x", *roots)


def test_links_are_followed(tmp_path):
    root, outside = tmp_path / "models", tmp_path / "outside"
    root.mkdir()
    outside.mkdir()
    (root / "way_out").symlink_to(outside)
    (root / "loop").symlink_to(root / "loop")
    (tmp_path / "current").symlink_to(root)
    assert not allowed(root / "way_out", root) and not allowed(root / "way_out" / "pause", root)
    assert not allowed(root / "loop" / "pause", root)
    assert allowed(root / "pause", tmp_path / "current") and allowed(tmp_path / "current" / "pause", root)


@pytest.mark.parametrize("path", ["gs://bucket/models", "gs://bucket/models/", "gs://bucket/models/pause/deep"])
def test_a_url_below_the_prefix_is_allowed(path):
    assert allowed(path, "gs://bucket/models") and allowed(path, "gs://bucket/models/")


@pytest.mark.parametrize("path", [
    "gs://bucket/models2", "gs://bucket", "gs://bucket2/models", "s3://bucket/models/x", "/bucket/models", "gs://",
    "gs://bucket/models/../secret", "gs://bucket/models/./x", "gs://bucket/models/%2E%2e/x", "gs://bucket/models/..\\x",
    "file:///bucket/models", "gs:/bucket/models/x",
])  # fmt: skip
def test_a_url_beside_the_prefix_is_not(path):
    assert not allowed(path, "gs://bucket/models")
