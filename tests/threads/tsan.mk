# Builds the library's code and tests/threads with ThreadSanitizer.  Included by the Makefile.
#
# Kernels and the fiber switching code are compiled without it: ThreadSanitizer assumes one stack
# per thread; the race detector (make race) supports fibers.

TSAN := $(BUILD)/tsan
TSAN_FLAGS := -std=c++20 -O1 -g1 $(WARN) -Wno-tsan $(INCLUDES) -fsanitize=thread
TSAN_SIM := $(addprefix host/,workers.o mode.o tensor_box.o device.o)
TSAN_OBJS := $(PURE_CPP:%.cpp=$(TSAN)/obj/%.o) $(TSAN_SIM:%=$(TSAN)/obj/%)
TSAN_KERNELS := $(filter-out $(TSAN_SIM:%=$(BUILD)/obj/%),$(SIM_CPP:%.cpp=$(BUILD)/obj/%.o)) $(HOST_OBJS)
# Engines run fibers below these functions, which do not return in the order of their calls.
$(TSAN)/obj/host/%.o: TSAN_FLAGS += --param tsan-instrument-func-entry-exit=0

$(TSAN)/obj/%.o: %.cpp
	@mkdir -p $(@D)
	@echo "  TSAN $<"
	$(Q)$(CXX) $(TSAN_FLAGS) $(HIDDEN) $(HOST_DEFINES) -MMD -MP -c $< -o $@
$(TSAN)/tests/%.o: tests/%.cpp
	@mkdir -p $(@D)
	@echo "  TSAN $<"
	$(Q)$(CXX) $(TEST_CXXFLAGS) -fsanitize=thread -MMD -MP -c $< -o $@

$(TSAN)/libmpcore.so: $(TSAN_OBJS) $(TSAN_KERNELS) capi/exports.map
	@echo "  LINK $@"
	$(Q)$(CXX) $(LDFLAGS_SO) -fsanitize=thread -o $@ $(TSAN_OBJS) $(TSAN_KERNELS) -l:libboost_context.a -lpthread -ldl
	$(Q)ln -sf libmpcore.so $@.$(SOMAJOR)
$(TSAN)/tests/threadtests: $(THREADS_CPP:%.cpp=$(TSAN)/%.o) $(TSAN)/libmpcore.so
	@echo "  LINK $@"
	$(Q)$(CXX) -fsanitize=thread $(THREADS_CPP:%.cpp=$(TSAN)/%.o) $(LINK_CATCH) -L$(TSAN) -lmpcore $(RPATH) -lpthread -o $@

.PHONY: tsan
## tsan: library calls from many threads under ThreadSanitizer
tsan: $(TSAN)/tests/threadtests
	@$<
