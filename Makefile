# Every target does its own set-up first; `make help` lists them. The work is in scripts/, CMake does the building.

.DEFAULT_GOAL := build
.PHONY: build setup test test-full demo install clean format help

PREFIX ?= /usr/local
CMAKE := .venv/bin/cmake

build:   ## build into build/ (build/bin/thalweg, build/lib/libthalweg-*.so)
	@scripts/build release

setup:   ## only install what building and testing need
	@scripts/setup

test:    ## set up, build, run every test once (25 minutes on 2 cores, installs included)
	@scripts/test

test-full: ## the long jobs too: sanitizers, soaks, lab tables, a fresh machine; goes on where it was cut off
	@scripts/test-full

demo:    ## one broadcast program with and without Thalweg: a table and a plot
	@scripts/demo

install: build ## install under PREFIX (default /usr/local); DESTDIR is honoured
	@$(CMAKE) --install build --prefix "$(PREFIX)"

format: setup ## rewrite the C and C++ sources with .clang-format
	@git ls-files -z '*.c' '*.h' '*.cpp' '*.hpp' | xargs -0 .venv/bin/clang-format -i

clean:   ## remove what was built, keep what was installed
	@rm -rf build build-debug build-tsan demo-output

help:    ## this list
	@sed -n 's/^\([a-z-]*\):[^#]*## \(.*\)/  make \1|\2/p' $(firstword $(MAKEFILE_LIST)) | \
	while IFS='|' read -r name text; do printf '%-18s %s\n' "$$name" "$$text"; done
