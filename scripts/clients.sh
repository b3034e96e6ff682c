# shellcheck shell=bash
# Shared by the scripts that call canisters: chooses the client, icp or dfx.
# They source it in the root of the repository.

# icp from the npm package that the tests use (`npm ci --prefix verification/clients`).
packaged_icp=$PWD/verification/clients/node_modules/@icp-sdk/icp-cli-linux-x64/bin/icp

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }
fail() { say "$*"; exit 1; }
wrong_use() { say "$1; --help says how"; exit 2; }

# value_of OPTION VALUE…: prints the value.
value_of() {
    (($# > 1)) || wrong_use "$1 needs a value"
    printf '%s\n' "$2"
}

# need PROGRAM SOURCE: fails if the program is not installed.
need() { type -P "$1" >/dev/null || fail "$1 is not installed; install $2"; }

has() {
    type -P "$1" >/dev/null || [[ $1 == icp && -x $packaged_icp ]]
}

# Runs icp, from PATH or from the npm package.
icp() {
    if type -P icp >/dev/null; then command icp "$@"; else "$packaged_icp" "$@"; fi
}

# Sets `with` to icp or dfx: the one requested, or if `with` is empty, the one installed.
choose_client() {
    case ${with:=} in
        icp | dfx) has "$with" || fail "$with is not installed; $(how_to_get "$with")" ;;
        '')
            if has icp; then
                with=icp
            elif has dfx; then
                with=dfx
            else
                fail "neither icp nor dfx is installed
  icp: $(how_to_get icp)
  dfx: $(how_to_get dfx)
'stablebench call bench …' and 'stablebench serve' need neither."
            fi
            ;;
        *) wrong_use "--with takes icp or dfx, not $with" ;;
    esac
}

how_to_get() {
    case $1 in
        icp) printf '%s' "on Linux x64, npm ci --prefix verification/clients; elsewhere, \
https://github.com/dfinity/icp-cli says how" ;;
        dfx) printf '%s' "https://github.com/dfinity/sdk says how" ;;
    esac
}
