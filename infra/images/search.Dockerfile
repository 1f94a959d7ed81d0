# The search service and its page.
#
#     docker build --file infra/images/search.Dockerfile --tag pause-search .
#     docker run --init --rm --read-only --tmpfs /tmp --publish 8000:8000 pause-search \
#         --host 0.0.0.0 --index https://elasticsearch:9200/companies --serving serving:8500

FROM python:3.11.14-slim-bookworm AS packages
COPY infra/images/search.lock /tmp/packages.lock
# --no-deps: the lock is complete, and `pip check` proves it. The service has no use for pip itself.
RUN python -m venv --without-pip /opt/venv \
    && python -m pip --python /opt/venv/bin/python install --no-cache-dir --no-deps --requirement /tmp/packages.lock \
    && python -m pip --python /opt/venv/bin/python check
COPY common /opt/pause/common
COPY model /opt/pause/model
COPY serving /opt/pause/serving
COPY index /opt/pause/index
COPY pipelines /opt/pause/pipelines
COPY search /opt/pause/search
COPY infra/images/health.py /opt/pause/
# On a read-only root nobody could compile them later.
RUN python -m compileall -q /opt/pause

FROM python:3.11.14-slim-bookworm
ARG RUN_AS=65534:65534
COPY --from=packages /opt/venv /opt/venv
COPY --from=packages /opt/pause /opt/pause

# Relative paths are below /data: an embedded index, where there is one. Open to all, since any user may be given by
# whoever runs it; a volume made here takes that over.
RUN mkdir -p /data && chmod 1777 /data
WORKDIR /data

ENV PATH=/opt/venv/bin:/usr/local/bin:/usr/bin:/bin \
    PYTHONPATH=/opt/pause \
    PYTHONUNBUFFERED=1 \
    PYTHONDONTWRITEBYTECODE=1 \
    HOME=/tmp

EXPOSE 8000

# By number, because Kubernetes' runAsNonRoot cannot look names up
USER ${RUN_AS}

HEALTHCHECK --interval=10s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "/opt/pause/health.py", "http://127.0.0.1:8000/healthz"]

ENTRYPOINT ["python", "-m", "search"]
