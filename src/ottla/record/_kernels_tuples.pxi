# Records as instances of a NamedTuple that the caller hands in: what consumers give to applications.

cdef extern from *:
    """
    /* From Python 3.14 on a tuple keeps its hash, and 0 is one. */
    #if PY_VERSION_HEX >= 0x030E0000
    #define forget_hash(record) (((PyTupleObject *)(record))->ob_hash = -1)
    #else
    #define forget_hash(record) ((void)0)
    #endif
    """
    void forget_hash(object record) noexcept

cdef extern from "Python.h":
    ctypedef struct PyTypeObject:
        Py_ssize_t tp_basicsize
        Py_ssize_t tp_itemsize
        Py_ssize_t tp_dictoffset

    object PyType_GenericAlloc(type type, Py_ssize_t items)

cdef enum:
    FIELDS = 8


cdef int check_record_type(type record_type) except -1:
    cdef PyTypeObject* found = <PyTypeObject*>record_type
    cdef PyTypeObject* plain = <PyTypeObject*>tuple
    if (
        not issubclass(record_type, tuple)
        or found.tp_basicsize != plain.tp_basicsize
        or found.tp_itemsize != plain.tp_itemsize
        or found.tp_dictoffset
        or getattr(record_type, "_fields", None) != types.CONSUMER_FIELDS
    ):
        raise types.record_type_error(record_type)
    return 0


@cython.final
@cython.no_gc
cdef class TupleMaker:
    """Makes the records of one partition. What they have in common they share."""

    cdef type record_type
    cdef str topic
    cdef object partition
    cdef int64_t last_timestamp
    cdef object timestamp

    cdef inline object make(
        self, int64_t offset, int64_t timestamp, object timestamp_type, bytes key, bytes value, tuple headers
    ):
        if timestamp != self.last_timestamp:
            self.timestamp = timestamp
            self.last_timestamp = timestamp
        number = offset
        record = PyType_GenericAlloc(self.record_type, FIELDS)
        # The collector must not see the holes, and need not see it later: what it holds are numbers, text and bytes,
        # which lead nowhere. Telling it would make reading many records take several times as long.
        PyObject_GC_UnTrack(record)
        forget_hash(record)
        put_item(record, 0, self.topic)
        put_item(record, 1, self.partition)
        put_item(record, 2, number)
        put_item(record, 3, self.timestamp)
        put_item(record, 4, timestamp_type)
        put_item(record, 5, key)
        put_item(record, 6, value)
        put_item(record, 7, headers)
        return record


cdef inline void put_item(object record, Py_ssize_t index, object item) noexcept:
    Py_INCREF(item)
    PyTuple_SET_ITEM(record, index, item)


cdef TupleMaker tuple_maker(type record_type, str topic, int32_t partition):
    cdef TupleMaker maker = TupleMaker.__new__(TupleMaker)
    check_record_type(record_type)
    maker.record_type = record_type
    maker.topic = topic
    maker.partition = partition
    maker.last_timestamp = 0
    maker.timestamp = 0
    return maker


def read_tuples(
    data,
    int64_t count,
    int64_t base_offset,
    int64_t base_timestamp,
    append_time,
    int64_t start_offset,
    type record_type not None,
    str topic not None,
    int32_t partition,
    int32_t timestamp_type,
):
    """The records of a section from `start_offset` on, as `read` has them, in a NamedTuple with more fields.

    These are topic, partition, offset, timestamp, timestamp_type, key, value and headers.
    """
    cdef Held held = hold(data)
    cdef TupleMaker maker = tuple_maker(record_type, topic, partition)
    cdef Trouble trouble
    cdef Parsed parsed
    cdef int64_t number, at = 0, last_delta = -1, offset, timestamp = 0
    cdef bint appended = append_time is not None
    cdef object kind = timestamp_type
    cdef tuple headers
    cdef list records = []
    check_count(count, held.size)
    if appended:
        timestamp = append_time
    for number in range(count):
        trouble.record = number
        if parse(held.data, held.size, at, last_delta, True, &parsed, &trouble) < 0:
            raise error(&trouble)
        if place(&parsed, at, base_offset, base_timestamp, appended, &offset, &timestamp, &trouble) < 0:
            raise error(&trouble)
        headers = read_headers(held.data, &parsed, &trouble) if parsed.header_count else ()
        if offset >= start_offset:
            key = piece(held.data, parsed.key_at, parsed.key_length)
            value = piece(held.data, parsed.value_at, parsed.value_length)
            records.append(maker.make(offset, timestamp, kind, key, value, headers))
        at = parsed.end
        last_delta = parsed.offset_delta
    if section_end(at, held.size, count, &trouble) < 0:
        raise error(&trouble)
    return records


def read_run_tuples(run, int64_t start_offset, type record_type not None, str topic not None, int32_t partition):
    """The plain messages of a run from `start_offset` on, as `read_tuples` has records.

    A message says by itself whose clock its timestamp is of; one of magic 0 has none, and its type is -1.
    """
    cdef Source source
    cdef Held held = open_run(run, &source)
    cdef TupleMaker maker = tuple_maker(record_type, topic, partition)
    cdef Stored message
    cdef Complaint complaint
    cdef int kind
    cdef list records = []
    while source.at < source.stop:
        if parse_plain(&source, &message, &complaint) < 0:
            raise message_error(&complaint)
        if message.offset >= start_offset:
            kind = message.log_append_time if message.magic else -1
            key = piece(source.data, message.key_at, message.key_length)
            value = piece(source.data, message.value_at, message.value_length)
            records.append(maker.make(message.offset, message.timestamp, kind, key, value, ()))
        source.at = message.end
    return records
