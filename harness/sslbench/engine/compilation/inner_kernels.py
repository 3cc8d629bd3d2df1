"""Inner kernels: functions that only other kernels call are compiled as parts of these.

numba optimizes such a function, makes machine code of it and a wrapper for Python. Then it copies
the function into its caller and optimizes it once more. Here it is only copied: a first run takes
a fifth to a quarter less time. If Python calls the function after all, it is compiled again, as a
whole.

The interfaces are undocumented: this follows `numba.core` of numba 0.68.1.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from llvmlite import binding as llvm  # type: ignore[import-untyped]
from numba.core import codegen, compiler, cpu, dispatcher, environment, lowering, sigutils
from numba.core.compiler_lock import global_compiler_lock

from sslbench.engine.compilation.compile_time import nesting

_Library: Any = codegen.JITCodeLibrary
_Context: Any = cpu.CPUContext
_Lower: Any = lowering.BaseLower
_Dispatcher: Any = dispatcher.Dispatcher
_Result: Any = compiler.CompileResult
_lock: Any = global_compiler_lock
_signature_parts: Any = sigutils.normalize_signature
_environment: Any = environment.lookup_environment
#: kind of a library in the cache
KIND = "inner"


class _NotCalled:
    """In place of the function that Python calls; numba asks for one object per function."""


def is_inner(library: Any) -> bool:
    """Has the function of a library no machine code of its own?"""
    return getattr(library, "is_inner", False)


def compile_inner_with_callers(is_ours: Callable[[], bool]) -> None:
    """Compile inner kernels as parts of their callers, from now on.

    is_ours: whether the outermost function that is being compiled is a kernel of ours.
    """
    _change_libraries(lambda: is_ours() and nesting() > 1)
    _change_dispatchers()


def _change_libraries(inner: Callable[[], bool]) -> None:
    """inner: whether the function that is being compiled is called by another such function."""
    finalize, executable = _Library.finalize, _Context.get_executable
    wrapper, serialize = _Lower.create_cpython_wrapper, _Library.serialize_using_object_code
    unserialize, environments = _Library._unserialize, _Result._find_referenced_environments

    def finalize_or_wait(library: Any) -> None:
        if not inner():
            finalize(library)
            return
        for other in dict.fromkeys(library._linking_libraries):
            library._reload_init.update(other._reload_init)
            library._final_module.link_in(other._get_module_for_linking(), preserve=True)
        library._finalize_dynamic_globals()
        library._finalized = library.is_inner = True

    def executable_or_none(context: Any, library: Any, function: Any, own: Any) -> Any:
        library._ensure_finalized()
        if is_inner(library):
            return _NotCalled()
        made = executable(context, library, function, own)
        for variable in library._final_module.global_variables:  # of the functions in it
            known = _environment(variable.name)
            if known is not None:
                library.codegen.set_env(variable.name, known)
        return made

    def wrapper_or_none(lower: Any, release_gil: bool = False) -> None:
        if not inner():
            wrapper(lower, release_gil)

    def serialize_either(library: Any) -> Any:
        if is_inner(library):
            return library.name, KIND, library._final_module.as_bitcode()
        return serialize(library)

    def unserialize_either(_kind: Any, code: Any, state: Any) -> Any:
        name, kind, data = state
        if kind != KIND:
            return unserialize(code, state)
        library = code.create_library(name)
        library._final_module = llvm.parse_bitcode(data)
        library._finalized = library.is_inner = True
        return library

    def environments_or_none(result: Any) -> Any:
        return [] if is_inner(result.library) else environments(result)

    _Library.finalize = finalize_or_wait
    _Library.serialize_using_object_code = serialize_either
    _Library._unserialize = classmethod(unserialize_either)
    _Result._find_referenced_environments = environments_or_none
    _Context.get_executable = executable_or_none
    _Lower.create_cpython_wrapper = wrapper_or_none


def _change_dispatchers() -> None:
    add, compiled = _Dispatcher.add_overload, _Dispatcher.compile

    def add_for_others(function: Any, result: Any) -> None:
        if is_inner(result.library):
            function.overloads[tuple(result.signature.args)] = result
        else:
            add(function, result)

    def compile_for_caller(function: Any, signature: Any) -> Any:
        with _lock:
            types = tuple(_signature_parts(signature)[0])
            known = function.overloads.get(types)
            if known is not None and is_inner(known.library) and nesting() == 0:
                del function.overloads[types]
            return compiled(function, signature)

    _Dispatcher.add_overload = add_for_others
    _Dispatcher.compile = compile_for_caller
