# cython: language_level=3, boundscheck=False, wraparound=False
"""A thread that does nothing but hand bytes to sockets, and never asks for the GIL. `porter` says what it is for.

What is posted is done in order. The event loop is the only one that posts and collects, so each of the two numbers
below has one writer, and a job belongs to the thread from the moment that `posted` passes it until `done` does.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.ref cimport Py_DECREF, Py_INCREF, PyObject
from libc.stdint cimport uint64_t
from libc.stdlib cimport calloc, free

cdef extern from *:
    """
    #include <errno.h>
    #include <pthread.h>
    #include <sched.h>
    #include <signal.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <sys/socket.h>
    #include <time.h>
    #include <unistd.h>

    #ifndef MSG_NOSIGNAL
    #define MSG_NOSIGNAL 0
    #endif

    #define OTTLA_JOBS 1024

    typedef struct {
        int descriptor;
        /* Set by the thread when the socket did not take all: what follows is left to the event loop. */
        int blocked;
    } ottla_way;

    typedef struct {
        ottla_way *way;
        /* NULL: close the way. */
        const char *data;
        size_t length;
        size_t sent;
        void *bytes;
        void *lane;
    } ottla_job;

    typedef struct {
        ottla_job jobs[OTTLA_JOBS];
        uint64_t posted;
        uint64_t done;
        int sleeps;
        int stops;
        /* Written to when something was left over, so that the event loop looks. */
        int bell;
        pthread_mutex_t lock;
        pthread_cond_t wanted;
        pthread_t thread;
    } ottla_carrier;

    static void ottla_do(ottla_carrier *self, ottla_job *job) {
        ottla_way *way = job->way;
        if (job->data == NULL) {
            close(way->descriptor);
            way->descriptor = -1;
            return;
        }
        while (!way->blocked && job->sent < job->length) {
            ssize_t sent = send(way->descriptor, job->data + job->sent, job->length - job->sent,
                                MSG_DONTWAIT | MSG_NOSIGNAL);
            if (sent >= 0)
                job->sent += (size_t)sent;
            else if (errno != EINTR)
                way->blocked = 1;
        }
        if (job->sent < job->length) {
            char one = 1;
            /* Full, it has rung already. */
            ssize_t rung = write(self->bell, &one, 1);
            (void)rung;
        }
    }

    static void *ottla_run(void *argument) {
        ottla_carrier *self = argument;
        uint64_t done = 0;
        for (;;) {
            while (done < __atomic_load_n(&self->posted, __ATOMIC_ACQUIRE)) {
                ottla_do(self, &self->jobs[done % OTTLA_JOBS]);
                __atomic_store_n(&self->done, ++done, __ATOMIC_RELEASE);
            }
            pthread_mutex_lock(&self->lock);
            __atomic_store_n(&self->sleeps, 1, __ATOMIC_SEQ_CST);
            while (done == __atomic_load_n(&self->posted, __ATOMIC_SEQ_CST) && !self->stops)
                pthread_cond_wait(&self->wanted, &self->lock);
            __atomic_store_n(&self->sleeps, 0, __ATOMIC_SEQ_CST);
            pthread_mutex_unlock(&self->lock);
            if (self->stops && done == __atomic_load_n(&self->posted, __ATOMIC_SEQ_CST))
                return NULL;
        }
    }

    /* 0, or why there is no thread. It takes no signals: those are for the threads that know of them. */
    static int ottla_start(ottla_carrier *self, int bell) {
        sigset_t all, before;
        int failure;
        self->bell = bell;
        pthread_mutex_init(&self->lock, NULL);
        pthread_cond_init(&self->wanted, NULL);
        sigfillset(&all);
        pthread_sigmask(SIG_SETMASK, &all, &before);
        failure = pthread_create(&self->thread, NULL, ottla_run, self);
        pthread_sigmask(SIG_SETMASK, &before, NULL);
        return failure;
    }

    static void ottla_post(ottla_carrier *self) {
        __atomic_store_n(&self->posted, self->posted + 1, __ATOMIC_SEQ_CST);
    }

    static uint64_t ottla_done(ottla_carrier *self) {
        return __atomic_load_n(&self->done, __ATOMIC_ACQUIRE);
    }

    static void ottla_wake(ottla_carrier *self) {
        if (!__atomic_load_n(&self->sleeps, __ATOMIC_SEQ_CST))
            return;
        pthread_mutex_lock(&self->lock);
        pthread_cond_signal(&self->wanted);
        pthread_mutex_unlock(&self->lock);
    }

    static void ottla_wait(ottla_carrier *self, uint64_t until) {
        struct timespec moment = {0, 20000};
        int turn = 0;
        ottla_wake(self);
        while (ottla_done(self) < until) {
            if (++turn < 50)
                sched_yield();
            else
                nanosleep(&moment, NULL);
        }
    }

    static void ottla_stop(ottla_carrier *self) {
        pthread_mutex_lock(&self->lock);
        self->stops = 1;
        pthread_cond_signal(&self->wanted);
        pthread_mutex_unlock(&self->lock);
        pthread_join(self->thread, NULL);
        pthread_cond_destroy(&self->wanted);
        pthread_mutex_destroy(&self->lock);
    }
    """
    enum: OTTLA_JOBS
    ctypedef struct ottla_way:
        int descriptor
        int blocked
    ctypedef struct ottla_job:
        ottla_way* way
        const char* data
        size_t length
        size_t sent
        void* bytes
        void* lane
    ctypedef struct ottla_carrier:
        ottla_job jobs[1024]
        uint64_t posted
    int ottla_start(ottla_carrier* self, int bell) nogil
    void ottla_post(ottla_carrier* self) nogil
    uint64_t ottla_done(ottla_carrier* self) nogil
    void ottla_wake(ottla_carrier* self) nogil
    void ottla_wait(ottla_carrier* self, uint64_t until) nogil
    void ottla_stop(ottla_carrier* self) nogil
    int close(int descriptor) nogil


cdef class Lane:
    """A socket as the thread has it. It closes with `Carrier.close`, or when nobody refers to it any more."""

    cdef ottla_way _way
    cdef readonly Py_ssize_t outstanding
    cdef uint64_t _last
    cdef public object owner

    def __cinit__(self, int descriptor, object owner):
        self._way.descriptor = descriptor
        self._way.blocked = 0
        self.owner = owner

    def __dealloc__(self):
        # Whatever was posted for it is done: jobs refer to it.
        if self._way.descriptor >= 0:
            close(self._way.descriptor)


cdef class Carrier:
    """The thread, from the first use to `stop`."""

    cdef ottla_carrier* _native
    cdef uint64_t _collected

    def __cinit__(self, int bell):
        self._native = <ottla_carrier*>calloc(1, sizeof(ottla_carrier))
        if self._native == NULL:
            raise MemoryError()
        failure = ottla_start(self._native, bell)
        if failure:
            free(self._native)
            self._native = NULL
            raise OSError(failure, "no thread could be started")

    def __dealloc__(self):
        self._end()

    def post(self, Lane lane not None, bytes data not None):
        """Have bytes sent; False if there is too much to do already."""
        if not data:
            return True
        return self._add(lane, data)

    def close(self, Lane lane not None):
        """Close a lane's socket once all that was posted for it is done; False if there is too much to do already."""
        return self._add(lane, None)

    cdef bint _add(self, Lane lane, bytes data):
        cdef ottla_carrier* native = self._native
        if native == NULL or native.posted - self._collected >= OTTLA_JOBS:
            return False
        cdef ottla_job* job = &native.jobs[native.posted % OTTLA_JOBS]
        job.way = &lane._way
        job.data = PyBytes_AS_STRING(data) if data is not None else NULL
        job.length = PyBytes_GET_SIZE(data) if data is not None else 0
        job.sent = 0
        Py_INCREF(data)
        Py_INCREF(lane)
        job.bytes = <void*>data
        job.lane = <void*>lane
        lane.outstanding += 1
        lane._last = native.posted + 1
        ottla_post(native)
        return True

    def wake(self):
        """What was posted is to be done."""
        ottla_wake(self._native)

    def collect(self):
        """Forget what is done. What sockets did not take, in order: pairs of a lane and the bytes left; None if all."""
        cdef uint64_t done
        cdef ottla_job* job
        cdef Lane lane
        cdef bytes data
        found = None
        if self._native == NULL:
            return None
        done = ottla_done(self._native)
        while self._collected < done:
            job = &self._native.jobs[self._collected % OTTLA_JOBS]
            lane, data = <Lane>job.lane, <bytes>job.bytes
            if job.sent < job.length:
                if found is None:
                    found = []
                found.append((lane, data[job.sent:]))
            lane.outstanding -= 1
            if not lane.outstanding:
                # The thread has nothing of it any more.
                lane._way.blocked = 0
            self._collected += 1
            Py_DECREF(data)
            Py_DECREF(lane)
        return found

    def drain(self, Lane lane not None):
        """Wait until all that was posted for a lane is done, and collect."""
        cdef uint64_t last = lane._last
        if lane.outstanding and self._native != NULL:
            with nogil:
                ottla_wait(self._native, last)
        return self.collect()

    def stop(self):
        """Do what is left and end the thread; what sockets did not take then is lost."""
        self._end()

    cdef _end(self):
        if self._native != NULL:
            with nogil:
                ottla_stop(self._native)
            self.collect()
            free(self._native)
            self._native = NULL
