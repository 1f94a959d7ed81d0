"""Models changed by gRPC while the server runs: by nobody unless its operator says so, and only within bounds."""

import shutil

import grpc
import pytest
from embedded import EmbeddedServer
from google.protobuf import text_format
from tensorflow_serving.apis import get_model_status_pb2, model_management_pb2, model_service_pb2_grpc

from serving.embedded import EmbeddedServer as Embedded

UNCOMPILED = "--xla_cpu_compilation_enabled=false"
SOON = 60  # seconds


def request_for(*models) -> model_management_pb2.ReloadConfigRequest:
    """Of (name, base path)."""
    request = model_management_pb2.ReloadConfigRequest()
    request.config.model_config_list.SetInParent()
    for name, path in models:
        request.config.model_config_list.config.add(name=name, base_path=str(path), model_platform="tensorflow")
    return request


def refused(call, request) -> tuple[str, str]:
    with pytest.raises(grpc.RpcError) as caught:
        call(request, timeout=SOON)
    return caught.value.code().name, caught.value.details()


def state(stub, name) -> list[tuple[int, int]]:
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = name
    return [(each.version, each.state) for each in stub.GetModelStatus(request, timeout=SOON).model_version_status]


def test_nobody_reloads_a_server_that_was_not_told_so(server, base, tmp_path, victim):
    broken = tmp_path / "broken"
    (broken / "7").mkdir(parents=True)
    requests = [request_for(("pause", base)), request_for(("other", base)), request_for(),
                request_for((str(victim.parent), broken)), model_management_pb2.ReloadConfigRequest()]  # fmt: skip
    with grpc.insecure_channel(server.address) as channel:
        stub = model_service_pb2_grpc.ModelServiceStub(channel)
        before = state(stub, "pause")
        for request in requests:
            code, details = refused(stub.HandleReloadConfigRequest, request)
            assert code == "PERMISSION_DENIED" and "--allow_reload_by_grpc" in details
        assert state(stub, "pause") == before
        assert refused(stub.GetModelStatus, status_request("other"))[0] == "NOT_FOUND"
    assert (victim / "letters.txt").read_text() == "kept"


def status_request(name) -> get_model_status_pb2.GetModelStatusRequest:
    request = get_model_status_pb2.GetModelStatusRequest()
    request.model_spec.name = name
    return request


def test_reload_takes_models_from_its_roots_alone_and_removes_nothing(exports, base, tmp_path, victim):
    root, outside = tmp_path / "root", tmp_path / "outside"
    for place in (root / "second", outside / "third"):
        shutil.copytree(exports[1], place / "1")
    (root / "way_out").symlink_to(outside / "third")
    (root / "broken" / "7").mkdir(parents=True)
    flags = (UNCOMPILED, "--allow_reload_by_grpc", f"--reload_roots={root}")
    with EmbeddedServer(base, *flags, rest=False) as server, grpc.insecure_channel(server.address) as channel:
        stub = model_service_pb2_grpc.ModelServiceStub(channel)
        reload, both = stub.HandleReloadConfigRequest, [("pause", base), ("second", root / "second")]
        assert reload(request_for(*both), timeout=SOON).status.error_code == 0
        loaded = state(stub, "second")
        assert [version for version, _ in loaded] == [1]
        for path in (outside / "third", root / "way_out", f"{root}/../outside/third", f"file://{outside}/third"):
            code, details = refused(reload, request_for(*both, ("third", path)))
            assert code == "INVALID_ARGUMENT" and "is not below" in details
        for name in (victim.parent, "../victim", "..", ""):
            assert refused(reload, request_for(*both, (str(name), root / "broken")))[0] == "INVALID_ARGUMENT"
        assert refused(reload, request_for(*both, ("broken", root / "broken")))[0] == "FAILED_PRECONDITION"
        assert state(stub, "second") == loaded
    assert (victim / "letters.txt").read_text() == "kept"
    assert (root / "second" / "1").is_dir() and (base / "1").is_dir()


def test_reload_on_all_interfaces_is_for_those_with_a_certificate(base, certificates, tmp_path):
    config = tmp_path / "ssl.config"
    config.write_text(
        f'server_key: "{certificates.server_key}" server_cert: "{certificates.server}"\n'
        f'custom_ca: "{certificates.authority}" client_verify: true'
    )
    flags = (UNCOMPILED, "--host=0.0.0.0", "--allow_reload_by_grpc", "--ssl_config_file", str(config))
    authority = certificates.authority.read_bytes()
    mine = (certificates.client_key.read_bytes(), certificates.client.read_bytes())
    with EmbeddedServer(base, *flags, rest=False) as server:
        for own, code in ((mine, "OK"), ((None, None), "UNAVAILABLE")):
            credentials = grpc.ssl_channel_credentials(authority, *own)
            with grpc.secure_channel(server.address, credentials) as channel:
                stub = model_service_pb2_grpc.ModelServiceStub(channel)
                if code == "OK":
                    stub.HandleReloadConfigRequest(request_for(("pause", base)), timeout=SOON)
                else:
                    assert refused(stub.HandleReloadConfigRequest, request_for())[0] == code


def test_the_operators_own_file_is_read_again_and_names_any_base_path(base, exports, tmp_path, victim):
    shutil.copytree(exports[1], tmp_path / "elsewhere" / "1")
    file = tmp_path / "models.config"

    def write(*models) -> None:
        file.with_suffix(".new").write_text(text_format.MessageToString(request_for(*models).config))
        file.with_suffix(".new").rename(file)

    write(("pause", base))
    flags = ("--model_config_file", str(file), "--model_config_file_poll_wait_seconds=0.1", UNCOMPILED)
    with Embedded(*flags) as server, grpc.insecure_channel(server.address) as channel:
        stub = model_service_pb2_grpc.ModelServiceStub(channel)
        write(("pause", base), ("second", tmp_path / "elsewhere"))
        server.wait_for("the models of .* are served")
        loaded = state(stub, "second")
        write(("pause", base), (str(victim.parent), tmp_path / "elsewhere"))
        server.wait_for("is not taken, the models stay as they were: .* cannot be named")
        assert state(stub, "second") == loaded
        assert refused(stub.HandleReloadConfigRequest, request_for())[0] == "PERMISSION_DENIED"
    assert (victim / "letters.txt").read_text() == "kept"
