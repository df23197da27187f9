# The commands of this repository. `make` or `make help` lists them.

GO       ?= go
FIXTURES ?= ../shared/fixtures/openarmature

.PHONY: help
help: ## list the commands
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.DEFAULT_GOAL := help

.PHONY: build
build: ## build the binary ./bot
	CGO_ENABLED=0 $(GO) build -trimpath -o bot ./cmd/bot

.PHONY: playground
playground: ## open the playground: the bot in a small Slack, in a browser
	$(GO) run ./cmd/bot playground

.PHONY: test
test: ## all tests under the race detector, with the short form of the crash test
	$(GO) vet ./...
	$(GO) test -race -shuffle=on -timeout 10m ./...

.PHONY: crash
crash: ## the long crash test: 200 turns and 50 approvals under at least 100 kills
	PARLEY_CRASH=long $(GO) test -race -count=1 -timeout 30m -run 'TestNothingIsLostAndNothingIsSaidTwice' -v ./cmd/bot

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME each (default 1m)
	./.ci/fuzz $(or $(FUZZTIME),1m)

.PHONY: bench
bench: ## the benchmarks, with allocations
	$(GO) test -run '^$$' -bench . -benchmem ./...

.PHONY: conformance
conformance: ## run the OpenArmature fixtures in FIXTURES, over memory and over bolt
	$(GO) run ./cmd/bot conformance $(FIXTURES)/harness $(FIXTURES)/harness-chat
	$(GO) run ./cmd/bot conformance -store bolt $(FIXTURES)/harness $(FIXTURES)/harness-chat

.PHONY: lint
lint: ## golangci-lint, if it is installed
	golangci-lint run
