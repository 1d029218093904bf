# Yeolda. `make run` starts everything with demo data, `make test` runs every test; `make help` lists the rest.
MODULES := protocol agent cloud firmware-sim firmware-sim/testkit
BIN     := bin
VERSION := $(shell git describe --always --dirty 2>/dev/null || echo dev)
LDFLAGS := -s -w -X main.version=$(VERSION)

# The encoders of photos are WebAssembly in every build; without the tag they would load libraries of the machine.
export GOFLAGS += -tags=nodynamic
# As in the released programs; with one setting for all, each package is compiled once.
export CGO_ENABLED ?= 0

.DEFAULT_GOAL := help
.PHONY: $(shell awk -F: '/^[a-z-]+:/ {print $$1}' Makefile)

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build the programs for release into bin/
	@mkdir -p $(BIN)
	@go build -trimpath -ldflags '$(LDFLAGS)' -o $(BIN)/ ./cloud/cmd/... ./agent/cmd/... ./firmware-sim/cmd/...

# Without the flags of a release: what the tests have compiled is used again.
run: ## start everything with demo data; Ctrl-C stops it
	@mkdir -p $(BIN)
	@go build -o $(BIN)/ ./cloud/cmd/yeolda ./cloud/cmd/yeolda-sandbox ./firmware-sim/cmd/yeolda-sim
	@exec deploy/demo/run.sh

# Never from the cache: the tests that run whole programs do not show it what those are made of. vet is a target of its own.
# The tests that wait most come first, so that others use the processors meanwhile.
test: ## run every test
	@deploy/demo/install.sh
	@go test -vet=off -count=1 -timeout 30m ./firmware-sim/e2e ./firmware-sim/proof work

# Without databases (-short), the browser, whole programs, QEMU, npm and simulations. Results are cached.
SLOW := firmware-sim/e2e|firmware-sim/proof$$|firmware-sim/internal/(branch|light|panel)|/torture|sim$$|agent/hwtest|/cmd/|/pgserver|/pgtest|/integrators

check: vet ## formatting, vet and the fast tests, in about a minute with a warm cache
	@test -z "$$(gofmt -l $(MODULES))" || { gofmt -l $(MODULES); echo 'run gofmt -w'; exit 1; }
	@go test -short $$(go list work | grep -vE '$(SLOW)')

vet: ## go vet in all modules
	@go vet work

race: ## run every test under the race detector
	@deploy/demo/install.sh
	@CGO_ENABLED=1 go test -race -count=1 -timeout 40m work

flaky: ## run each package RUNS=50 times alone and LOADED=10 times beside load (RACE=1, PACKAGES=./x/..., RUN=TestX)
	@deploy/demo/install.sh
	@RUNS=$(RUNS) LOADED=$(LOADED) RACE=$(RACE) PACKAGES="$(PACKAGES)" RUN="$(RUN)" deploy/flaky.sh

calendar: ## run the tests at other dates (DATES="2028-02-29T14:59Z", PACKAGES=./x/..., RUN=TestX): ends of months and years, 29 February
	@deploy/demo/install.sh
	@DATES="$(DATES)" PACKAGES="$(PACKAGES)" RUN="$(RUN)" deploy/calendar.sh

hwtest: ## run the agent on a real Linux kernel, and its package on Debian, in QEMU (no root, no KVM; QUICK=1: the kernel only)
	@agent/hwtest/run.sh
	@$(if $(QUICK)$(HWTEST_RUN),,agent/hwtest/debian/run.sh)

debiantest: ## run the agent's package on Debian with systemd in QEMU, through the accidents of a Pi (30 minutes; no root, no KVM)
	@agent/hwtest/debian/run.sh

waves: ## have AGENTS=500 simulated agents try bad settings and a bad version: each stops at the first wave and returns
	@YEOLDA_TEST_WAVES=$(or $(AGENTS),500) go test -count=1 -timeout 30m -v -run '^TestWaves$$' ./firmware-sim/e2e

screenshots: ## write a picture of every screen, phone and desktop, to screenshots/ (needs chromium, npm)
	@deploy/demo/install.sh
	@npm install --no-save --silent --no-audit --no-fund --prefix cloud/internal/web
	@E2E_REQUIRED=1 SCREENSHOTS=$(CURDIR)/screenshots go test -count=1 -run 'TestWeb|TestConsole' -skip TestConsoleFrames ./firmware-sim/e2e

clients: ## generate the Go client in cloud/client from openapi.yaml
	@go run ./cloud/internal/clientgen/generate

typecheck: ## check the types of the browser code (needs npm)
	@npm install --no-save --silent --no-audit --no-fund --prefix cloud/internal/web
	@npm run --silent --prefix cloud/internal/web typecheck

browserlint: ## check the format and style of the browser code with Biome (needs npm; `npm run format` there fixes it)
	@npm install --no-save --silent --no-audit --no-fund --prefix cloud/internal/web
	@npm run --silent --prefix cloud/internal/web lint

attack: ## run the attacks that SECURITY.md names against the whole service (PROXY=1: then behind the shipped proxy, with a Caddy built here)
	@go test -count=1 ./cloud/internal/attack
	@$(if $(PROXY),deploy/caddy/attack.sh)

# -flood is the rate of each of two networks. Loopback addresses only: 127.9.9.0/24 and ::1.
pressure: ## measure logins, doors, agents and guests during attacks (10,000 guesses, bombs, connections, slow bodies; needs 50,000 files)
	@ulimit -n 60000 2>/dev/null || true; \
	go test -count=1 -v -run '^TestCalendarBombs$$' ./cloud/internal/channel -bombs 1000 && \
	go test -count=1 -v -run '^TestAgentsReturnDuringFlood$$' ./cloud/internal/broker -flood 5000 -agents 200 && \
	go test -count=1 -v -run '^TestSlowBodiesOfANetwork$$' ./cloud/internal/service -slow-bodies 20000 && \
	go test -count=1 -v -run '^$$' -bench . -benchtime 1x ./cloud/internal/attack

chaos: ## press 10,000 door buttons while networks and power fail (YEOLDA_CHAOS_SEED repeats the faults)
	@deploy/demo/install.sh
	@YEOLDA_CHAOS_REQUESTS=$${YEOLDA_CHAOS_REQUESTS:-10000} go test ./firmware-sim/e2e -count 1 -v -timeout 60m -run '^TestDoorsUnderFaults$$'

patronitest: ## lose the primary of three database servers under load (root; packages patroni, etcd-server, mosquitto, postgresql-15)
	@YEOLDA_TEST_PATRONI=1 go test ./firmware-sim/e2e -count=1 -v -timeout 30m -run '^TestPatroni$$'

lint: vet ## vet, formatting and golangci-lint
	@test -z "$$(gofmt -l $(MODULES))" || { gofmt -l $(MODULES); echo 'run gofmt -w'; exit 1; }
	@for m in $(MODULES); do (cd $$m && go run github.com/golangci/golangci-lint/v2/cmd/golangci-lint@v2.15.0 run ./...) || exit 1; done

bench: ## measure the agent at rest, the whole path, holds, look-ups (medians of 3) and pages on a slow phone (needs chromium)
	@deploy/demo/install.sh
	@go test ./agent/cmd/yeolda-agent -run '^$$' -bench . -benchtime 1x
	@go run ./firmware-sim/cmd/yeolda-bench
	@go test ./cloud/internal/postgres ./cloud/internal/httpapi -run '^$$' -bench . -benchtime 1x -timeout 30m
	@go test ./firmware-sim/e2e -run '^$$' -bench . -benchtime 9x

FLEET ?= 1000,5000,20000,50000,100000

fleet: ## measure one service with so many light agents (FLEET) and write docs/proof/parts/fleet.json
	@deploy/demo/install.sh
	@mkdir -p docs/proof/parts
	@go run ./firmware-sim/cmd/yeolda-bench -fleet $(FLEET) -json docs/proof/parts/fleet.json

# PARTS are what runs before the simulations, the race and the soak. What an earlier run has left in docs/proof/parts is
# shown too, with its date, so PARTS= makes a report with the figures of the last bench and mutation.
PARTS ?= bench mutation

# POOL is another set of brokers for the soak: mosquittos (two) or embedded (those of three replicas). Its part is kept beside the others.
proof: ## the report, which can be repeated: bench, mutation (PARTS), simulations, race and soak (SOAK=15m, SEED to repeat one, POOL)
	@deploy/demo/install.sh
	@mkdir -p $(BIN) docs/proof/parts
	@go build -o $(BIN)/ ./firmware-sim/cmd/yeolda-proof
	@$(if $(filter bench,$(PARTS)),go run ./firmware-sim/cmd/yeolda-bench -json docs/proof/parts/bench.json)
	@$(if $(filter mutation,$(PARTS)),$(MAKE) --no-print-directory mutation)
	@$(BIN)/yeolda-proof -for $(or $(SOAK),15m) $(if $(SEED),-seed $(SEED)) $(if $(POOL),-pool $(POOL))

torture: ## crash the payment side at each of its points RUNS (default 20) times and print the table
	@mkdir -p $(BIN)
	@go test -c -o $(BIN)/torture ./cloud/internal/torture
	@$(BIN)/torture -torture $(or $(RUNS),20) -haste $(or $(HASTE),1) -test.parallel 10 -test.timeout 6h

fuzz: ## run every fuzz target for FUZZTIME (default 20s) each
	@deploy/fuzz.sh $(or $(FUZZTIME),20s)

mutation: ## change the core in small places and count what its tests notice; writes docs/proof/parts/mutation.json
	@nice go run ./firmware-sim/proof/mutation

defences: ## remove the defence of each row of SECURITY.md (ROWS="A5 A6") and demand that a test fails
	@nice go run ./firmware-sim/proof/mutation defences $(ROWS)

model: ## check the model of the door exchange (needs spin and a C compiler)
	@protocol/model/check.sh

conformance: ## what others test HTTP/2 servers and event streams with
	@deploy/conformance.sh

validate: ## read compose.yaml and kubernetes/ with their own libraries (needs kubectl)
	@deploy/validate.sh

deb: ## build the packages of the service (amd64, arm64) and of the agent (arm64, armhf, amd64) into bin/
	@deploy/package.sh $(BIN)
	@deploy/agent/package.sh $(BIN)

sbom: build ## write the bill of materials of each released program (CycloneDX) into bin/
	@for p in yeolda yeoldactl yeolda-sandbox yeolda-agent yeolda-sim; do \
		go run github.com/CycloneDX/cyclonedx-gomod/cmd/cyclonedx-gomod@v1.9.0 bin -json -output $(BIN)/$$p.cdx.json $(BIN)/$$p && \
		echo $(BIN)/$$p.cdx.json || exit 1; done

prose: ## check the English of comments, errors and documents (needs a C compiler), or of one folder: make prose DIR=cloud/internal/reserve
	@git ls-files -co --exclude-standard -- $(or $(DIR),.) | grep -E '\.(go|tsx?|sql|sh|md|ya?ml)$$' | grep -vE '^\.vale/|\.gen\.go$$' | \
		xargs -r env CGO_ENABLED=1 go run github.com/vale-cli/vale/v3/cmd/vale@v3.22.0 --output line

vulncheck: ## look for known weaknesses in what the programs use (needs vuln.go.dev)
	@for m in $(MODULES); do (cd $$m && go run golang.org/x/vuln/cmd/govulncheck@v1.1.4 ./...) || exit 1; done

verify: lint race model ## lint, race and model; what a change must pass is .ci/run

tidy: ## bring go.mod and go.sum in line
	@for m in $(MODULES); do (cd $$m && GOWORK=off go mod tidy) || exit 1; done

clean: ## remove built programs and demo data
	@if [ -L data/postgres ]; then case "$$(readlink data/postgres)" in /var/lib/yeolda-*|/var/tmp/yeolda-*) rm -rf "$$(readlink data/postgres)";; esac; fi
	@rm -rf $(BIN) data
