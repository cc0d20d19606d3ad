#!/usr/bin/env bash
# Leads a room and runs a command while it leads, with nothing but bash, curl and jq. If the lease can't be renewed, the
# command gets TERM and then KILL before the lease ends. If you can install the program, use `quorate run` instead: it
# ends the command's children even if it is killed itself, which this script can't.
#
# usage: QUORATE_URL=http://a:7400,http://b:7400,http://c:7400 [TTL=30] scripts/recipes/lead.sh ROOM COMMAND [ARG…]
# The command finds its term in QUORATE_TERM, and must send it with every write. The exit code is the command's, or 20
# if the leadership ended first.
set -euo pipefail

room=$1
shift
IFS=, read -ra urls <<<"${QUORATE_URL:-http://127.0.0.1:7400}"
ttl=${TTL:-30}
candidate=${CANDIDATE:-$HOSTNAME:$$}
key=$(head -c 24 /dev/urandom | base64 | tr +/ -_)
pid=''

say() { printf '%s: %s\n' "$room" "$*" >&2; }

# Milliseconds on a clock that nobody sets, and that also counts while the machine sleeps. `date` can be set, and
# SECONDS is not exact enough.
now() {
    local uptime
    read -r uptime _ </proc/uptime
    now=$((10#${uptime/./} * 10))
}

# ask PATH BODY DEADLINE [WAIT]: sends a request to one node after the other, until one decides or the deadline has
# passed. Each node gets its share of the time. It may also wait WAIT milliseconds for the room before it answers. Sets
# `status`, `answer`, and `sent`, which is the moment before the request.
ask() {
    local path=$1 body=${2//\"/\\\"} deadline=$3 wait_ms=${4:-0} tries=0 share request output
    while now && ((now < deadline)); do
        share=$(((deadline - now - wait_ms) / (${#urls[@]} + 1)))
        share=$((share < 50 ? 50 : share > 2000 ? 2000 : share))
        sent=$now
        request="url = \"${urls[0]}$path\"
header = \"Content-Type: application/json\"
header = \"Idempotency-Key: $key\"
data = \"$body\""
        # The request goes to curl by stdin, because it has secrets and every user can read the arguments of a process.
        output=$(curl -sK - --noproxy '*' --connect-timeout 1 --max-time "$(seconds $((share + wait_ms)))" \
            -w '\n%{http_code}' <<<"$request") || output=$'\n000'
        status=${output##*$'\n'} answer=${output%$'\n'*}
        # 2xx, and 4xx except 429, are decisions. After anything else another node may do better.
        if [[ $status == [24]* && $status != 429 ]] && jq -e . <<<"$answer" >/dev/null 2>&1; then return 0; fi
        leave
        if ((++tries % ${#urls[@]} == 0)); then sleep 0.1; fi
    done
    return 1
}

# From now on another node comes first.
leave() { urls=("${urls[@]:1}" "${urls[0]}"); }

seconds() { printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); }

# Takes the times from an answer: when to renew, when the command gets TERM, and when it must be gone.
granted() {
    local valid
    valid=$(jq .valid_for_ms <<<"$answer")
    renew_at=$((sent + valid / 3))
    stop_at=$((sent + valid * 6 / 10))
    gone_at=$((sent + valid * 8 / 10))
}

# campaign SECONDS: waits for the room for this long, and succeeds if it was won.
campaign() {
    local body="{\"candidate_id\":\"$candidate\",\"ttl_seconds\":$ttl,\"wait_seconds\":$1}" wait_ms=$(($1 * 1000))
    now
    ask "/elections/$room/campaign" "$body" $((now + wait_ms + 5000)) "$wait_ms" || return 1
    if [[ $status != 200 ]]; then
        say "rejected: $answer"
        exit 69
    fi
    [[ $(jq -r .status <<<"$answer") == leader ]]
}

# Sends a signal to the command's whole process group. Fails if no process of the group is left.
signal() { kill "-$1" -- "-$pid" 2>/dev/null; }

# Ends the group: with TERM, and with KILL at the deadline.
end() {
    signal TERM || return 0
    while signal 0; do
        now
        if ((now >= gone_at)); then signal KILL || true; fi
        sleep 0.02
    done
}

# A signal to this script is passed on as TERM. The room is kept until the command has ended.
trap 'if [[ -n $pid ]]; then signal TERM || true; else exit 143; fi' TERM INT HUP

# The room may be won long after the request was sent, while the node waited. So after a win the campaign is sent
# again with the same key: the validity in this second answer counts from now.
until campaign 5 && campaign 0; do sleep 0.2; done
granted
token=$(jq -r .leader_token <<<"$answer")
QUORATE_TERM=$(jq .leader.term <<<"$answer")
export QUORATE_TERM QUORATE_ROOM=$room
say "leads, term $QUORATE_TERM"

# Job control (set -m) gives the command a process group of its own. If this script is killed, the kernel kills the
# command.
set -m
setpriv --pdeathsig KILL -- "$@" &
pid=$!
set +m

while signal 0; do
    now
    if ((now >= stop_at)); then
        say 'no renewal succeeded, so the command is ended'
        end
        exit 20
    fi
    if ((now >= renew_at)); then
        if ask "/elections/$room/renew" "{\"leader_token\":\"$token\"}" "$stop_at"; then
            if [[ $status == 200 ]]; then
                granted
            elif [[ $(jq -r .code <<<"$answer") == lease_not_current ]]; then
                say 'the lease is gone, so the command is ended'
                end
                exit 20
            else
                # This node may have other settings than the rest, for example while they are changed one by one.
                say "not renewed: $answer"
                leave
                renew_at=$((now + 500))
            fi
        fi
    fi
    sleep 0.05
done
code=0
wait "$pid" || code=$?

# The room is given up only now, when no process of the command is left.
now
ask "/elections/$room/resign" "{\"leader_token\":\"$token\"}" $((now + 2000)) ||
    say 'not resigned; the room becomes vacant when the lease ends'
exit "$code"
