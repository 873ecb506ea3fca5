#!/bin/sh
# Verifies an audio file: sh verify.sh FILE, with TAKEMARK_URL and TAKEMARK_API_KEY in the environment. Needs curl and jq.
# Prints the service's answer in one line. Exit codes: 0 accepted, 1 not accepted, 2 wrong use, 3 no answer, and 4 where
# the credential holds and a person is to look at its evidence.
set -u

fail() {
  echo "$2" >&2
  exit "$1"
}

# Keys and audio travel over TLS, or do not leave this machine. The name localhost is refused: it may mean ::1, where
# another user of this machine can listen.
protect() {
  case $1 in
    *@*) fail 2 'the address holds a name or a password' ;;
    https://?*) ;;
    http://127.0.0.1 | http://127.0.0.1[:/]* | http://\[::1\]*) ;;
    *) fail 2 'plain HTTP is for the addresses 127.0.0.1 and [::1] alone' ;;
  esac
}

# Plain HTTP is for loopback, and a proxy would see the key. HTTPS passes a proxy unread.
no_proxy="localhost,127.0.0.1,::1,[::1]${no_proxy:+,$no_proxy}"
export no_proxy

[ $# -eq 1 ] && [ -n "${TAKEMARK_URL:-}" ] && [ -n "${TAKEMARK_API_KEY:-}" ] ||
  fail 2 'usage: TAKEMARK_URL=... TAKEMARK_API_KEY=... sh verify.sh FILE'
# A line break would end the header, and begin another option of curl.
[ "$(printf %s "$TAKEMARK_API_KEY" | LC_ALL=C tr -d '!-~' | wc -c)" -eq 0 ] ||
  fail 2 'TAKEMARK_API_KEY must be printable ASCII without spaces or line breaks'
base=${TAKEMARK_URL%/}
protect "$base"
[ -f "$1" ] && [ -r "$1" ] || fail 2 "$1 cannot be read"
work=$(mktemp -d) || exit 3
trap 'rm -rf "$work"' EXIT
# A name that curl reads as it is.
ln -s "$(realpath -- "$1")" "$work/audio"

# send CURL_ARGUMENT...: the body to $work/body, false where the answer is not 2xx. Redirects are not followed.
send() {
  : >"$work/status" >"$work/head" >"$work/body"
  curl --silent --show-error --max-time 300 --max-filesize 8388608 --dump-header "$work/head" --output "$work/body" \
    --write-out '%{http_code}' "$@" >"$work/status" && grep -q '^2' "$work/status"
}

# All attempts have the same Idempotency-Key, so the call is billed once.
attempt_key=$(od -An -tx1 -N16 /dev/urandom | tr -d ' \n')

# The key comes by standard input, because everybody on the machine sees arguments.
verify() {
  printf 'header = "x-api-key: %s"\n' "$TAKEMARK_API_KEY" |
    send --config - --header "idempotency-key: $attempt_key" --form "file=@$work/audio;filename=audio" \
      "$base/v1/verifications"
}

# Repeats a call that was refused for now, after the pause that the service asks for.
retrying() {
  for attempt in 1 2 3 4 5; do
    "$@" && return 0
    status=$(cat "$work/status")
    pause=$(tr -d '\r' <"$work/head" | sed -n 's/^[Rr][Ee][Tt][Rr][Yy]-[Aa][Ff][Tt][Ee][Rr]: *\([0-9]*\)$/\1/p')
    pause=${pause:-$((1 << attempt))}
    case $status in 429 | 503) ;; *) break ;; esac
    [ "$attempt" -lt 5 ] && [ "$pause" -le 60 ] || break
    sleep "$pause"
  done
  fail 3 "refused with ${status:-no answer}: $(head -c 4096 "$work/body")"
}

retrying verify
jq -c . "$work/body" || exit 3
# What is not known today, a new verdict or status, is not accepted.
exit "$(jq -r 'if .verdict != "valid" or .good != true then 1 else
  {"verified_binding": 0, "needs_review": 4}[.decision.status // ""] // 1 end' "$work/body")"
