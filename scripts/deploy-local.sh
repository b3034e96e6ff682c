#!/usr/bin/env bash
# Deploys a canister to a local network; see --help.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
# shellcheck source=scripts/clients.sh
source scripts/clients.sh

usage() {
    cat <<'END'
Deploys a canister to the local network and prints its id. The network is started if it is not
running, and keeps running afterwards.

usage: scripts/deploy-local.sh [--with icp|dfx] [CANISTER]

  CANISTER         one of those in icp.yaml and dfx.json; by default bench

  --with icp|dfx   the client; by default the one that is installed, icp first
  -h, --help       this

Next: scripts/call-examples.sh
END
}

canister=bench
while (($#)); do
    case $1 in
        -h | --help) usage; exit ;;
        --with) with=$(value_of "$@"); shift ;;
        *) [[ -f canisters/modules/$1.wasm.gz ]] || wrong_use "$1 is not known"
            canister=$1 ;;
    esac
    shift
done

choose_client

case $with in
    icp)
        if ! icp network ping local >/dev/null 2>&1; then
            say "no local network of icp runs: starting it; 'icp network stop' ends it"
            icp network start -d >&2
        fi
        icp deploy "$canister" -e local >&2
        icp canister status "$canister" -e local --id-only
        ;;
    dfx)
        if ! status=$(dfx ping local 2>/dev/null); then
            say "no local network of dfx runs: starting it; 'dfx stop' ends it"
            dfx start --background >&2
        elif [[ $status == *stablebench* ]]; then
            fail "'stablebench serve' answers where the local network of dfx would; end it, \
or deploy to it at the URL that it prints: dfx deploy $canister --network URL --no-wallet"
        fi
        dfx deploy "$canister" --network local >&2
        dfx canister id "$canister" --network local
        ;;
esac
