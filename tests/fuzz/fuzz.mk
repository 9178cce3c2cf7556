# Fuzzers of the host target (TESTING.md), by clang's libFuzzer.  Included by the Makefile.
#
# Code that reads a caller's arguments is compiled by clang, with AddressSanitizer and UBSan;
# kernels and the simulator are those of the library.

FUZZ := $(BUILD)/fuzz
FUZZ_CXX ?= clang++
FUZZERS := $(addprefix $(FUZZ)/,calls environment scaler_states tuning)
FUZZ_SANITIZERS := address,undefined
FUZZ_LINK = $(FUZZ_CXX) -fsanitize=fuzzer,$(FUZZ_SANITIZERS)
# Without -fsanitize=enum: the library accepts any integer and checks enumerators (enum_value).
FUZZ_FLAGS := -std=c++20 -O1 -g1 $(WARN) -Wno-unknown-pragmas $(INCLUDES) -I$(FUZZ) $(HOST_DEFINES) -fno-omit-frame-pointer \
  -fsanitize=fuzzer-no-link,$(FUZZ_SANITIZERS) -fno-sanitize=enum -fno-sanitize-recover=undefined
FUZZ_OBJS := $(PURE_OBJS:$(BUILD)/%=$(FUZZ)/%)
# These definitions become weak for fuzzers whose kernels do nothing (idle_device.cpp).
REPLACED := $(addprefix host/,device.o workers.o)
FUZZ_KERNELS := $(filter-out $(REPLACED:%=$(BUILD)/obj/%),$(SIM_OBJS)) \
  $(REPLACED:%=$(FUZZ)/weak/%) $(HOST_OBJS)

$(FUZZ)/obj/%.o: %.cpp
	$(call compile,FUZZ,$(FUZZ_CXX) $(FUZZ_FLAGS))

$(FUZZ)/weak/%.o: $(BUILD)/obj/%.o
	@mkdir -p $(@D)
	$(Q)objcopy --wildcard --weaken-symbol='_ZN2mp4host*' $< $@

$(FUZZ)/tests/fuzz/calls.inc: tests/fuzz/generate_calls bindings/generate/header.py $(HEADERS)
	@mkdir -p $(@D)
	$(Q)$< include/mpcore.h > $@
$(FUZZ)/obj/tests/fuzz/calls.o: $(FUZZ)/tests/fuzz/calls.inc
$(FUZZ)/calls: $(addprefix $(FUZZ)/obj/tests/,fuzz/usual_objects.o fuzz/world.o fuzz/idle_device.o support/calls/caller.o support/calls/graph_builder.o)

$(FUZZERS): $(FUZZ)/%: $(FUZZ)/obj/tests/fuzz/%.o $(FUZZ_OBJS) $(FUZZ_KERNELS)
	$(call link,$(FUZZ_LINK) $^ $(LDLIBS_HOST))

# Debian also packages clang without the runtime libraries that this requires.
HAVE_LIBFUZZER = $(shell echo 'extern "C" int LLVMFuzzerTestOneInput(const char *, long) { return 0; }' | \
  $(FUZZ_LINK) -x c++ - -o /dev/null > /dev/null 2>&1 && echo 1)
FUZZ_SECONDS ?= 60
FUZZ_SEED ?= 1

.PHONY: fuzz
## fuzz: fuzz calls, states, environments and tables under ASan and UBSan (FUZZ_SECONDS=60)
fuzz: setup-test
	@$(if $(HAVE_LIBFUZZER),$(MAKE) $(FUZZERS) && tests/fuzz/run --seconds $(FUZZ_SECONDS) --seed $(FUZZ_SEED) $(BUILD), \
	  echo "skipped: fuzzers (no $(FUZZ_CXX) with libFuzzer)" && echo "0 passed, 0 failed, 1 skipped")
