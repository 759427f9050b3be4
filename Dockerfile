# syntax=docker/dockerfile:1
# docker build -t tool-hub . && docker run -p 3000:3000 -v tool-hub:/data tool-hub
# docs/operating.md describes a read-only root, secrets, PostgreSQL and a proxy (compose.yaml).

FROM node:24-bookworm-slim AS build
WORKDIR /app
COPY package.json package-lock.json .npmrc ./
RUN npm ci --ignore-scripts --no-audit --no-fund
COPY . .
# Most packages are bundled in dist/. prune.mjs removes them from node_modules.
RUN npm run build && node cli/prune.mjs

# uvx runs servers that are Python packages.
FROM ghcr.io/astral-sh/uv:0.9 AS uv

FROM node:24-bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates git tini && rm -rf /var/lib/apt/lists/*
COPY --from=uv /uv /uvx /usr/local/bin/
WORKDIR /app
COPY --from=build /app/package.json /app/README.md /app/LICENSE ./
COPY --from=build /app/node_modules ./node_modules
COPY --from=build /app/assets ./assets
COPY --from=build /app/db/migrations ./db/migrations
COPY --from=build /app/dist ./dist
# For the command line: docker exec <container> tool-hub status
RUN chmod 755 dist/cli/main.js && ln -s /app/dist/cli/main.js /usr/local/bin/tool-hub
# The user for CHILD_USER, which takes effect if the gateway runs as root (examples/compose.child-user.yaml).
RUN useradd --create-home --uid 1001 mcp
# All persistent files are in /data: settings, encryption key, catalogues, bundles, and the caches of npx and uvx. /tmp may be a tmpfs.
RUN mkdir /data && chown node:node /data
ENV NODE_ENV=production HOST=0.0.0.0 PORT=3000 SETTINGS_PATH=/data/mcp_settings.json DATA_DIR=/data/.tool-hub \
    HOME=/data npm_config_cache=/data/.cache/npm npm_config_update_notifier=false UV_CACHE_DIR=/data/.cache/uv \
    UV_PYTHON_INSTALL_DIR=/data/.cache/python UV_TOOL_DIR=/data/.cache/uv-tools
USER node
VOLUME /data
EXPOSE 3000
# Liveness, not readiness: a gateway that waits for its database must not be restarted.
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
  CMD ["node", "-e", "fetch(`http://127.0.0.1:${process.env.PORT}${(process.env.BASE_PATH ?? '').replace(/\\/$/, '')}/health/live`).then((r) => process.exit(r.ok ? 0 : 1), () => process.exit(1))"]
# tini reaps orphaned processes of the servers that the gateway starts.
ENTRYPOINT ["tini", "--"]
CMD ["node", "dist/server.js"]
