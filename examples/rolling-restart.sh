#!/bin/sh
# Restarts replicas behind nginx one after another, without the loss of a call, except calls that wait for an answer of their client
# (docs/scaling.md, "To replace a replica"). On the machine of nginx, whose site is examples/nginx-replicas.conf:
#
#   METRICS_TOKEN=… rolling-restart.sh 10.0.0.11:3000 'ssh 10.0.0.11 systemctl restart tool-hub' \
#                                      10.0.0.12:3000 'ssh 10.0.0.12 systemctl restart tool-hub'
#
# Each address is that of a line `server <address> …;` of the site. For each: nginx sends it nothing more, its calls end, the command
# restarts it, and nginx sends it requests again once it is ready. It stops at the first failure; the replica then stays out.
#   SITE      the file (default: /etc/nginx/conf.d/tool-hub.conf)
#   RELOAD    the command that reloads nginx (default: nginx -s reload)
#   PATIENCE  max time for calls to end, and then for the replica to be ready, in seconds (default: 600)
set -eu

site=${SITE:-/etc/nginx/conf.d/tool-hub.conf}
patience=${PATIENCE:-600}
: "${METRICS_TOKEN:?the token that opens /metrics, as the replicas have it}"

reload () { ${RELOAD:-nginx -s reload}; }

# Writes the file in place: a copy would have other rights.
edit () { changed=$(sed "$1" "$site"; echo .) && printf %s "${changed%.}" >"$site"; }

in_flight () {
  # The header comes from standard input, since arguments are visible to all users of the machine.
  printf 'header = "Authorization: Bearer %s"\n' "$METRICS_TOKEN" |
    curl -fsS --max-time 10 -K - "http://$1/metrics" | sed -n 's/^toolhub_calls_in_flight //p'
}

is_idle () { [ "$(in_flight "$1")" = 0 ]; }
is_ready () { curl -fs --max-time 10 -o /dev/null "http://$1/health/ready"; }

# wait_for <condition> <address> <sentence>: twice in a row, since a request may be on its way from nginx.
wait_for () {
  left=$patience times=0
  while [ "$times" -lt 2 ]; do
    if "$1" "$2"; then times=$((times + 1)); else times=0; fi
    [ "$left" -gt 0 ] || { echo "$2: $3 within $patience s" >&2; exit 1; }
    left=$((left - 1))
    sleep 1
  done
}

[ $# -ge 4 ] && [ $(($# % 2)) -eq 0 ] ||
  { echo 'usage: rolling-restart.sh <address> <command that restarts it> <address> <command> …' >&2; exit 2; }
while [ $# -gt 0 ]; do
  address=$1 restart=$2
  shift 2
  grep -q "^ *server $address[ ;]" "$site" || { echo "$site has no server $address" >&2; exit 1; }
  echo "$address: no new requests"
  edit "/^ *server $address[ ;]/ { / down;/! s/;/ down;/; }"
  reload
  wait_for is_idle "$address" 'calls have not ended'
  echo "$address: restarting"
  sh -c "$restart"
  wait_for is_ready "$address" 'not ready'
  edit "/^ *server $address[ ;]/ s/ down;/;/"
  reload
  echo "$address: serves again"
done
