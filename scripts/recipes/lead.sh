#!/usr/bin/env bash
# Leads a room and runs a command meanwhile, with nothing but bash, curl and jq. The command is told to stop, and then
# made to, before the lease ends, whatever happens to the nodes. Where the program can be had, `quorate run` does this
# better: it also ends the command's children if this script is killed.
#
# usage: QUORATE_URL=http://a:7400,http://b:7400,http://c:7400 [TTL=30] scripts/recipes/lead.sh ROOM COMMAND [ARG…]
# The command gets QUORATE_TERM, to be sent along with every write. The exit code is the command's, or 20 if leading
# ended first.
set -euo pipefail

room=$1
shift
IFS=, read -ra urls <<<"${QUORATE_URL:-http://127.0.0.1:7400}"
ttl=${TTL:-30}
candidate=${CANDIDATE:-$HOSTNAME:$$}
key=$(head -c 24 /dev/urandom | base64 | tr +/ -_)
pid=''

say() { printf '%s: %s\n' "$room" "$*" >&2; }

# Milliseconds on a clock that counts while the machine sleeps. Neither `date`, which others set, nor SECONDS will do.
now() {
    local uptime
    read -r uptime _ </proc/uptime
    now=$((10#${uptime/./} * 10))
}

# ask PATH BODY DEADLINE [HOLD]: one node after the other, until one decides or the deadline has passed. Each gets its
# share of the time, and HOLD milliseconds more. Leaves `status`, `answer` and `sent`, the moment before the request.
ask() {
    local path=$1 body=${2//\"/\\\"} deadline=$3 hold=${4:-0} tries=0 share request output
    while now && ((now < deadline)); do
        share=$(((deadline - now - hold) / (${#urls[@]} + 1)))
        share=$((share < 50 ? 50 : share > 2000 ? 2000 : share))
        sent=$now
        request="url = \"${urls[0]}$path\"
header = \"Content-Type: application/json\"
header = \"Idempotency-Key: $key\"
data = \"$body\""
        # By stdin, for it has secrets, and everybody on a machine can read the arguments of a process.
        output=$(curl -sK - --noproxy '*' --connect-timeout 1 --max-time "$(seconds $((share + hold)))" \
            -w '\n%{http_code}' <<<"$request") || output=$'\n000'
        status=${output##*$'\n'} answer=${output%$'\n'*}
        # 2xx and 4xx are decisions. No connection, no answer in time, or 5xx: another node may do better.
        if [[ $status == [24]* && $status != 429 ]] && jq -e . <<<"$answer" >/dev/null 2>&1; then return 0; fi
        leave
        if ((++tries % ${#urls[@]} == 0)); then sleep 0.1; fi
    done
    return 1
}

# Asks another node first from now on.
leave() { urls=("${urls[@]:1}" "${urls[0]}"); }

seconds() { printf '%d.%03d' $(($1 / 1000)) $(($1 % 1000)); }

# Takes over what an answer says: when to renew, when the command must be told to stop, and when it must be gone.
granted() {
    local valid
    valid=$(jq .valid_for_ms <<<"$answer")
    renew_at=$((sent + valid / 3))
    stop_at=$((sent + valid * 6 / 10))
    gone_at=$((sent + valid * 8 / 10))
}

# campaign SECONDS: waits so long for the room, and says whether it was won.
campaign() {
    local body="{\"candidate_id\":\"$candidate\",\"ttl_seconds\":$ttl,\"wait_seconds\":$1}" hold=$(($1 * 1000))
    now
    ask "/elections/$room/campaign" "$body" $((now + hold + 5000)) "$hold" || return 1
    if [[ $status != 200 ]]; then
        say "refused: $answer"
        exit 69
    fi
    [[ $(jq -r .status <<<"$answer") == leader ]]
}

# Tells the command's whole process group; fails if nothing of it is left.
signal() { kill "-$1" -- "-$pid" 2>/dev/null; }

# Ends the group: politely, and by force at the deadline.
end() {
    signal TERM || return 0
    while signal 0; do
        now
        if ((now >= gone_at)); then signal KILL || true; fi
        sleep 0.02
    done
}

# The command is to end by itself; the room is kept until it has.
trap 'if [[ -n $pid ]]; then signal TERM || true; else exit 143; fi' TERM INT HUP

# Who waits for long is granted a lease while the node holds the request. So a win is asked for again, with the same
# key: that answer counts from now.
until campaign 5 && campaign 0; do sleep 0.2; done
granted
token=$(jq -r .leader_token <<<"$answer")
QUORATE_TERM=$(jq .leader.term <<<"$answer")
export QUORATE_TERM QUORATE_ROOM=$room
say "leads, term $QUORATE_TERM"

# Job control gives the command a process group of its own. If this script is killed, the kernel kills the command.
set -m
setpriv --pdeathsig KILL -- "$@" &
pid=$!
set +m

while signal 0; do
    now
    if ((now >= stop_at)); then
        say 'no renewal got through: the command is ended'
        end
        exit 20
    fi
    if ((now >= renew_at)); then
        if ask "/elections/$room/renew" "{\"leader_token\":\"$token\"}" "$stop_at"; then
            if [[ $status == 200 ]]; then
                granted
            elif [[ $(jq -r .code <<<"$answer") == lease_not_current ]]; then
                say 'the lease is gone: the command is ended'
                end
                exit 20
            else
                # One node may have other settings than the rest, as while they are changed on one after the other.
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

# Only now, since nothing of the command is left.
now
ask "/elections/$room/resign" "{\"leader_token\":\"$token\"}" $((now + 2000)) || say 'not resigned; the lease will end'
exit "$code"
