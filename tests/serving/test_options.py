"""The flags of the embedded server, the files behind them, and one line for every mistake in either."""

import logging
import resource
import subprocess
import sys
from pathlib import Path

import pytest
from commands import refusal
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec

from common.command import exit_code
from serving.server.config.files import CORES, METRICS_PATH, Batching, check_models
from serving.server.config.options import parse
from serving.server.config_pb2 import BatchingParameters, MonitoringConfig, PrometheusConfig, SSLConfig


@pytest.fixture
def base(tmp_path):
    (tmp_path / "pause" / "1").mkdir(parents=True)
    return tmp_path / "pause"


@pytest.fixture
def refused(base, capsys):
    """What the server's command line says to these flags and a good base path."""

    def ask(*flags):
        return refusal(capsys, lambda argv: exit_code(lambda: parse(argv)), f"--model_base_path={base}", *flags)

    return ask


def options(base, *flags):
    return parse([f"--model_base_path={base}", *map(str, flags)])


def written(folder, text, name="given.config"):
    path = folder / name
    path.write_text(text)
    return path


def model_config(name, base, platform="tensorflow"):
    return f'config {{ name: "{name}" base_path: "{base}" model_platform: "{platform}" }}'


def models_file(folder, *models):
    return written(folder, "model_config_list {\n" + "\n".join(models) + "\n}", "models.config")


# how many versions


def test_the_newest_version_alone_is_served_unless_more_are_to_be_kept(base):
    for flags, kept in (((), 1), (("--keep_versions", 2), 2)):
        (model,) = options(base, *flags).models.model_config_list.config
        assert model.model_version_policy.latest.num_versions == kept


def test_versions_to_keep_are_a_number_and_a_configuration_has_its_own(base, refused, tmp_path, capsys):
    assert "a number of at least 1 is expected, got '0'" in refused("--keep_versions", "0")
    file = models_file(tmp_path, model_config("pause", base))
    flags = (f"--model_config_file={file}", "--keep_versions=2")
    assert "leave out" in refusal(capsys, lambda argv: exit_code(lambda: parse(argv)), *flags)


# the messages


@pytest.mark.parametrize(
    ("message", "numbers"),
    [
        (SSLConfig, {"server_key": 1, "server_cert": 2, "custom_ca": 3, "client_verify": 4}),
        (PrometheusConfig, {"enable": 1, "path": 2}),
        (MonitoringConfig, {"prometheus_config": 1}),
        (BatchingParameters, {"max_batch_size": 1, "batch_timeout_micros": 2, "max_enqueued_batches": 3,
                              "num_batch_threads": 4, "thread_pool_name": 5, "allowed_batch_sizes": 6,
                              "pad_variable_length_inputs": 7}),
    ],
)  # fmt: skip
def test_config_messages_have_the_names_and_numbers_of_tensorflow_serving(message, numbers):
    found = {field.name: field.number for field in message.DESCRIPTOR.fields}
    assert {name: found.get(name) for name in numbers} == numbers


def test_the_generated_module_is_made_from_the_proto_file():
    source = Path(sys.modules[SSLConfig.__module__].__file__).with_name("config.proto").read_text()
    for message in (SSLConfig, PrometheusConfig, MonitoringConfig, BatchingParameters):
        body = source.partition(f"message {message.DESCRIPTOR.name} {{")[2].partition("}")[0]
        declared = [line.partition(";")[0].split()[-3:] for line in body.splitlines() if " = " in line]
        assert [[f.name, "=", str(f.number)] for f in message.DESCRIPTOR.fields] == declared


# defaults


def test_defaults_are_those_of_tensorflow_serving_but_for_host_name_batching_and_compilation(base):
    given = options(base)
    assert (given.host, given.port, given.rest_port) == ("127.0.0.1", 8500, None)
    assert (given.poll_seconds, given.grpc_threads, given.tls) == (1, 4 * CORES, None)
    assert (given.load_retries, given.retry_seconds, given.rest_timeout_seconds) == (5, 60, 30)
    assert (given.batching, given.compile) == (Batching(256, 0.0, 256, CORES), True)
    assert given.reload_roots is None
    (model,) = given.models.model_config_list.config
    assert (model.name, model.base_path, model.model_platform) == ("pause", str(base), "tensorflow")


@pytest.mark.parametrize("flags", [["--port=9000"], ["--port", "9000"]])
def test_a_value_follows_its_flag_with_or_without_an_equals_sign(base, flags):
    assert options(base, *flags).port == 9000


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ([], True),
        (["--xla_cpu_compilation_enabled"], True),
        (["--xla_cpu_compilation_enabled=true"], True),
        (["--xla_cpu_compilation_enabled=True", "--port", "1"], True),
        (["--xla_cpu_compilation_enabled=0"], False),
        (["--xla_cpu_compilation_enabled=false"], False),
    ],
)
def test_a_switch_is_turned_on_by_its_name_and_off_by_false(base, flags, expected):
    assert options(base, *flags).compile is expected


def test_units_of_flags_become_seconds(base):
    given = options(base, "--load_retry_interval_micros=500000", "--rest_api_timeout_in_ms=1500",
                    "--file_system_poll_wait_seconds=0.25")  # fmt: skip
    assert (given.retry_seconds, given.rest_timeout_seconds, given.poll_seconds) == (0.5, 1.5, 0.25)


def test_a_file_flag_without_a_value_counts_as_left_out(base):
    given = options(base, "--ssl_config_file=", "--model_config_file=", "--batching_parameters_file=")
    assert given == options(base)


# models


def test_a_config_file_names_several_models_with_policies_and_labels(tmp_path, base):
    policy = "model_version_policy { specific { versions: 1 } } version_labels { key: 'stable' value: 1 }"
    file = models_file(tmp_path, model_config("pause", base)[:-1] + policy + "}", model_config("later", "/nowhere"))
    given = parse(["--model_config_file", str(file)])
    pause, later = given.models.model_config_list.config
    assert list(pause.model_version_policy.specific.versions) == [1]
    assert dict(pause.version_labels) == {"stable": 1}
    assert later.name == "later"


def test_a_config_file_is_read_again_where_that_is_asked_for(tmp_path, base):
    file = models_file(tmp_path, model_config("pause", base))
    flags = [f"--model_config_file={file}"]
    assert parse(flags).models_file is None
    given = parse([*flags, "--model_config_file_poll_wait_seconds=0.5"])
    assert (given.models_file, given.models_file_seconds) == (file, 0.5)


def test_the_older_way_of_naming_the_platform_is_taken(tmp_path, base):
    file = models_file(tmp_path, f'config {{ name: "pause" base_path: "{base}" model_type: TENSORFLOW }}')
    assert parse([f"--model_config_file={file}"]).models.model_config_list.config[0].name == "pause"


def test_a_remote_base_path_is_not_looked_at_before_the_server_runs():
    assert options("gs://nobody/pause").models.model_config_list.config[0].base_path == "gs://nobody/pause"


def test_no_models_at_all_may_be_asked_for_while_the_server_runs():
    check_models(options("gs://nobody/pause").models.__class__())


BAD_MODELS = {
    "listed twice": lambda base: [model_config("pause", base)] * 2,
    "model_platform 'torch'": lambda base: [model_config("pause", base, "torch")],
    "model_platform ''": lambda base: [model_config("pause", base, "")],
    "both a name and a base_path": lambda base: [model_config("", base)],
    "holds no version": lambda base: [model_config("pause", base.parent), model_config("other", "/nowhere")],
    "model_config_list is empty": lambda base: [],
    'line 3: Message type "tensorflow.serving.ModelConfig" has no field named "bas_path"': lambda base: [
        model_config("pause", base),
        'config { name: "b" bas_path: "/x" }',
    ],
}


@pytest.mark.parametrize("reason", BAD_MODELS)
def test_a_models_file_with_a_mistake_is_refused_in_one_line(tmp_path, base, capsys, reason):
    file = models_file(tmp_path, *BAD_MODELS[reason](base))
    assert reason in refusal(capsys, lambda argv: exit_code(lambda: parse(argv)), "--model_config_file", file)


def test_a_custom_model_config_is_refused(tmp_path, capsys):
    file = written(tmp_path, "custom_model_config { }")
    assert "custom_model_config" in refusal(
        capsys, lambda argv: exit_code(lambda: parse(argv)), "--model_config_file", file
    )


@pytest.mark.parametrize(
    ("kind", "reason"),
    [
        ("none", "holds no version"),
        ("empty", "holds no version"),
        ("strangers", "holds no version"),
        ("file", "cannot be read"),
    ],
)
def test_a_base_path_without_a_version_is_refused(tmp_path, capsys, kind, reason):
    (tmp_path / "empty").mkdir()
    (tmp_path / "strangers" / "7.withdrawn").mkdir(parents=True)
    (tmp_path / "strangers" / "8").touch()
    (tmp_path / "file").touch()
    said = refusal(capsys, lambda argv: exit_code(lambda: parse(argv)), "--model_base_path", tmp_path / kind)
    assert str(tmp_path / kind) in said and reason in said


def test_either_a_base_path_or_a_config_file_is_needed_not_both(tmp_path, base, capsys, refused):
    file = models_file(tmp_path, model_config("pause", base))
    assert "--model_base_path or --model_config_file" in refusal(capsys, lambda argv: exit_code(lambda: parse(argv)))
    assert "leave out" in refused("--model_config_file", file)


# flags that cannot be


@pytest.mark.parametrize(
    ("flags", "reason"),
    [
        (["--modle_name", "x"], "unrecognized arguments: --modle_name x"),
        (["--rest_api", "1"], "unrecognized arguments: --rest_api 1"),
        (["--port", "grpc"], "argument --port: a number from 0 to 65535 is expected, got 'grpc'"),
        (["--port", "65536"], "got '65536'"),
        (["--port=-1"], "got '-1'"),
        (["--port=8501", "--rest_api_port=8501"], "both 8501"),
        (["--enable_batching=maybe"], "true or false is expected, got 'maybe'"),
        (["--max_num_load_retries=-1"], "at least 0"),
        (["--load_retry_interval_micros=-1"], "at least 0"),
        (["--file_system_poll_wait_seconds=-1"], "at least 0"),
        (["--file_system_poll_wait_seconds=nan"], "at least 0"),
        (["--file_system_poll_wait_seconds=inf"], "at least 0"),
        (["--grpc_max_threads=0"], "at least 1"),
        (["--rest_api_timeout_in_ms=0"], "at least 1"),
        (["--batching_parameters_file=x", "--enable_batching=false"], "contradict"),
        (["--model_config_file_poll_wait_seconds=1"], "with --model_config_file only"),
    ],
)
def test_a_flag_that_cannot_be_is_refused_in_one_line(refused, flags, reason):
    assert reason in refused(*flags)


FILE_FLAGS = ("--batching_parameters_file", "--ssl_config_file", "--monitoring_config_file")


@pytest.mark.parametrize("flag", FILE_FLAGS)
def test_a_file_that_is_missing_a_folder_not_text_or_misspelt_is_named_with_its_flag(tmp_path, refused, flag):
    assert refused(flag, tmp_path / "none").startswith(f"{flag} {tmp_path / 'none'} cannot be read: No such file")
    assert "cannot be read: Is a directory" in refused(flag, tmp_path)
    (tmp_path / "binary").write_bytes(b"\xff\xfe\x00")
    assert "is not text" in refused(flag, tmp_path / "binary")
    misspelt = written(tmp_path, "\n\nmax_bath_size { value: 1 }")
    assert f"{flag} {misspelt}, line 3: " in refused(flag, misspelt)


def test_a_mistake_costs_less_than_a_second_because_tensorflow_is_not_imported():
    code = "import sys; from serving.server.config.options import parse\ntry: parse(sys.argv[1:])\n"
    code += "finally: print('tensorflow' in sys.modules)"
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run([sys.executable, "-c", code, "--port", "x"], capture_output=True, text=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    assert (ended.returncode, ended.stdout) == (2, "False\n"), ended.stderr
    # Time on the processor: other work on the machine does not count.
    assert after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime < 1


# batching

SPLIT = " enable_large_batch_splitting { value: true }"


def test_batching_is_off_when_asked(base):
    assert options(base, "--enable_batching=false").batching is None


def test_batching_parameters_size_runs_and_queue(tmp_path, base, caplog):
    sizes = "max_batch_size { value: 64 } batch_timeout_micros { value: 2500 } max_enqueued_batches { value: 8 }"
    file = written(tmp_path, sizes + "num_batch_threads { value: 3 } allowed_batch_sizes: 64")
    with caplog.at_level(logging.WARNING):
        given = options(base, "--batching_parameters_file", file)
    assert given.batching == Batching(max_texts=64, wait_seconds=0.0025, max_runs_queued=8, threads=3)
    assert "allowed_batch_sizes is ignored" in caplog.text


def test_parameters_left_out_keep_their_defaults_and_zero_is_not_left_out(tmp_path, base):
    file = written(tmp_path, "batch_timeout_micros { value: 0 }")
    assert options(base, "--batching_parameters_file", file).batching == Batching()


def test_a_run_is_as_large_as_the_execution_where_requests_are_split(tmp_path, base):
    sizes = "max_batch_size { value: 512 } max_execution_batch_size { value: 32 }"
    whole = written(tmp_path, sizes, "whole.config")
    split = written(tmp_path, sizes + SPLIT, "split.config")
    assert options(base, "--batching_parameters_file", whole).batching == Batching(max_texts=512)
    assert options(base, "--batching_parameters_file", split).batching == Batching(max_texts=32)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("max_batch_size { value: 0 }", "max_batch_size must be at least 1, got 0"),
        ("batch_timeout_micros { value: -1 }", "batch_timeout_micros must be at least 0, got -1"),
        ("max_enqueued_batches { value: -5 }", "max_enqueued_batches must be at least 1, got -5"),
        ("num_batch_threads { value: 0 }", "num_batch_threads must be at least 1, got 0"),
        (
            "max_batch_size { value: 8 } max_execution_batch_size { value: 9 }" + SPLIT,
            "max_execution_batch_size is above max_batch_size",
        ),
    ],
)
def test_batching_parameters_that_make_no_sense_are_refused(tmp_path, refused, text, reason):
    assert reason in refused("--batching_parameters_file", written(tmp_path, text))


# TLS


def ssl_file(folder, **fields):
    escaped = {name: value.replace("\n", "\\n") for name, value in fields.items()}
    return written(folder, "\n".join(f'{name}: "{value}"' for name, value in escaped.items()), "ssl.config")


def test_key_and_certificate_may_stand_in_the_file_as_tensorflow_serving_has_it(tmp_path, base, certificates):
    key, certificate = certificates.server_key.read_text(), certificates.server.read_text()
    tls = options(base, "--ssl_config_file", ssl_file(tmp_path, server_key=key, server_cert=certificate)).tls
    assert (tls.key, tls.certificate) == (key.strip().encode(), certificate.strip().encode())
    assert (tls.authority, tls.verify_client) == (None, False)
    assert "PRIVATE" not in repr(tls)


def test_key_and_certificate_may_be_paths_beside_the_file(tmp_path, base, certificates):
    (tmp_path / "key.pem").write_bytes(certificates.server_key.read_bytes())
    file = ssl_file(tmp_path, server_key="key.pem", server_cert=str(certificates.server),
                    custom_ca=str(certificates.authority))  # fmt: skip
    file.write_text(file.read_text() + "\nclient_verify: true")
    tls = options(base, "--ssl_config_file", file).tls
    assert tls.key == certificates.server_key.read_bytes()
    assert (tls.authority, tls.verify_client) == (certificates.authority.read_bytes(), True)


def locked_key(folder):
    lock = serialization.BestAvailableEncryption(b"secret")
    key = ec.generate_private_key(ec.SECP256R1())
    path = folder / "locked.pem"
    path.write_bytes(key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, lock))
    return str(path)


BAD_TLS = {
    "server_key is missing": lambda folder, made: {"server_cert": str(made.server)},
    "server_cert is missing": lambda folder, made: {"server_key": str(made.server_key)},
    "cannot be read: No such file": lambda folder, made: {"server_key": "none.pem", "server_cert": str(made.server)},
    "server_key is not usable PEM": lambda folder, made: {
        "server_key": str(made.server),
        "server_cert": str(made.server),
    },
    "server_cert is not usable PEM": lambda folder, made: {
        "server_key": str(made.server_key),
        "server_cert": "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n",
    },
    "without a password": lambda folder, made: {"server_key": locked_key(folder), "server_cert": str(made.server)},
    "does not belong": lambda folder, made: {"server_key": str(made.client_key), "server_cert": str(made.server)},
    "custom_ca is not usable PEM": lambda folder, made: {
        "server_key": str(made.server_key),
        "server_cert": str(made.server),
        "custom_ca": str(made.server_key),
    },
}


@pytest.mark.parametrize("reason", BAD_TLS)
def test_tls_that_no_client_could_use_is_refused(tmp_path, refused, certificates, reason):
    said = refused("--ssl_config_file", ssl_file(tmp_path, **BAD_TLS[reason](tmp_path, certificates)))
    assert reason in said and "PRIVATE" not in said


def test_asking_clients_for_certificates_needs_an_authority(tmp_path, refused, certificates):
    file = ssl_file(tmp_path, server_key=str(certificates.server_key), server_cert=str(certificates.server))
    file.write_text(file.read_text() + "\nclient_verify: true")
    assert "client_verify needs custom_ca" in refused("--ssl_config_file", file)


# reload by gRPC


def test_reload_is_bound_to_the_base_paths_of_the_start_and_to_the_roots_named_beside_them(tmp_path, base):
    assert options(base, "--allow_reload_by_grpc").reload_roots == (str(base),)
    file = models_file(tmp_path, model_config("pause", base), model_config("later", "gs://bucket/later"))
    given = parse([f"--model_config_file={file}", "--allow_reload_by_grpc", "--reload_roots=/models, gs://bucket/more"])
    assert given.reload_roots == (str(base), "gs://bucket/later", "/models", "gs://bucket/more")
    assert options(base, "--host=0.0.0.0").reload_roots is None


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "", "nobody.invalid"])
def test_reload_from_other_machines_needs_certificates_of_clients(tmp_path, base, refused, certificates, host):
    said = refused("--allow_reload_by_grpc", f"--host={host}")
    assert "client_verify" in said and "--ssl_config_file" in said and "127.0.0.1" in said
    fields = {"server_key": str(certificates.server_key), "server_cert": str(certificates.server)}
    encrypted = ssl_file(tmp_path, **fields, custom_ca=str(certificates.authority))
    flags = ("--allow_reload_by_grpc", f"--host={host}", "--ssl_config_file", encrypted)
    assert "client_verify" in refused(*flags)  # encrypted is not enough: whoever comes is let in
    encrypted.write_text(encrypted.read_text() + "\nclient_verify: true")
    assert options(base, *flags).reload_roots == (str(base),)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_reload_from_this_machine_needs_no_certificate(base, host):
    assert options(base, "--allow_reload_by_grpc", f"--host={host}").reload_roots == (str(base),)


def test_roots_without_reload_are_a_mistake(refused):
    assert "--allow_reload_by_grpc" in refused("--reload_roots=/models")


# metrics


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (None, METRICS_PATH),
        ("prometheus_config { enable: true }", METRICS_PATH),
        ('prometheus_config { enable: true path: "/metrics" }', "/metrics"),
        ('prometheus_config { enable: false path: "/metrics" }', None),
        ("", None),
    ],
)
def test_metrics_are_served_beside_rest_unless_the_file_moves_or_ends_them(tmp_path, base, text, expected):
    flags = [] if text is None else ["--monitoring_config_file", written(tmp_path, text)]
    assert options(base, "--rest_api_port=8501", *flags).metrics_path == expected


def test_without_rest_there_are_no_metrics_and_asking_for_them_is_a_mistake(tmp_path, base, refused):
    assert options(base).metrics_path is None
    assert "--rest_api_port" in refused(
        "--monitoring_config_file", written(tmp_path, "prometheus_config { enable: true }")
    )


def test_a_metrics_path_begins_with_a_slash(tmp_path, refused):
    file = written(tmp_path, 'prometheus_config { enable: true path: "metrics" }')
    assert "begin with /" in refused("--rest_api_port=8501", "--monitoring_config_file", file)
