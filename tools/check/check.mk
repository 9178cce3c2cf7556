# Checks that run no tests.  Included by the Makefile.

.PHONY: check without-graph abi-check abi-baseline format cuda-gates kernel-baseline gpu-check
## check: format, layers, English, budgets, headers, bindings, symbols, docs, tables
check: setup-check
	@$(MAKE) lib
	@tools/check/check_format
	@tools/check/check_layers
	@tools/check/check_prose
	@tools/check/count_lines
	@tools/check/check_header $(CC) $(CXX)
	@bindings/generate/generate --check
	@tools/check/check_symbols $(BUILD)/libmpcore.so
	@$(MAKE) without-graph
	@tools/check/check_docs $(BUILD) $(CC)
	@tools/bench_report --figures --check

# Links the library of GRAPH=0 from objects of the default build.
without-graph:
	@$(CXX) $(LDFLAGS_SO) -o $(BUILD)/without_graph.so $(filter-out $(BUILD)/obj/graph/%,$(LIB_OBJS)) $(LDLIBS_SO) && \
	  rm $(BUILD)/without_graph.so && echo "graph: the library links without it"

## abi-check: check that the headers are compatible with the last release of this major version
abi-check:
	@tools/check/abi_check $(CC)

## abi-baseline: write packaging/libmpcore.so.MAJOR.abi, a file of each release
abi-baseline:
	@tools/check/abi_check --write $(CC)

## format: format all files with clang-format
format:
	@tools/check/check_format --fix

# Compiles the kernels' constants with CXX.
KERNEL_REPORT := CXX='$(CXX)' tools/gpu/kernel_report
## cuda-gates: check the CUDA code: no spills, no warnings, no kernel worse than its baseline
cuda-gates: setup-gates
	@$(MAKE) lib
	@$(KERNEL_REPORT) --check $(BUILD)

## kernel-baseline: record registers, memory and instructions of the kernels for cuda-gates
kernel-baseline: setup-gates
	@$(MAKE) lib
	@$(KERNEL_REPORT) --write-baseline $(BUILD)

## gpu-check: on a GPU: tests, sanitizers, bench, profiles (ARGS="--stage tests --minutes 9")
gpu-check: setup-test
	@$(MAKE) tests $(if $(HAVE_CUDA),$(BUILD)/grid_barrier)
	@tools/gpu/gpu_check $(BUILD) $(ARGS)
