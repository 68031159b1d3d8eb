# Penstock. "make" alone lists what there is; README.md says what it is for.

.DEFAULT_GOAL := help
SHELL := /bin/bash

STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
FUZZTIME ?= 20s
BENCHTIME ?= 1s

.PHONY: help deps build demo docs test test-peers test-arm64 test-gpu test-hdfs lint bench bench-peers bench-hdf5 bench-remote bench-docs gpu gpu-build fuzz release rehearse wheel roots generate clean

help: ## list these targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' Makefile

deps: ## install what the build and the tests need, where that is possible (.ci/deps python: torch and others for .ci/run, 8 GB)
	@.ci/deps

build: ## build the commands into bin/, with libhdf5, libdeflate and libzstd where they are found (NOCLOUD=1: no buckets, 50 MB less)
	@echo "build: the commands; the first time takes 5 minutes of CPU"
	@eval "$$(.ci/env)" && mkdir -p bin && go build -tags "$$CODECS,$(if $(NOCLOUD),nocloud)" -o bin/ ./cmd/feed ./cmd/inspect ./cmd/loadbench ./cmd/penstock ./cmd/preprocess
	@echo "build: $$(cd bin && echo *) in bin/"

demo: deps build ## raw images to datasets, inspected, previewed and trained from, in out/
	@.ci/demo

test: deps ## every test, with what this machine has
	@.ci/test

engines: ## the examples of Slurm, Spark, Ray and Dask on these engines, with workers killed and ranks run twice (ENGINES="dask", TIMES=3)
	@.ci/engines $(SOURCE)

test-peers: ## random cases against torch, torchvision, pandas and others (after .ci/deps python, or PYTHON=one that has them; PEERS_CASES=20000)
	@.ci/peers

test-arm64: ## kernels for arm64 under qemu, and datasets with the bytes of amd64's
	@.ci/arm64

test-gpu: ## tests of loader/cuda on a real NVIDIA device; skips, saying why, where there is none
	PENSTOCK_GPU=1 go test -count=1 -v -run '^TestGPU' ./loader/cuda

test-hdfs: ## reading, building and training on a real HDFS of three processes, one of which is killed (needs Java, and Maven once)
	@.ci/hdfs

lint: ## gofmt, go vet, staticcheck, shellcheck; ruff, mypy and pyright, if .ci/deps python was run
	@.ci/lint $(STATICCHECK)

bench: ## ratios against image/jpeg, imaging, libjpeg-turbo and copy(), then the Go benchmarks of every package
	@bench/run ratios
	@eval "$$(.ci/env)" && go test -run '^$$' -bench . -benchmem -benchtime $(BENCHTIME) ./...

bench-peers: ## ratios against Pillow, OpenCV, torchvision, PyTorch, h5py, gonum, Grain, DALI, FFCV, SPDL, tf.data and others (PYTHON=one with NumPy, h5py, torch)
	@bench/run peers

bench-hdf5: ## ratios of reading HDF5 against h5py and gonum, of bench-peers (PYTHON=A,B: two versions of h5py)
	@bench/run hdf5

bench-docs: ## measure all that docs/benchmarks.md tells, about 25 minutes on an idle machine, and write it there
	@bench/run docs

bench-remote: ## training over a shaped link (RTT_MS=50, LINK_MBS=200) from versitygw, which is installed
	go install github.com/versity/versitygw/cmd/versitygw@v1.8.0
	cd cmd/internal/s3test && go test -run '^$$' -bench Link -benchtime 1x ./...

gpu: gpu-build ## correctness, rates and training on a GPU, each line with a verdict, in 25 minutes; skips, saying so, where there is none
	$(or $(PYTHON),python3) bin/gpu/gpu.py

gpu-build: ## bin/gpu: what "make gpu" runs, to be copied to a machine without Go: python3 gpu.py
	@bench/gpu/build

docs: ## the documentation site, in out/site: guides, commands, the Python API (needs Python 3.11 with venv, and PyPI once)
	@.ci/docs

fuzz: ## every fuzz target, one after the other (FUZZTIME=20s each)
	@.ci/fuzz $(FUZZTIME)

release: ## wheels, archives, packages, SBOM and checksums for all systems, in dist/ (RELEASE="--only linux-amd64")
	@.ci/release $(RELEASE)

rehearse: ## two releases from this commit by a local package index and Go proxy, installed as a stranger would (Linux on x86-64)
	@.ci/rehearse

wheel: ## the wheel of this Linux machine, in dist/; needs Go and Python 3.11 with venv, no C (WHEEL="--codecs go": fetches no zig from PyPI)
	@.ci/wheel $(WHEEL)

roots: ## install the wheels of dist/ in systems without Go, C and rights, by debootstrap, as root (ROOTS="FOLDER...": those)
	@.ci/roots $(ROOTS)

generate: ## make the generated files again: assembly, test images, docs/cli.md
	go generate ./...
	go run ./testdata/gen
	dir=$$(mktemp -d) && go run -tags nocloud ./cmd/internal/man "$$dir" && cp "$$dir/cli.md" docs/cli.md && rm -rf "$$dir"

clean: ## remove bin/, out/ and dist/
	[ ! -d out ] || chmod -R u+w out
	rm -rf bin out dist
