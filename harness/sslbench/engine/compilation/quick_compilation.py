"""Less work for numba's compiler, a third of the time of a first run; see `inner_kernels`, too.

The garbage collector rests while a kernel is compiled: it would walk through numba's tables again
and again. LLVM's passes over single functions are left out. The first passes over the whole module
put variables into registers instead, before they rotate loops.

The interface of code libraries is undocumented: it follows `numba.core.codegen` of numba 0.68.1.
"""

from __future__ import annotations

import gc
from functools import cache
from typing import Any

from numba.core import codegen, event, ir, targetconfig

from sslbench.engine.compilation.compile_time import nesting
from sslbench.engine.compilation.inner_kernels import compile_inner_with_callers

_Library: Any = codegen.CPUCodeLibrary
_Codegen: Any = codegen.CPUCodegen
_refprune_flags: Any = codegen._parse_refprune_flags
_Listener: Any = event.Listener
_Options: Any = targetconfig.TargetConfig
_ir: Any = ir
#: most values in an instruction
_NO_VARIABLE = {str, int, bool, type(None), _ir.Loc}


class _Quick(_Listener):  # type: ignore[misc]
    """Notes whether the outermost function that is being compiled is a kernel of ours."""

    def __init__(self, kernel_cache: type) -> None:
        self.ours = False
        self._kernel_cache = kernel_cache
        self._collects = False

    def on_start(self, event: Any) -> None:
        if nesting() == 1:
            self.ours = isinstance(event.data["dispatcher"]._cache, self._kernel_cache)
            self._collects = gc.isenabled()
            gc.disable()

    def on_end(self, event: Any) -> None:
        if nesting() == 0:
            self.ours = False
            if self._collects:
                gc.enable()


@cache
def _defaults(kind: Any) -> dict[str, Any]:
    return {name: option.default for name, option in kind.options.items()}


def _values(options: Any) -> dict[str, Any]:
    """`TargetConfig.values` without a property for each: 1,100,000 in a first run."""
    kind: Any = type(options)
    return {**_defaults(kind), **options._values}


def _variables(instruction: Any, value: Any) -> list[Any]:
    """`Inst._rec_list_vars` without a call for each number and text: 800,000 in a first run."""
    found: list[Any] = []
    waiting = [value]
    while waiting:
        value = waiting.pop()
        if isinstance(value, _ir.Var):
            found.append(value)
        elif isinstance(value, _ir.Inst):
            found += value.list_vars()
        elif isinstance(value, dict | list | tuple):
            parts = list(value.values() if isinstance(value, dict) else value)
            waiting += [each for each in reversed(parts) if type(each) not in _NO_VARIABLE]
    return found


def compile_quickly(kernel_cache: type) -> None:
    """From now on, compile functions whose cache is of this class with less work.

    `compile_time.start_clock` comes first: nesting is counted there.
    """
    quick, optimize = _Quick(kernel_cache), _Library._optimize_functions
    pass_manager = _Codegen._module_pass_manager
    register: Any = event.register
    register("numba:compile", quick)
    compile_inner_with_callers(lambda: quick.ours)

    def optimize_functions(library: Any, module: Any) -> None:
        if quick.ours:
            module.data_layout = library._codegen._data_layout
        else:
            optimize(library, module)

    def module_pass_manager(self: Any, **options: Any) -> Any:
        if not quick.ours or options.get("cost") != "cheap":
            return pass_manager(self, **options)
        builder = self._pass_builder(**{k: v for k, v in options.items() if k != "cost"})
        passes = builder.getModulePassManager()
        passes.add_sroa_pass()
        passes.add_simplify_cfg_pass()
        passes.add_loop_rotate_pass()
        passes.add_instruction_combine_pass()
        passes.add_jump_threading_pass()
        passes.add_refprune_pass(_refprune_flags())
        return passes, builder

    _Library._optimize_functions = optimize_functions
    _Options.values = _values
    _ir.Inst._rec_list_vars = _variables
    _Codegen._module_pass_manager = module_pass_manager
