#!/usr/bin/env bash
# Installs what the tests of the deployment files need and this machine lacks:
#
#   test/deploy/setup.sh [TOOL...]    all of them, or those that are named
#
# Each tool is a function below, named in TOOLS. Debian's packages come from
# apt; what is written in Go is built into .tools. Where it may not install, it
# says in one line what to install.
set -euo pipefail
cd "$(dirname "$0")/../.."

TOOLS="redis buildah kubectl helm kubeconform schemas systemd prometheus chromium"

HELM_VERSION=v4.3.1
KUBECONFORM_VERSION=v0.8.0
KUSTOMIZE_VERSION=v5.7.1
KUBERNETES_VERSION=v1.37.2          # whose schemas the manifests are held against
PROMETHEUS_OPERATOR_VERSION=v0.85.0 # the same, for PodMonitor and PrometheusRule

bin=$PWD/.tools

apt() { # command package
	type -P "$1" >/dev/null && return # and not the function of that name
	if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
		apt-get update -qq
		DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "$2" >/dev/null
	else
		echo "the tests need $1: install it, on Debian with: apt-get install $2" >&2
		exit 1
	fi
}

built() { # name version module: builds .tools/name, once per version
	[ -x "$bin/$1" ] && [ -e "$bin/$1-$2" ] && return
	mkdir -p "$bin"
	GOBIN=$bin go install "$3@$2"
	touch "$bin/$1-$2"
}

redis() { apt redis-server redis-server; }

# chromium is what looks at the page, driven by the programs of browser/.
chromium() {
	apt chromium chromium
	apt node nodejs
	apt npm npm
	local modules=test/deploy/browser/node_modules
	[ -d $modules ] && [ $modules -nt test/deploy/browser/package-lock.json ] ||
		(cd test/deploy/browser && npm ci --no-audit --no-fund --loglevel=error && touch node_modules)
}

buildah() { apt buildah buildah; }
helm() { built helm "$HELM_VERSION" helm.sh/helm/v4/cmd/helm; }
kubeconform() { built kubeconform "$KUBECONFORM_VERSION" github.com/yannh/kubeconform/cmd/kubeconform; }

# kubectl renders the overlays; kustomize, which is in it, does as well.
kubectl() {
	type -P kubectl >/dev/null || built kustomize "$KUSTOMIZE_VERSION" sigs.k8s.io/kustomize/kustomize/v5
}

module() { # path version: prints the folder of a module's source
	(cd / && go mod download -json "$1@$2") | sed -n 's/^\t"Dir": "\(.*\)",$/\1/p'
}

# schemas are what kubeconform holds manifests against.
schemas() {
	local done=$bin/schemas/$KUBERNETES_VERSION-$PROMETHEUS_OPERATOR_VERSION
	[ -e "$done" ] && return
	local crds
	crds=$(module github.com/prometheus-operator/prometheus-operator "$PROMETHEUS_OPERATOR_VERSION")/example/prometheus-operator-crd
	rm -rf "$bin/schemas"
	go run ./test/deploy/schemas "$bin/schemas" \
		"$(module k8s.io/kubernetes "$KUBERNETES_VERSION")/api/openapi-spec/swagger.json" \
		"$crds/monitoring.coreos.com_podmonitors.yaml" "$crds/monitoring.coreos.com_prometheusrules.yaml"
	touch "$done"
}

systemd() { apt systemd-analyze systemd; }

# prometheus is unpacked and not installed: it would run as a service.
prometheus() {
	[ -x "$bin/promtool" ] && [ -x "$bin/prometheus" ] && return
	if ! command -v apt-get >/dev/null; then
		echo "the tests need prometheus and promtool in .tools: they are in Prometheus' releases" >&2
		exit 1
	fi
	local dir
	dir=$(mktemp -d)
	(
		cd "$dir"
		apt-get download -qq -o APT::Sandbox::User=root prometheus 2>/dev/null || {
			apt-get update -qq
			apt-get download -qq -o APT::Sandbox::User=root prometheus
		}
		dpkg -x prometheus_*.deb .
	)
	mkdir -p "$bin"
	cp "$dir"/usr/bin/prometheus "$dir"/usr/bin/promtool "$bin"
	rm -rf "$dir"
}

[ $# -gt 0 ] || set -- $TOOLS
for tool in "$@"; do
	"$tool"
done
