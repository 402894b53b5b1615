# cython: language_level=3, boundscheck=False, wraparound=False
"""`_counting_twin`, compiled: the same names and the same numbers.

This is done for every request, and each time after other code has had the processor's caches: what counts is how little
is touched. So the clock is asked without a Python call, and error codes are looked for where the encoder found them.
"""

import time

from cpython.time cimport monotonic as system_monotonic

from ottla.metrics.bounds import BOUNDS_S

include "../wire/_slots.pxi"

cdef enum:
    BOUNDS = 19

cdef double bounds[BOUNDS]
assert len(BOUNDS_S) == BOUNDS
for number in range(BOUNDS):
    bounds[number] = BOUNDS_S[number]


cdef class ClientTally:
    cdef public str principal
    cdef public str client_id
    cdef public long long connections
    cdef public long long requests
    cdef public long long errors
    cdef public long long bytes_in
    cdef public long long bytes_out

    def __init__(self, str principal not None, str client_id not None):
        self.principal = principal
        self.client_id = client_id


cdef class ApiTally:
    cdef public int api_key
    cdef public double seconds
    cdef public dict errors
    cdef public long long waiting
    cdef list ways
    cdef long long counts[BOUNDS + 1]

    def __init__(self, int api_key):
        self.api_key = api_key
        self.errors = {}

    @property
    def buckets(self):
        return [self.counts[index] for index in range(BOUNDS + 1)]


cdef class Tally:
    cdef list apis_
    cdef object find_paths
    cdef readonly object monotonic
    cdef bint by_system

    def __init__(self, list apis not None, find_paths, monotonic):
        self.apis_ = apis
        self.find_paths = find_paths
        self.monotonic = monotonic
        self.by_system = monotonic is time.monotonic

    def answered(self, int api_key, ClientTally client not None, long long size, response, list reply, double begun):
        cdef double took = (system_monotonic() if self.by_system else <double>self.monotonic()) - begun
        cdef int bucket = 0
        cdef ApiTally api
        if not 0 <= api_key < len(self.apis_):
            raise IndexError(api_key)
        api = self.apis_[api_key]
        while bucket < BOUNDS and took > bounds[bucket]:
            bucket += 1
        api.counts[bucket] += 1
        api.seconds += took
        client.requests += 1
        client.bytes_in += size
        if reply is not None:
            for buffer in reply:
                client.bytes_out += len(buffer)
        if response is None:
            return
        if api.ways is None:
            api.ways = [Step(path) for path in self.find_paths(api_key)]
        for way in api.ways:
            client.errors += (<Step>way).count(response, api.errors)


cdef class Step:
    """A field on the way to an error code, and the steps after it."""

    cdef str name
    cdef type cls
    cdef Py_ssize_t slot
    cdef Step onward

    def __init__(self, tuple path not None):
        self.name = path[0]
        self.onward = Step(path[1:]) if len(path) > 1 else None

    cdef long long count(self, object message, dict counts) except -1:
        cdef long long errors = 0
        if type(message) is not self.cls:
            self.slot = slot_of(type(message), self.name)
            self.cls = type(message)
        cdef object found = get(message, self.slot)
        if self.onward is None:
            if not found:
                return 0
            code = int(found)
            counts[code] = counts.get(code, 0) + 1
            return 1
        if found is None:
            return 0
        if isinstance(found, list):
            for each in <list>found:
                errors += self.onward.count(each, counts)
            return errors
        return self.onward.count(found, counts)
