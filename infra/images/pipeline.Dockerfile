# Launcher and worker of the Beam pipeline in one image: every package is in it, nothing is installed as a job starts.
#
#     docker build --file infra/images/pipeline.Dockerfile --tag pause-pipeline .
#
# For Dataflow add `--build-arg RUN_AS=0:0`: its virtual machines mount folders into the container that are root's
# (/var/opt/google, /var/log/dataflow). Everywhere else the image runs as nobody.

# Of these two a single program each is taken. Where a registry is out of reach, `--build-context launcher=FOLDER` puts
# a folder that holds it at the same path, or another image (docker-image://NAME), in its place.
FROM apache/beam_python3.11_sdk:2.77.0 AS beam
FROM gcr.io/dataflow-templates-base/python311-template-launcher-base:20230622_RC00 AS launcher

FROM python:3.11.14-slim-bookworm AS packages
COPY infra/images/pipeline.lock /tmp/packages.lock
# --no-deps: the lock is complete, and `pip check` proves it. Beam's boot program asks for pip, so it stays.
RUN python -m venv /opt/venv \
    && /opt/venv/bin/python -m pip install --no-cache-dir --no-deps --requirement /tmp/packages.lock \
    && /opt/venv/bin/python -m pip check
COPY common /opt/pause/common
COPY model /opt/pause/model
COPY serving /opt/pause/serving
COPY index /opt/pause/index
COPY pipelines /opt/pause/pipelines
COPY infra/images/health.py infra/images/launch.py /opt/pause/
# On a read-only root nobody could compile them later.
RUN python -m compileall -q /opt/pause

FROM python:3.11.14-slim-bookworm
ARG RUN_AS=65534:65534
COPY --from=beam /opt/apache/beam/boot /opt/apache/beam/boot
COPY --from=launcher /opt/google/dataflow/python_template_launcher /opt/google/dataflow/python_template_launcher
COPY --from=packages /opt/venv /opt/venv
COPY --from=packages /opt/pause /opt/pause

# Relative paths are below /data, and the launcher's log is in the other: on a read-only root, volumes or --tmpfs. Open
# to all, since any user may be given by whoever runs it; a volume made here takes that over.
RUN mkdir -p /data /var/log/dataflow/template_launcher && chmod 1777 /data /var/log/dataflow/template_launcher
WORKDIR /data

# Boot would make a second environment on the root file system, one without these packages.
ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONPATH=/opt/pause \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp \
    RUN_PYTHON_SDK_IN_DEFAULT_ENVIRONMENT=1 \
    FLEX_TEMPLATE_PYTHON_PY_FILE=/opt/pause/launch.py

EXPOSE 9400

# By number, because Kubernetes' runAsNonRoot cannot look names up
USER ${RUN_AS}

HEALTHCHECK --interval=30s --timeout=5s --start-period=60s --retries=3 CMD ["python", "/opt/pause/health.py"]

# A runner starts workers by this; jobs are started by `python -m pipelines.encode`, templates by Google's launcher.
ENTRYPOINT ["/opt/apache/beam/boot"]
