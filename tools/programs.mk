# Builds mpdemo and mpinfo, and runs the demo.  The rules also apply to the programs of bench/.
# Included by the Makefile.

TOOL_CXXFLAGS := -std=c++20 -O2 -fPIE $(WARN) $(INCLUDES) $(HARDENED)
LINK_PROGRAM := -pie $(LINK_NOW) $(SAN_FLAGS)
RPATH := -Wl,-rpath,'$$ORIGIN/..' -Wl,-rpath,'$$ORIGIN'
LINK_LIB := -L$(BUILD) -lmpcore $(RPATH)

$(call precompiled,tools).gch: support/precompiled.h $(BUILD)/flags_hardened
	$(call precompile,$(TOOL_CXXFLAGS))
# Objects of other folders have rules with a longer prefix.
$(BUILD)/%.o: %.cpp $(call precompiled,tools).gch
	$(call compile,CXX ,$(CXX) -include $(call precompiled,tools) $(TOOL_CXXFLAGS))

DEMO_OBJS := $(call objects,,tools/mpdemo)
INFO_OBJS := $(call objects,,tools/mpinfo)
PROGRAMS := $(addprefix $(BUILD)/,mpdemo mpinfo mpbench mptune)
$(BUILD)/mpdemo: $(DEMO_OBJS)
$(BUILD)/mpinfo: $(INFO_OBJS)
$(BUILD)/mpdemo $(BUILD)/installed/mpdemo: private PROGRAM_LIBS := -lz -ldl -lpthread
$(PROGRAMS): $(LIB)
	$(call link,$(CXX) $(LINK_PROGRAM) $(filter %.o,$^) $(LINK_LIB) $(PROGRAM_LIBS))

# The same programs for PREFIX/bin.
INSTALLED := $(BUILD)/installed/mpinfo $(BUILD)/installed/mpdemo
$(BUILD)/installed/mpdemo: $(DEMO_OBJS)
$(BUILD)/installed/mpinfo: $(INFO_OBJS)
$(INSTALLED): private LINK_LIB := -L$(BUILD) -lmpcore -Wl,-rpath,'$$ORIGIN/../lib'
$(INSTALLED): $(BUILD)/installed/%: $(BUILD)/%
	$(call link,$(CXX) $(LINK_PROGRAM) $(filter %.o,$^) $(LINK_LIB) $(PROGRAM_LIBS))

.PHONY: demo parity compile_commands.json
## demo: train on Fashion-MNIST in FP32 and mixed precision and compare (ARGS="--epochs 1")
demo: setup-demo
	$(BUILD_LOCAL) $(BUILD)/mpdemo
	@$(BUILD)/mpdemo --out $(BUILD)/demo $(ARGS)

## parity: compare the demo's networks in FP32, FP16 and BF16: docs/parity.md (ARGS=--check)
parity: setup-parity
	$(BUILD_LOCAL) $(BUILD)/mpdemo
	@tools/parity --build $(BUILD) $(ARGS)

## compile_commands.json: compilation database for clangd and other clang tools
compile_commands.json:
	@$(MAKE) -Bn V=1 NVCC= $(LIB) $(TEST_BINS) $(PROGRAMS) | tools/compile_commands > $@
