#!/usr/bin/env bash
# Installs MariaDB's server binaries where that is allowed. Only binaries: no system service is installed or started.
set -euo pipefail

command -v mariadbd >/dev/null && command -v mariadb-install-db >/dev/null && exit 0

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
    export DEBIAN_FRONTEND=noninteractive
    apt-get update -qq
    # mariadb-install-db calls my_print_defaults, which the client package brings.
    apt-get install -y -qq --no-install-recommends mariadb-server-core mariadb-client-core >/dev/null
    exit 0
fi

echo "the tests need mariadbd and mariadb-install-db: install your system's MariaDB server package" >&2
exit 1
