import shutil
import subprocess
from pathlib import Path

import pytest

from infra.checks import command_lines
from infra.checks.command_lines import command_line, is_command
from infra.checks.documents import CHECKS, Project, anchors, findings, pieces

ROOT = Path(__file__).parents[3]


@pytest.fixture(scope="module")
def tree(tmp_path_factory) -> Path:
    """A copy of what git knows or would take."""
    copy = tmp_path_factory.mktemp("project")
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    for name in subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=True).stdout.splitlines():
        if (ROOT / name).is_file():
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, copy / name)
    return copy


def test_all_documents_name_what_exists():
    documents = Project(ROOT).documents()
    assert {"README.md", "docs/architecture.md", "docs/operations.md", "infra/cost/README.md"} <= set(documents)
    assert findings(ROOT) == []


PLANTED = {
    "`python -m index stauts --index URL`": "`python -m index` has no subcommand 'stauts'",
    "```sh\npython -m index status|drp --index URL\n```": "has no subcommand 'drp'",
    "`python -m index status --older-than 3d --index URL`": "`python -m index` has no flag --older-than",
    "```sh\npython -m search --index URL \\\n    --prot 8000\n```": "`python -m search` has no flag --prot",
    "`python -m pipelines.encode --runner=DirectRunner --inptu a.jsonl`": "has no flag --inptu",
    "`python -m infra.costs --companies 3`": "`python -m infra.costs` is no command",
    "`python -m common.command`": "`python -m common.command` is no command",
    "with `--keep_version 2` it keeps two": "no command has the flag --keep_version",
    "```sh\nmake demo    # and make more of it\nmake clena\n```": "`make clena` is no target of the Makefile",
    "then `make reproduc`": "`make reproduc` is no target of the Makefile",
    "```sh\nmake demo INDX=lance\n```": "`make demo INDX=` is a variable that the Makefile does not know",
    "set PAUSE_ES_PASWORD to it": "nothing reads the environment variable PAUSE_ES_PASWORD",
    "`OTEL_EXPORTER_ENDPONT=host`": "nothing reads the environment variable OTEL_EXPORTER_ENDPONT",
    "see `infra/cost/prises.toml`": "there is no infra/cost/prises.toml",
    "the step is in `transforms/encodes.py`": "there is no transforms/encodes.py",
    "see [there](../serving/REDME.md)": "the link to ../serving/REDME.md leads nowhere",
    "see [there](../serving/README.md#metrix)": "the link to ../serving/README.md#metrix leads to no heading",
}


@pytest.mark.parametrize(("planted", "said"), PLANTED.items())
def test_a_planted_mistake_is_found_where_it_stands(tree, planted, said):
    document = tree / "docs" / "architecture.md"
    usual = document.read_text()
    (check,) = CHECKS
    before = check.run(tree)
    document.write_text(f"{usual}\n{planted}\n")
    try:
        new = [line for line in check.run(tree) if line not in before]
    finally:
        document.write_text(usual)
    assert len(new) == 1 and new[0].startswith("docs/architecture.md: ") and said in new[0]


def test_a_document_of_any_room_is_read(tree):
    for name in ("serving/README.md", "infra/cost/README.md", "README.md"):
        file = tree / name
        usual = file.read_text()
        file.write_text(usual + "\n`make nothing`\n")
        assert any(line.startswith(f"{name}: `make nothing`") for line in findings(tree))
        file.write_text(usual)


def test_what_is_not_ours_is_left_alone(tree):
    document = tree / "docs" / "architecture.md"
    usual = document.read_text()
    before = findings(tree)
    document.write_text(
        usual + "\n`python -m pip install --upgrade uv`, `kubectl apply --filename=infra/x.yaml`, `gs://bucket/a.py`,\n"
        "`build/demo/x.py`, `python -m search.keys add --file keys`, `python -m benchmarks NAME`, PAUSE_ES_*,\n"
        "`python -m pipelines.encode --runner=DataflowRunner --temp_location=gs://B/temp --streaming`\n"
    )
    assert findings(tree) == before
    document.write_text(usual)


def test_a_command_is_asked_and_not_run():
    known = command_line("index")
    assert known is not None and {"status", "create", "purge", "drop"} == set(known.subcommands)
    assert "--older-than" in known.accepted(["purge"]) and "--older-than" not in known.accepted(["status"])
    beam = command_line("pipelines.encode")
    assert beam is not None and {"--dead_letters", "--temp_location", "--runner"} <= beam.flags
    assert is_command(ROOT, "infra.cost") and not is_command(ROOT, "infra.cost.rates")


def test_a_command_of_another_environment_is_read_instead(tmp_path, monkeypatch):
    monkeypatch.setattr(command_lines, "ROOT", tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    (tmp_path / "elsewhere").mkdir()
    command = tmp_path / "elsewhere" / "made.py"
    command.write_text('import no_such_package\nparser.add_argument(\n    "--check", action="store_true")\n')
    known = command_line("elsewhere.made")
    assert known is not None and known.flags == {"-h", "--help", "--check"}
    (tmp_path / "elsewhere" / "broken.py").write_text("import elsewhere.nothing\n")
    with pytest.raises(ModuleNotFoundError):
        command_line("elsewhere.broken")


def test_code_is_read_from_blocks_and_spans():
    text = "a `b c` d\n```sh\npython -m x \\\n    --y\n```\nand `one that\ngoes on`\n"
    assert [piece for piece in pieces(text) if piece] == ["python -m x  --y", "b c", "one that goes on"]
    assert anchors("# Back up, restore: how?\n## `--x` flags\n") == {"back-up-restore-how", "--x-flags"}
