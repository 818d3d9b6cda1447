# One image for every role: `poller ...` and `celery -A poller ...`. It contains no secrets.
# The library that makes plots zoom; hatch_build.py checks the hash of each file.
FROM node:22-slim AS plots
RUN npm pack uplot@1.6.32 --silent && tar -xzf uplot-1.6.32.tgz

FROM python:3.12-slim AS build
# The compiler makes polls of SNMP cheaper (hatch_build.py); it stays in this stage.
RUN apt-get update && apt-get install --yes --no-install-recommends gcc libc6-dev \
 && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY pyproject.toml hatch_build.py README.md LICENSE ./
COPY poller ./poller
COPY --from=plots /package/dist/uPlot.iife.min.js /package/dist/uPlot.min.css ./poller/web/static/
COPY --from=plots /package/LICENSE ./poller/web/licenses/uPlot.txt
RUN python -m venv /opt/poller && /opt/poller/bin/pip install --no-cache-dir '.[all]'

FROM python:3.12-slim
RUN groupadd --gid 10001 poller \
 && useradd --uid 10001 --gid poller --home-dir /var/lib/poller --create-home --shell /usr/sbin/nologin poller
COPY --from=build /opt/poller /opt/poller
ENV PATH=/opt/poller/bin:$PATH \
    POLLER_HOME=/var/lib/poller \
    POLLER_LOG_FORMAT=json \
    PYTHONUNBUFFERED=1
USER poller
WORKDIR /var/lib/poller
VOLUME /var/lib/poller
STOPSIGNAL SIGTERM
ENTRYPOINT []
CMD ["celery", "-A", "poller", "worker"]
