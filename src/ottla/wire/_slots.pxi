# Fields of messages by where they are in memory: a slot of a class is a pointer at a fixed distance from the instance.

from cpython.ref cimport PyObject

cdef extern from "structmember.h":
    ctypedef struct PyMemberDef:
        Py_ssize_t offset

cdef extern from "Python.h":
    ctypedef struct PyMemberDescrObject:
        PyMemberDef *d_member


cdef Py_ssize_t slot_of(type cls, str name) except -1:
    descriptor = getattr(cls, name)
    if type(descriptor).__name__ != "member_descriptor":
        raise TypeError(f"{cls.__name__}.{name} is no slot")
    return (<PyMemberDescrObject *> descriptor).d_member.offset


cdef inline object get(object instance, Py_ssize_t slot):
    """What is in a slot; the instance must be of the class that the slot was asked of."""
    cdef PyObject *value = (<PyObject **> ((<char *> <PyObject *> instance) + slot))[0]
    if value is NULL:
        raise AttributeError("a field was deleted")
    return <object> value
