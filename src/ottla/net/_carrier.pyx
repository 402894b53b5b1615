# cython: language_level=3, boundscheck=False, wraparound=False
"""A thread that does nothing but hand bytes to sockets, and never asks for the GIL. `porter` says what it is for.

What is posted to a queue is done in order. The event loop is the only one that posts and collects, so each of the two
numbers of a queue has one writer, and a job belongs to the thread from the moment that `posted` passes it until `done`
does. Light jobs are small replies; heavy ones are long replies with parts of files, and those that close sockets.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from cpython.ref cimport Py_DECREF, Py_INCREF
from libc.stdint cimport int64_t, uint64_t
from libc.stdlib cimport calloc, free

cdef extern from *:
    """
    #include <errno.h>
    #include <poll.h>
    #include <pthread.h>
    #include <sched.h>
    #include <signal.h>
    #include <stdint.h>
    #include <stdlib.h>
    #include <sys/socket.h>
    #include <time.h>
    #include <unistd.h>
    #if defined(__linux__)
    #include <sys/sendfile.h>
    #endif

    #ifndef MSG_NOSIGNAL
    #define MSG_NOSIGNAL 0
    #endif
    #ifndef MSG_MORE
    #define MSG_MORE 0
    #endif

    #define OTTLA_JOBS 1024
    /* How long the thread waits for a client that reads as fast as it can; less for one that let it wait in vain. */
    #define OTTLA_PATIENCE_US 2000
    #if defined(__linux__)
    #define OTTLA_LOOK_US 200
    #else
    #define OTTLA_LOOK_US 1000
    #endif
    /* How much of something heavy is sent before it is seen to whatever is light. */
    #define OTTLA_STEP_BYTES 1048576

    typedef struct {
        int descriptor;
        /* Set by the thread when the socket did not take all: what follows is left to the event loop. */
        int blocked;
        int patience_us;
    } ottla_way;

    typedef struct {
        ottla_way *way;
        /* Bytes; or else a file, below; or else the way is to be closed. */
        const char *data;
        int file;
        int64_t position;
        size_t length;
        size_t sent;
        /* Whether more of the same reply follows, or the event loop wants to know when this is done. */
        int more;
        int ends;
        void *content;
        void *lane;
    } ottla_job;

    typedef struct {
        ottla_job jobs[OTTLA_JOBS];
        uint64_t posted;
        uint64_t done;
    } ottla_queue;

    typedef struct {
        ottla_queue light;
        ottla_queue heavy;
        int sleeps;
        int stops;
        /* Written to when the event loop is to look. */
        int bell;
        pthread_mutex_t lock;
        pthread_cond_t wanted;
        pthread_t thread;
    } ottla_carrier;

    static int ottla_has(ottla_queue *queue) {
        return queue->done != __atomic_load_n(&queue->posted, __ATOMIC_SEQ_CST);
    }

    static ssize_t ottla_send(ottla_job *job) {
        size_t left = job->length - job->sent;
        if (left > OTTLA_STEP_BYTES)
            left = OTTLA_STEP_BYTES;
        if (job->data != NULL)
            return send(job->way->descriptor, job->data + job->sent, left,
                        MSG_DONTWAIT | MSG_NOSIGNAL | (job->more ? MSG_MORE : 0));
    #if defined(__linux__)
        off_t position = (off_t)(job->position + (int64_t)job->sent);
        ssize_t sent = sendfile(job->way->descriptor, job->file, &position, left);
        if (sent != 0)
            return sent;
        /* The file ends here: the event loop knows what to say of that. */
        errno = EINVAL;
        return -1;
    #else
        errno = ENOSYS;
        return -1;
    #endif
    }

    static int ottla_look(struct pollfd *one) {
    #if defined(__linux__)
        struct timespec moment = {0, OTTLA_LOOK_US * 1000};
        return ppoll(one, 1, &moment, NULL);
    #else
        return poll(one, 1, OTTLA_LOOK_US / 1000);
    #endif
    }

    /* Whether the socket has room again, which is waited for as long as nobody has anything light to carry. */
    static int ottla_room(ottla_carrier *self, ottla_way *way) {
        struct pollfd one = {way->descriptor, POLLOUT, 0};
        int waited_us = 0;
        while (waited_us + OTTLA_LOOK_US <= way->patience_us && !ottla_has(&self->light)) {
            if (ottla_look(&one) > 0) {
                way->patience_us += OTTLA_LOOK_US;
                if (way->patience_us > OTTLA_PATIENCE_US)
                    way->patience_us = OTTLA_PATIENCE_US;
                return 1;
            }
            waited_us += OTTLA_LOOK_US;
        }
        if (waited_us + OTTLA_LOOK_US > way->patience_us)
            way->patience_us /= 2;
        return 0;
    }

    static void ottla_ring(ottla_carrier *self) {
        char one = 1;
        /* Full, it has rung already. */
        ssize_t rung = write(self->bell, &one, 1);
        (void)rung;
    }

    /* Whether it is done. Something heavy is done step by step. */
    static int ottla_do(ottla_carrier *self, ottla_queue *queue, ottla_job *job) {
        ottla_way *way = job->way;
        if (job->data == NULL && job->file < 0) {
            close(way->descriptor);
            way->descriptor = -1;
            return 1;
        }
        while (!way->blocked && job->sent < job->length) {
            ssize_t sent = ottla_send(job);
            if (sent >= 0) {
                job->sent += (size_t)sent;
                if (queue == &self->heavy && job->sent < job->length && ottla_has(&self->light))
                    return 0;
            } else if ((errno == EAGAIN || errno == EWOULDBLOCK) && queue == &self->heavy && ottla_room(self, way))
                continue;
            else if (errno != EINTR)
                way->blocked = 1;
        }
        if (!way->blocked && way->patience_us < OTTLA_PATIENCE_US)
            way->patience_us++;
        return 1;
    }

    static void ottla_next(ottla_carrier *self, ottla_queue *queue) {
        ottla_job *job = &queue->jobs[queue->done % OTTLA_JOBS];
        int rings;
        if (!ottla_do(self, queue, job))
            return;
        rings = job->ends || job->sent < job->length;
        __atomic_store_n(&queue->done, queue->done + 1, __ATOMIC_RELEASE);
        if (rings)
            ottla_ring(self);
    }

    static void *ottla_run(void *argument) {
        ottla_carrier *self = argument;
        for (;;) {
            /* Light jobs first. What is light of a connection is posted before what is heavy, and so it must be looked
               for once more after something heavy was seen. */
            int heavy = ottla_has(&self->heavy);
            if (ottla_has(&self->light)) {
                ottla_next(self, &self->light);
                continue;
            }
            if (heavy) {
                ottla_next(self, &self->heavy);
                continue;
            }
            pthread_mutex_lock(&self->lock);
            __atomic_store_n(&self->sleeps, 1, __ATOMIC_SEQ_CST);
            while (!ottla_has(&self->light) && !ottla_has(&self->heavy) && !self->stops)
                pthread_cond_wait(&self->wanted, &self->lock);
            __atomic_store_n(&self->sleeps, 0, __ATOMIC_SEQ_CST);
            pthread_mutex_unlock(&self->lock);
            if (self->stops && !ottla_has(&self->light) && !ottla_has(&self->heavy))
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

    static void ottla_post(ottla_queue *queue) {
        __atomic_store_n(&queue->posted, queue->posted + 1, __ATOMIC_SEQ_CST);
    }

    static uint64_t ottla_done(ottla_queue *queue) {
        return __atomic_load_n(&queue->done, __ATOMIC_ACQUIRE);
    }

    static void ottla_wake(ottla_carrier *self) {
        if (!__atomic_load_n(&self->sleeps, __ATOMIC_SEQ_CST))
            return;
        pthread_mutex_lock(&self->lock);
        pthread_cond_signal(&self->wanted);
        pthread_mutex_unlock(&self->lock);
    }

    static void ottla_wait(ottla_carrier *self, ottla_queue *queue, uint64_t until) {
        struct timespec moment = {0, 20000};
        int turn = 0;
        ottla_wake(self);
        while (ottla_done(queue) < until) {
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
    enum: OTTLA_PATIENCE_US
    ctypedef struct ottla_way:
        int descriptor
        int blocked
        int patience_us
    ctypedef struct ottla_job:
        ottla_way* way
        const char* data
        int file
        int64_t position
        size_t length
        size_t sent
        int more
        int ends
        void* content
        void* lane
    ctypedef struct ottla_queue:
        ottla_job jobs[1024]
        uint64_t posted
    ctypedef struct ottla_carrier:
        ottla_queue light
        ottla_queue heavy
    int ottla_start(ottla_carrier* self, int bell) nogil
    void ottla_post(ottla_queue* queue) nogil
    uint64_t ottla_done(ottla_queue* queue) nogil
    void ottla_wake(ottla_carrier* self) nogil
    void ottla_wait(ottla_carrier* self, ottla_queue* queue, uint64_t until) nogil
    void ottla_stop(ottla_carrier* self) nogil
    int close(int descriptor) nogil

cdef enum:
    NO_FILE = -1


cdef class Lane:
    """A socket as the thread has it. It closes with `Carrier.close`, or when nobody refers to it any more."""

    cdef ottla_way _way
    cdef readonly Py_ssize_t outstanding
    cdef uint64_t _last_light
    cdef uint64_t _last_heavy
    cdef public object owner

    def __cinit__(self, int descriptor, object owner):
        self._way.descriptor = descriptor
        self._way.patience_us = OTTLA_PATIENCE_US
        self.owner = owner

    def __dealloc__(self):
        # Whatever was posted for it is done: jobs refer to it.
        if self._way.descriptor >= 0:
            close(self._way.descriptor)


cdef class Carrier:
    """The thread, from the first use to `stop`."""

    cdef ottla_carrier* _native
    cdef uint64_t _light_collected
    cdef uint64_t _heavy_collected

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
        """Have bytes sent; False if there is too much to do already. Not while something heavy is posted for the lane."""
        if not data:
            return True
        if self._native == NULL or self._native.light.posted - self._light_collected >= OTTLA_JOBS:
            return False
        self._add(&self._native.light, lane, data, NO_FILE, 0, PyBytes_GET_SIZE(data), False, False)
        lane._last_light = self._native.light.posted
        return True

    def post_heavy(self, Lane lane not None, list parts not None):
        """Have a reply sent of bytes and of files: each a tuple of whatever keeps it open, and its descriptor, position
        and length. False if there is too much to do already. `collect` tells when it is done."""
        cdef ottla_queue* heavy
        cdef Py_ssize_t count = len(parts), number
        if self._native == NULL or not count:
            return False
        heavy = &self._native.heavy
        if heavy.posted - self._heavy_collected + count > OTTLA_JOBS:
            return False
        for number in range(count):
            part = parts[number]
            ends = number == count - 1
            if type(part) is bytes:
                self._add(heavy, lane, part, NO_FILE, 0, PyBytes_GET_SIZE(part), not ends, ends)
            else:
                kept, descriptor, position, length = part
                self._add(heavy, lane, kept, descriptor, position, length, False, ends)
        lane._last_heavy = heavy.posted
        return True

    def close(self, Lane lane not None):
        """Close a lane's socket once all that was posted for it is done; False if there is too much to do already."""
        if self._native == NULL or self._native.heavy.posted - self._heavy_collected >= OTTLA_JOBS:
            return False
        self._add(&self._native.heavy, lane, None, NO_FILE, 0, 0, False, False)
        lane._last_heavy = self._native.heavy.posted
        return True

    cdef _add(
        self, ottla_queue* queue, Lane lane, object content, int file, int64_t position, size_t length, bint more, bint ends
    ):
        cdef ottla_job* job = &queue.jobs[queue.posted % OTTLA_JOBS]
        job.way = &lane._way
        job.data = PyBytes_AS_STRING(content) if type(content) is bytes else NULL
        job.file = file
        job.position = position
        job.length = length
        job.sent = 0
        job.more = more
        job.ends = ends
        Py_INCREF(content)
        Py_INCREF(lane)
        job.content = <void*>content
        job.lane = <void*>lane
        lane.outstanding += 1
        ottla_post(queue)

    def wake(self):
        """What was posted is to be done."""
        if self._native != NULL:
            ottla_wake(self._native)

    def collect(self):
        """Forget what is done, and tell of what there is something to say, in order: pairs of a lane and the bytes that
        its socket did not take, or a tuple as above of what it did not take of a file, or None where a heavy reply
        ends. None if there is nothing to say."""
        cdef uint64_t light_done, heavy_done
        if self._native == NULL:
            return None
        # In this order: what was done of a lane's light jobs before a heavy one has to be seen with it.
        heavy_done = ottla_done(&self._native.heavy)
        light_done = ottla_done(&self._native.light)
        found = self._collect(&self._native.light, &self._light_collected, light_done, None)
        return self._collect(&self._native.heavy, &self._heavy_collected, heavy_done, found)

    cdef object _collect(self, ottla_queue* queue, uint64_t* collected, uint64_t done, object found):
        cdef ottla_job* job
        cdef Lane lane
        while collected[0] < done:
            job = &queue.jobs[collected[0] % OTTLA_JOBS]
            lane, content = <Lane>job.lane, <object>job.content
            if job.sent < job.length or job.ends:
                found = [] if found is None else found
                if job.sent < job.length:
                    if job.file < 0:
                        found.append((lane, (<bytes>content)[job.sent:]))
                    else:
                        left = (content, job.file, job.position + <int64_t>job.sent, job.length - job.sent)
                        found.append((lane, left))
                if job.ends:
                    found.append((lane, None))
            lane.outstanding -= 1
            if not lane.outstanding:
                # The thread has nothing of it any more.
                lane._way.blocked = 0
            collected[0] += 1
            Py_DECREF(content)
            Py_DECREF(lane)
        return found

    def drain(self, Lane lane not None):
        """Wait until all that was posted for a lane is done, and collect."""
        cdef uint64_t last_light = lane._last_light, last_heavy = lane._last_heavy
        if lane.outstanding and self._native != NULL:
            with nogil:
                ottla_wait(self._native, &self._native.light, last_light)
                ottla_wait(self._native, &self._native.heavy, last_heavy)
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
