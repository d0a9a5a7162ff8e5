#!/usr/bin/env bash
# Prints what the same controller costs to build on client-go's cache, on this library
# with client-go's clientset, and on kubeapi without client-go, as a table in Markdown.
# Each is built as a module of its own, as a user's would be, with an empty build cache.
#
#   examples/controllers/measure.sh
#
# It needs a module proxy, or the modules already downloaded, and takes some minutes.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
scratch=$(mktemp -d)
trap 'chmod -R u+w "$scratch" && rm -rf "$scratch"' EXIT

ours='"github.com/watchmirror/cache"'
client_go='"k8s.io/client-go/tools/cache"'

# module makes a module of a program's files: its folder, then those of the files.
module() {
  local name=$1 from=$2
  mkdir "$scratch/$name"
  cp "$from"/*.go "$scratch/$name/"
  rm -f "$scratch/$name"/*_test.go
}

# require writes the go.mod: the folder, then the requirements.
require() {
  local name=$1
  shift
  (
    cd "$scratch/$name"
    go mod init example.com/controller
    go mod edit "$@"
    go mod tidy
  ) >"$scratch/$name.log" 2>&1 || { cat "$scratch/$name.log" >&2; return 1; }
}

# megabytes is a file's size in millions of bytes.
megabytes() { awk -v bytes="$(stat -c %s "$1")" 'BEGIN { printf "%.1f", bytes / 1e6 }'; }

# measure prints a row: the folder, then what the row is called.
measure() {
  local name=$1 title=$2 seconds
  cd "$scratch/$name"
  TIMEFORMAT='%U %S'
  { time GOCACHE="$scratch/cache-$name" go build -trimpath -o whole . 2>"$scratch/$name.build" ; } 2>"$scratch/$name.time" ||
    { cat "$scratch/$name.build" >&2; return 1; }
  seconds=$(awk '{ printf "%.0f", $1 + $2 }' "$scratch/$name.time")
  GOCACHE="$scratch/cache-$name" go build -trimpath -ldflags='-s -w' -o stripped .
  printf '| %s | %d | %d | %d | %s | %s | %s |\n' "$title" \
    "$(($(go list -m all | wc -l) - 1))" \
    "$(go version -m whole | grep -c $'^\tdep\t')" \
    "$(go list -deps . | grep -c '\..*/')" \
    "$(megabytes whole)" "$(megabytes stripped)" "$seconds"
}

kubernetes=(-require=k8s.io/client-go@v0.37.2 -require=k8s.io/api@v0.37.2 -require=k8s.io/apimachinery@v0.37.2)
library=(-require=github.com/watchmirror/cache@v0.0.0 -replace="github.com/watchmirror/cache=$root")

module client-go "$here/nodecount"
sed -i "s|$ours|$client_go|" "$scratch/client-go/controller.go"
require client-go "${kubernetes[@]}"
module switched "$here/nodecount"
require switched "${kubernetes[@]}" "${library[@]}"
module kubeapi "$root/examples/kubeapi-controller"
require kubeapi "${library[@]}"

go version
echo '| the controller on | modules in the build list | modules in the binary | packages outside the standard library | binary, MB | stripped, MB | CPU seconds to build from nothing |'
echo '| --- | --- | --- | --- | --- | --- | --- |'
measure client-go "client-go's cache and clientset"
measure switched "this library and client-go's clientset"
measure kubeapi 'this library with kubeapi alone'
