# Builds the library's code and tests/threads with ThreadSanitizer.  Included by the Makefile.
#
# Kernels and the fiber switching code are compiled without it: ThreadSanitizer assumes one stack
# per thread.  Races in kernels are detected on the software device.

TSAN := $(BUILD)/tsan
TSAN_FLAGS := -std=c++20 -O1 -g1 $(WARN) -Wno-tsan $(INCLUDES) -fsanitize=thread
TSAN_SIM := $(addprefix host/,workers.o tma.o device.o)
TSAN_OBJS := $(PURE_OBJS:$(BUILD)/%=$(TSAN)/%) $(TSAN_SIM:%=$(TSAN)/obj/%)
TSAN_KERNELS := $(filter-out $(TSAN_SIM:%=$(BUILD)/obj/%),$(SIM_OBJS)) $(HOST_OBJS)
# Engines run fibers below these functions, which do not return in the order of their calls.
$(TSAN)/obj/host/%.o: TSAN_FLAGS += --param tsan-instrument-func-entry-exit=0

$(TSAN)/obj/%.o: %.cpp
	$(call compile,TSAN,$(CXX) $(TSAN_FLAGS) $(HIDDEN) $(HOST_DEFINES))
$(TSAN)/tests/%.o: tests/%.cpp
	$(call compile,TSAN,$(CXX) $(TEST_CXXFLAGS) -fsanitize=thread)

$(TSAN)/libmpcore.so: $(TSAN_OBJS) $(TSAN_KERNELS) capi/exports.map
	$(call link,$(CXX) $(LDFLAGS_SO) -fsanitize=thread $(TSAN_OBJS) $(TSAN_KERNELS) $(LDLIBS_HOST))
	$(Q)ln -sf libmpcore.so $@.$(SOMAJOR)
$(TSAN)/tests/threadtests: $(THREADS_OBJS:$(BUILD)/%=$(TSAN)/%) $(TSAN)/libmpcore.so
	$(call link,$(CXX) -fsanitize=thread $(filter %.o,$^) $(LINK_CATCH) -L$(TSAN) -lmpcore $(RPATH) -lpthread)

.PHONY: tsan
## tsan: library calls from many threads under ThreadSanitizer
tsan: $(TSAN)/tests/threadtests
	@$<
