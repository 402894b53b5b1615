# cython: language_level=3, boundscheck=False, wraparound=False
"""`_counting_twin`, compiled: the same names and the same numbers."""

from ottla.metrics.bounds import BOUNDS_S

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
    cdef public tuple paths
    cdef long long counts[BOUNDS + 1]

    def __init__(self, int api_key):
        self.api_key = api_key
        self.errors = {}

    @property
    def buckets(self):
        return [self.counts[index] for index in range(BOUNDS + 1)]


cdef class Tally:
    cdef object monotonic_
    cdef list apis_
    cdef object find_paths

    def __init__(self, monotonic, list apis not None, find_paths):
        self.monotonic_ = monotonic
        self.apis_ = apis
        self.find_paths = find_paths

    def answered(
        self, Py_ssize_t api_key, ClientTally client not None, long long size, response, list reply, double begun
    ):
        cdef double took = <double>self.monotonic_() - begun
        cdef int bucket = 0
        if not 0 <= api_key < len(self.apis_):
            raise IndexError(api_key)
        cdef ApiTally api = self.apis_[api_key]
        while bucket < BOUNDS and took > bounds[bucket]:
            bucket += 1
        api.counts[bucket] += 1
        api.seconds += took
        client.requests += 1
        client.bytes_in += size
        if reply is None:
            return
        for buffer in reply:
            client.bytes_out += len(buffer)
        if api.paths is None:
            api.paths = self.find_paths(api_key)
        for path in api.paths:
            client.errors += count(response, <tuple>path, 0, api.errors)


cdef long long count(object message, tuple path, Py_ssize_t depth, dict counts) except -1:
    cdef long long errors = 0
    cdef object found = getattr(message, path[depth])
    if depth + 1 == len(path):
        if not found:
            return 0
        code = int(found)
        counts[code] = counts.get(code, 0) + 1
        return 1
    if found is None:
        return 0
    if isinstance(found, list):
        for each in <list>found:
            errors += count(each, path, depth + 1, counts)
        return errors
    return count(found, path, depth + 1, counts)
