#!/usr/bin/env bash
# Calls a deployed canister; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/clients.sh
source scripts/clients.sh

usage() {
    cat <<'END'
Calls a bench canister: adds 1 000 rows to SQLite and to a map, reads 100 of them back, and prints
SQLite's settings. Rows with the same ids are removed first.

usage: scripts/call-examples.sh [--with icp|dfx] [bench|bench_vfs]
       scripts/call-examples.sh --url URL --root-key KEY --canister ID

Without --url, it calls the canister that scripts/deploy-local.sh deployed. With --url, it calls any
canister, for example one of `stablebench serve`, which prints these options. Only icp can do that.

  --with icp|dfx   the client; by default the one that is installed, icp first
  --url URL        the replica
  --root-key KEY   its root key in hex; `fetch` asks the replica for it
  --canister ID    the canister
  -h, --help       this
END
}

canister=bench
url='' root_key='' id=''
while (($#)); do
    case $1 in
        -h | --help) usage; exit ;;
        --with) with=$(value_of "$@"); shift ;;
        --url) url=$(value_of "$@"); shift ;;
        --root-key) root_key=$(value_of "$@"); shift ;;
        --canister) id=$(value_of "$@"); shift ;;
        bench | bench_vfs) canister=$1 ;;
        *) wrong_use "$1 is not known" ;;
    esac
    shift
done
if [[ -n $url$root_key$id ]]; then
    [[ -n $url && -n $root_key && -n $id ]] || wrong_use "--url, --root-key and --canister go together"
    [[ ${with:=icp} == icp ]] || wrong_use "dfx takes no root key: --url is for icp"
fi
choose_client

# call METHOD ARGUMENTS [--query]: prints the canister's answer.
call() {
    if [[ -n $url ]]; then
        icp canister call "$id" "$@" -n "$url" -k "$root_key"
    elif [[ $with == icp ]]; then
        icp canister call "$canister" "$@" -e local
    else
        dfx canister call "$canister" "$@" --network local
    fi
}

# show METHOD ARGUMENTS [--query]: prints the call and its answer; fails unless the answer is Ok.
show() {
    printf '> %s %s\n' "$1" "$2"
    reply=$(call "$@")
    printf '%s\n' "$reply"
    [[ $reply =~ (^|[^A-Za-z])Ok([^A-Za-z]|$) ]]
}

add() { show "add_users_$1" '(0, 10, 1000)'; }

read_100() {
    local rows='record { first = 0; step = 10; rows = 100 }'
    show look "(record { engine = variant { $1 }; operation = variant { read = variant { step = $rows } }; each = false })" --query
}

for engine in sqlite btree; do
    if ! add "$engine"; then
        case $reply in
            *IdExists*)
                say "removing the rows that are there"
                call reset "(variant { $engine })" >&2
                add "$engine" || fail "the canister refused"
                ;;
            *EngineUnavailable*) say "this canister has no $engine"; continue ;;
            *) fail "the canister refused" ;;
        esac
    fi
    read_100 "$engine" || fail "the canister refused"
done
show sqlite_settings '()' --query || fail "the canister refused"
