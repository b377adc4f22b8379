# Everything here sets itself up on a fresh Debian machine with Go; `setup`
# installs what is missing, or says in one line what to install.

GO ?= go
TOOLS := $(CURDIR)/.tools
GOLANGCI_VERSION := v2.15.0
BENCH ?= -large
FUZZTIME ?= 10s
N ?= 1000
SEED ?=

# What the program says of itself. GOFLAGS may keep Go from asking git, so it is
# asked here, if it is there and knows this folder.
COMMAND = korvet-offload/internal/command
VERSION = $(shell git describe --tags --always --dirty 2>/dev/null)
REVISION = $(shell git rev-parse --verify HEAD 2>/dev/null)
LINKED = $(if $(REVISION),-ldflags " -X $(COMMAND).linkedVersion=$(VERSION) -X $(COMMAND).linkedRevision=$(REVISION)")

.PHONY: build iceberg test-iceberg test test-packages test-whole test-readers test-network model guards torture load lint bench demo docs fuzz setup clean setup-deploy test-deploy k8s-verify

build: ## the program, in bin/
	CGO_ENABLED=0 $(GO) build -trimpath $(LINKED) -o bin/korvet-offload .

iceberg: ## the program that "korvet-offload iceberg" runs, in bin/; it is larger than the other
	cd iceberg && CGO_ENABLED=0 $(GO) build -trimpath $(subst $(COMMAND),main,$(LINKED)) -o ../bin/korvet-offload-iceberg .

demo: ## the whole job on this machine
	$(GO) run . demo

setup: ## what the tests need
	@bash test/setup.sh

test: setup test-readers test-network model guards test-packages test-whole test-iceberg test-deploy ## every test, with the race detector

test-packages: ## each package by itself
	$(GO) vet ./...
	$(GO) test -race -timeout 30m $$($(GO) list ./... | grep -v korvet-offload/test)

test-whole: ## the program: every fault, every crash, whole lives
	$(GO) test -race -timeout 60m -p 1 ./test ./test/torture ./test/load

test-network: ## through a proxy that spoils the connections
	cd test/network && $(GO) vet ./... && $(GO) test -count=1 ./...

model: ## every interleaving of the protocol in small worlds; prints what loses something
	$(GO) vet -tags model ./offload
	$(GO) test -tags model -run '^TestModel' -count=1 -timeout 30m -v ./offload

guards: ## takes every guard out in turn: somebody must notice
	$(GO) test -count=1 -timeout 60m ./test/guards

torture: setup ## N random schedules against real processes; SEED=... and N=1 run one again
	$(GO) test -count=1 -timeout 4h -run '^TestTorture$$' -v ./test/torture -schedules $(N) $(if $(SEED),-seed $(SEED))

load: setup ## the largest sizes, some of which take GBs of memory
	$(GO) test -count=1 -timeout 60m -v ./test/load -full

setup-deploy: ## what the tests of the deployment files need
	@bash test/deploy/setup.sh

test-deploy: setup setup-deploy ## container, Kubernetes, systemd, compose, monitoring: everything below deploy and k8s
	$(GO) vet ./test/deploy/...
	$(GO) test -timeout 30m ./test/deploy/...
	cd test/deploy/compose && $(GO) vet ./... && $(GO) test ./...

k8s-verify: ## every manifest, tried at a real kube-apiserver; builds one, which takes some 6 minutes
	cd test/k8sverify && $(GO) vet ./... && $(GO) test -count=1 -timeout 60m -v ./...

test-readers: ## the files, read by other Parquet readers
	cd test/goreaders && $(GO) vet ./... && $(GO) test -race ./...

test-iceberg: ## tables of the files, in catalogs of three kinds, read back by two readers
	@bash iceberg/setup.sh
	cd iceberg && $(GO) vet ./... && $(GO) test -race -timeout 20m ./...

lint: $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION) ## formatting, vet, linters
	@bad=$$(gofmt -l $$(git ls-files "*.go")); [ -z "$$bad" ] || { echo "not gofmt-ed: $$bad"; exit 1; }
	$(TOOLS)/golangci-lint-$(GOLANGCI_VERSION) run ./...
	cd iceberg && $(TOOLS)/golangci-lint-$(GOLANGCI_VERSION) run ./...
	cd test/bench && $(GO) vet ./...
	$(GO) vet -tags faultpoints ./...

$(TOOLS)/golangci-lint-$(GOLANGCI_VERSION):
	mkdir -p $(TOOLS)
	GOBIN=$(TOOLS) $(GO) install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$(GOLANGCI_VERSION)
	mv $(TOOLS)/golangci-lint $@

bench: setup ## the table of docs/performance.md; BENCH="-only speed" narrows it
	cd test/bench && $(GO) run . $(BENCH)

docs: ## write the generated pages again
	$(GO) generate ./internal/config ./internal/metrics
	UPDATE_DOCS=1 $(GO) test ./internal/doctor -run '^TestDoctorPageIsCurrent$$'
	UPDATE_DOCS=1 $(GO) test ./test -run '^TestReliabilityPageIsCurrent$$'
	UPDATE_DOCS=1 $(GO) test ./test/deploy -run '^TestTheRulesOfKubernetesAreTheSame$$'

fuzz: ## every fuzz target for FUZZTIME each
	@bash test/fuzz.sh $(FUZZTIME)

clean:
	rm -rf bin
