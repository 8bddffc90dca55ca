// Threads that Python ends. Before 3.14 a daemon thread that takes the GIL while the interpreter
// ends, which any call into Python may do, is ended by pthread_exit. That unwinds its stack, and
// where a C++ destructor or noexcept function stands in the way the process aborts. So every
// function of Python that this module calls and that may run Python code or take the GIL is called
// through a wrapper (the linker's --wrap; python/CMakeLists.txt reads the names below), which the
// unwinding does not leave: the thread stays there until the process ends, as it does in 3.14.
#include <Python.h>
#include <cxxabi.h>
#include <unistd.h>

namespace {

template <class Call>
auto stay(Call&& call) {
  try {
    return call();
  } catch (abi::__forced_unwind&) {
    while (true) pause();
  }
}

}  // namespace

// clang-format off
#define STAY(Result, name, parameters, arguments)            \
  extern "C" Result __real_##name parameters;                \
  extern "C" Result __wrap_##name parameters;                \
  extern "C" Result __wrap_##name parameters {               \
    return stay([&] { return __real_##name arguments; });    \
  }

STAY(PyGILState_STATE, PyGILState_Ensure, (), ())
STAY(void, PyEval_RestoreThread, (PyThreadState* a), (a))

STAY(PyObject*, PyObject_Vectorcall, (PyObject* a, PyObject* const* b, size_t c, PyObject* d), (a, b, c, d))
STAY(PyObject*, PyObject_VectorcallMethod, (PyObject* a, PyObject* const* b, size_t c, PyObject* d), (a, b, c, d))
STAY(PyObject*, PyVectorcall_Call, (PyObject* a, PyObject* b, PyObject* c), (a, b, c))
STAY(PyObject*, PyEval_EvalCode, (PyObject* a, PyObject* b, PyObject* c), (a, b, c))
STAY(PyObject*, PyImport_ImportModule, (const char* a), (a))
STAY(int, PyErr_CheckSignals, (), ())
STAY(void, PyErr_NormalizeException, (PyObject** a, PyObject** b, PyObject** c), (a, b, c))
STAY(void, PyErr_WriteUnraisable, (PyObject* a), (a))

STAY(PyObject*, PyObject_Str, (PyObject* a), (a))
STAY(PyObject*, PyObject_Repr, (PyObject* a), (a))
STAY(PyObject*, PyObject_GetAttr, (PyObject* a, PyObject* b), (a, b))
STAY(PyObject*, PyObject_GetAttrString, (PyObject* a, const char* b), (a, b))
STAY(int, PyObject_SetAttr, (PyObject* a, PyObject* b, PyObject* c), (a, b, c))
STAY(int, PyObject_SetAttrString, (PyObject* a, const char* b, PyObject* c), (a, b, c))
STAY(int, PyObject_HasAttr, (PyObject* a, PyObject* b), (a, b))
STAY(int, PyObject_HasAttrString, (PyObject* a, const char* b), (a, b))
STAY(PyObject*, PyObject_GetItem, (PyObject* a, PyObject* b), (a, b))
STAY(int, PyObject_SetItem, (PyObject* a, PyObject* b, PyObject* c), (a, b, c))
STAY(int, PyObject_DelItem, (PyObject* a, PyObject* b), (a, b))
STAY(Py_ssize_t, PyObject_Size, (PyObject* a), (a))
STAY(int, PyObject_IsTrue, (PyObject* a), (a))
STAY(int, PyObject_IsInstance, (PyObject* a, PyObject* b), (a, b))
STAY(int, PyObject_IsSubclass, (PyObject* a, PyObject* b), (a, b))
STAY(int, PyObject_RichCompareBool, (PyObject* a, PyObject* b, int c), (a, b, c))
STAY(PyObject*, PyObject_GetIter, (PyObject* a), (a))
STAY(PyObject*, PyIter_Next, (PyObject* a), (a))
STAY(int, PyObject_GetBuffer, (PyObject* a, Py_buffer* b, int c), (a, b, c))
STAY(void, PyBuffer_Release, (Py_buffer* a), (a))
STAY(PyObject*, PyMemoryView_FromObject, (PyObject* a), (a))
STAY(PyObject*, PyOS_FSPath, (PyObject* a), (a))

STAY(PyObject*, PyNumber_Index, (PyObject* a), (a))
STAY(PyObject*, PyNumber_Float, (PyObject* a), (a))
STAY(PyObject*, PyNumber_Long, (PyObject* a), (a))
STAY(Py_ssize_t, PyNumber_AsSsize_t, (PyObject* a, PyObject* b), (a, b))
STAY(double, PyFloat_AsDouble, (PyObject* a), (a))
STAY(PyObject*, PySequence_List, (PyObject* a), (a))
STAY(PyObject*, PySequence_Tuple, (PyObject* a), (a))
STAY(PyObject*, PySequence_GetItem, (PyObject* a, Py_ssize_t b), (a, b))
STAY(Py_ssize_t, PySequence_Size, (PyObject* a), (a))
STAY(int, PySequence_Contains, (PyObject* a, PyObject* b), (a, b))
STAY(PyObject*, PyMapping_Items, (PyObject* a), (a))
STAY(PyObject*, PyDict_GetItemWithError, (PyObject* a, PyObject* b), (a, b))
STAY(int, PyDict_SetItem, (PyObject* a, PyObject* b, PyObject* c), (a, b, c))
STAY(int, PyDict_Contains, (PyObject* a, PyObject* b), (a, b))
STAY(int, PyDict_DelItem, (PyObject* a, PyObject* b), (a, b))
STAY(int, PyDict_Update, (PyObject* a, PyObject* b), (a, b))
STAY(PyObject*, PyUnicode_AsEncodedString, (PyObject* a, const char* b, const char* c), (a, b, c))

// What frees objects or looks for those that are reachable no more runs their finalizers.
STAY(void, _Py_Dealloc, (PyObject* a), (a))
STAY(void, PyObject_ClearWeakRefs, (PyObject* a), (a))
STAY(PyObject*, PyType_GenericAlloc, (PyTypeObject* a, Py_ssize_t b), (a, b))
STAY(PyObject*, PyDict_New, (), ())
STAY(PyObject*, PyList_New, (Py_ssize_t a), (a))
STAY(PyObject*, PyTuple_New, (Py_ssize_t a), (a))
// clang-format on
