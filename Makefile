# Everything a person needs to run, test and measure the gateway.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
COMMIT  ?= $(shell git rev-parse --short=12 HEAD 2>/dev/null || echo unknown)
LDFLAGS  = -s -w -X main.version=$(VERSION) -X main.commit=$(COMMIT)

.DEFAULT_GOAL := help
.PHONY: help build demo test check bench soak stamps aborts limits generate

help: ## show the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "  make %-9s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/gateway, static, without cgo
	@CGO_ENABLED=0 go build -trimpath -ldflags '$(LDFLAGS)' -o bin/gateway ./cmd/gateway

demo: build ## run the gateway with two simulated engines; prints three commands to try
	@exec bin/gateway demo

test: check ## lint, vet and every test, race detector on
	go test -count=1 ./proxy/... ./sse ./wire ./trace/... -run 'Alloc|Memory|HoldNoBuffer'
	go test -race -count=1 -timeout 20m ./...

check: ## formatting, vet, staticcheck, other systems compile
	@test -z "$$(gofmt -l $$(git ls-files '*.go'))" || { gofmt -l $$(git ls-files '*.go'); echo 'gofmt: the files above are not formatted'; exit 1; }
	go vet ./...
	GOOS=darwin go vet ./cmd/gateway ./proxy/...
	go tool -modfile=tools/go.mod staticcheck ./...

bench: build ## measure the gateway beside direct, nginx and a plain fasthttp proxy
	bash bench/bench.sh

soak: ## 10,000 mixed streams under the race detector
	TRACEGATE_SOAK=1 go test -race -count=1 -timeout 20m -run StreamsDoNotMix -v ./proxy

stamps: ## 1,000 requests: the gateway's stamps against the engine's own, in milliseconds
	TRACEGATE_STAMPS=1000 go test -count=1 -run TestStampsAgree -v ./proxy

aborts: ## 1,000 clients that leave: how long until the engine has seen it
	TRACEGATE_ABORTS=1000 go test -count=1 -run TestAbortsReachTheEngine -v ./proxy

limits: ## each limit 20 times on sockets: how late it fires after its value
	TRACEGATE_LIMITS=20 go test -count=1 -run TestLimitsFireOnSockets -v ./proxy

generate: ## regenerate docs/config.md
	go generate ./configs
