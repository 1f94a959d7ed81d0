import logging

import pytest

from common.cpu import CAP, cap_instruction_set, hidden_tiles

TILES = "fpu sse avx512f avx512_bf16 amx_bf16 avx512_fp16 amx_tile amx_int8"


def cpuinfo(flags, level, processors=2):
    """As the kernel writes it, a paragraph for each processor."""
    lines = ["processor\t: {}", "model name\t: Intel(R) Xeon(R) Processor", "cpuid level\t: {}", "wp\t\t: yes"]
    one = "\n".join([*lines, f"flags\t\t: {flags}", "bugs\t\t: spectre_v1", "power management:"])
    return "\n\n".join(one.format(number, level) for number in range(processors)) + "\n\n"


@pytest.fixture
def half_hidden(tmp_path):
    path = tmp_path / "cpuinfo"
    path.write_text(cpuinfo(TILES, 28))
    return path


def test_tiles_whose_leaf_is_cut_off_are_known_by_the_level_of_cpuid():
    assert "cpuid level 28" in (hidden_tiles(cpuinfo(TILES, 28)) or "")
    assert hidden_tiles(cpuinfo(TILES, 29)) is None  # 0x1d, the leaf that tells their size
    assert hidden_tiles(cpuinfo(TILES, 31)) is None


def test_a_cpu_without_tiles_is_left_alone_whatever_its_level():
    assert hidden_tiles(cpuinfo("fpu sse avx2 avx512_bf16", 16)) is None  # AMD Zen 4
    assert hidden_tiles("processor\t: 0\nFeatures\t: fp asimd bf16\n") is None  # ARM names neither
    assert hidden_tiles("") is None


def test_instructions_are_capped_with_one_line_in_the_log(half_hidden, caplog):
    environment: dict[str, str] = {}
    with caplog.at_level(logging.INFO):
        cap_instruction_set(environment, half_hidden)
    assert environment == {CAP: "AVX512_CORE_BF16"}
    assert [record.message.count("\n") for record in caplog.records] == [0]
    assert "AMX" in caplog.text and f"{CAP} is set to AVX512_CORE_BF16" in caplog.text


def test_what_a_person_chose_stays_and_nothing_is_said(half_hidden, caplog):
    environment = {CAP: "AVX2"}
    cap_instruction_set(environment, half_hidden)
    assert environment == {CAP: "AVX2"} and not caplog.records


def test_a_machine_that_tells_nothing_of_its_cpu_is_left_alone(tmp_path, caplog):
    environment: dict[str, str] = {}
    cap_instruction_set(environment, tmp_path / "none")
    assert environment == {} and not caplog.records
