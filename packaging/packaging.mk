# Installs the library, builds packages, and generates bindings and documentation.  Included by the
# Makefile.

PREFIX ?= /usr/local
LIBDIR ?= lib

.PHONY: bindings docs install uninstall deb wheel
INSTALL_TREE = tools/package/install --build '$(BUILD)' --prefix '$(PREFIX)' --libdir '$(LIBDIR)' --destdir '$(DESTDIR)'
## install: install library, headers, tools, docs, pkg-config and CMake files under PREFIX
install: setup-install
	@$(MAKE) lib $(INSTALLED)
	@$(INSTALL_TREE)

## uninstall: remove the installed files, given the same PREFIX
uninstall:
	@$(INSTALL_TREE) --uninstall

## deb: Debian package in build/
deb: setup-install setup-deb
	@$(MAKE) lib $(INSTALLED)
	@tools/package/make_deb $(BUILD)

# The wheel's library links libstdc++ statically, because the installed version may be older than
# this compiler.  Unused sections are removed, and with them symbols that libstdc++.a requires from
# a newer C library.
WHEEL_LIB := $(BUILD)/wheel/libmpcore.so.$(VERSION)
$(WHEEL_LIB): private LDFLAGS_SO += -static-libstdc++ -Wl,--gc-sections
$(WHEEL_LIB): $(LIB_OBJS) capi/exports.map
	$(call link,$(CXX) $(LDFLAGS_SO) $(LIB_OBJS) $(LDLIBS_SO))
## wheel: Python package with the library: build/mpcore-*.whl
wheel: setup-wheel
	@$(MAKE) $(WHEEL_LIB)
	@tools/package/make_wheel $(WHEEL_LIB) $(BUILD)

## docs: HTML manual from docs/ and the headers: build/docs/html/index.html
docs: setup-docs
	@tools/docs/make_docs $(BUILD)/docs

## bindings: generate the raw bindings in bindings/ from the public headers
bindings:
	@bindings/generate/generate
