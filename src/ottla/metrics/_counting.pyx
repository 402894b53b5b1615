# cython: language_level=3, boundscheck=False, wraparound=False
"""`_counting_twin`, compiled: the same names and the same numbers."""

from ottla.metrics.bounds import BOUNDS_S, NOTED_BYTES, NOTED_TOGETHER

cdef enum:
    BOUNDS = 19
    NOTES = 8
    LARGE_REPLY = 16384

cdef double bounds[BOUNDS]
assert (len(BOUNDS_S), NOTED_TOGETHER, NOTED_BYTES) == (BOUNDS, NOTES, LARGE_REPLY)
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
    cdef list apis_
    cdef object find_paths
    cdef readonly object monotonic
    cdef int noted
    cdef int keys[NOTES]
    cdef long long sizes[NOTES]
    cdef long long reply_sizes[NOTES]
    cdef double times[NOTES]
    cdef list clients_
    cdef list responses

    def __init__(self, list apis not None, find_paths, monotonic):
        self.apis_ = apis
        self.find_paths = find_paths
        self.monotonic = monotonic
        self.clients_ = [None] * NOTES
        self.responses = [None] * NOTES

    def answered(self, int api_key, ClientTally client not None, long long size, response, list reply, double begun):
        cdef double took = self.monotonic() - begun
        cdef long long reply_size = 0
        cdef int noted = self.noted
        if not 0 <= api_key < len(self.apis_):
            raise IndexError(api_key)
        if reply is not None:
            for buffer in reply:
                reply_size += len(buffer)
        self.keys[noted] = api_key
        self.sizes[noted] = size
        self.reply_sizes[noted] = reply_size
        self.times[noted] = took
        self.clients_[noted] = client
        self.responses[noted] = response
        self.noted = noted + 1
        if self.noted == NOTES or reply_size > LARGE_REPLY:
            self.add_up()

    def add_up(self):
        cdef int index, noted = self.noted
        self.noted = 0
        for index in range(noted):
            response = self.responses[index]
            self.responses[index] = None
            self.add(
                self.keys[index],
                <ClientTally>self.clients_[index],
                self.sizes[index],
                response,
                self.reply_sizes[index],
                self.times[index],
            )
            self.clients_[index] = None

    cdef int add(
        self,
        Py_ssize_t api_key,
        ClientTally client,
        long long size,
        object response,
        long long reply_size,
        double took,
    ) except -1:
        cdef int bucket = 0
        cdef ApiTally api = self.apis_[api_key]
        while bucket < BOUNDS and took > bounds[bucket]:
            bucket += 1
        api.counts[bucket] += 1
        api.seconds += took
        client.requests += 1
        client.bytes_in += size
        client.bytes_out += reply_size
        if response is None:
            return 0
        if api.paths is None:
            api.paths = self.find_paths(api_key)
        for path in api.paths:
            client.errors += count(response, <tuple>path, 0, api.errors)
        return 0


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
