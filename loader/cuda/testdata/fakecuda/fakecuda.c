// A CUDA driver without a device, for tests: the functions of libcuda.so.1 that loader/cuda
// calls, with what their documentation promises and nothing more.
//
// Whatever is asynchronous happens as late as it may. Copies read their source, and write
// their destination, when they run, not when they are queued: memory that is reused or freed
// too early gives wrong bytes or a fault, as on a device. There are two ways to run:
//
//   threads  a thread per stream, with pauses between pieces of work
//   lazy     nothing runs before somebody waits for it, and then no more than he waits for:
//            the latest schedule there is, and the same each time
//
// Mistakes that a driver punishes at random are counted as faults here.
//
// With -DCUDA_H the functions are declared by NVIDIA's cuda.h, so that a signature that
// differs does not compile.
#define _GNU_SOURCE
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#ifdef CUDA_H
#include <cuda.h>
#else
typedef enum {
    CUDA_SUCCESS = 0, CUDA_ERROR_INVALID_VALUE = 1, CUDA_ERROR_OUT_OF_MEMORY = 2, CUDA_ERROR_NOT_INITIALIZED = 3,
    CUDA_ERROR_INVALID_DEVICE = 101, CUDA_ERROR_INVALID_IMAGE = 200, CUDA_ERROR_INVALID_CONTEXT = 201,
    CUDA_ERROR_INVALID_HANDLE = 400, CUDA_ERROR_NOT_FOUND = 500,
    CUDA_ERROR_NOT_READY = 600,
    CUDA_ERROR_ILLEGAL_ADDRESS = 700, CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED = 712,
    CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED = 713, CUDA_ERROR_NOT_SUPPORTED = 801,
    CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED = 900, CUDA_ERROR_STREAM_CAPTURE_ISOLATION = 905, CUDA_ERROR_CAPTURED_EVENT = 907
} CUresult;
typedef int CUdevice, CUdevice_attribute;
typedef unsigned long long CUdeviceptr;
typedef struct CUctx_st *CUcontext;
typedef struct CUstream_st *CUstream;
typedef struct CUevent_st *CUevent;
typedef struct CUmod_st *CUmodule;
typedef struct CUfunc_st *CUfunction;
typedef enum { CU_STREAM_CAPTURE_STATUS_NONE, CU_STREAM_CAPTURE_STATUS_ACTIVE } CUstreamCaptureStatus;
#endif

#define MAX_DEVICES 8

// ---- settings and counters, which tests reach by the fakecuda_ functions ----

static pthread_mutex_t mu = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER; // any state that somebody waits for
static int lazy, devices = 1, read_only_register = 1;
static int writable; // what is registered is memory that can be written to
static unsigned pause_us = 100, random_state = 1;
static long calls, fail_at = -1;
static int fail_code, fail_sticky;
static int dead; // a sticky error was returned: nothing runs any more, and nothing has to be waited for
static char failed_name[64];
static long faults, copies, pageable, launches;
static long stalls; // frees that a device would have held up, as it had work
static char fault_text[256];
static long live_contexts, live_host, live_registered, live_device, live_streams, live_events, live_modules;

static void fault(const char *what) {
    if (faults++ == 0) snprintf(fault_text, sizeof fault_text, "%s", what);
}

// ---- contexts ----

typedef struct CUctx_st { int device; long retained; struct CUstream_st *null_stream; } context;
static context contexts[MAX_DEVICES];
static int initialized;
static _Thread_local context *current;
static _Thread_local context *pushed[8];
static _Thread_local int depth;

// ---- memory ----

typedef enum { HOST, REGISTERED, DEVICE } kind;
typedef struct range { char *start; size_t size; kind kind; int device; struct range *next; } range;
static range *ranges;

static range *find(const void *p, size_t n) {
    for (range *r = ranges; r; r = r->next)
        if ((char *)p >= r->start && (char *)p + n <= r->start + r->size) return r;
    return NULL;
}

static void add_range(void *p, size_t n, kind k, int device) {
    range *r = malloc(sizeof *r);
    *r = (range){p, n, k, device, ranges};
    ranges = r;
}

static int drop_range(void *p, kind k) {
    for (range **at = &ranges; *at; at = &(*at)->next)
        if ((*at)->start == p && (*at)->kind == k) {
            range *r = *at;
            *at = r->next;
            free(r);
            return 1;
        }
    return 0;
}

// ---- memory of devices ----

#define PAGE 4096
#define DEVICE_SIZE (1ull << 36) // sparse

static char *device_memory;
static size_t device_used;

// allocate returns memory of a device, NULL if there is none. It is never used twice.
static void *allocate(size_t n) {
    if (!device_memory) {
        void *p = mmap(NULL, DEVICE_SIZE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
        if (p == MAP_FAILED) return NULL;
        device_memory = p;
    }
    if (n > DEVICE_SIZE - device_used) return NULL;
    char *p = device_memory + device_used;
    device_used += (n + PAGE - 1) / PAGE * PAGE;
    return p;
}

// ---- streams and events ----

typedef struct token { int refs, done; } token; // one record of an event
typedef struct CUevent_st { context *ctx; token *last; int dead, captured; } event;
typedef enum { COPY_IN, COPY_OUT, RECORD, WAIT, KERNEL } what;
typedef struct {
    uint64_t dst, src;
    uint32_t total, channels, plane, pixel, channel;
    float scale, mean[4], std[4];
    int kernel;
} launch;
typedef struct op {
    what what;
    char *dst;
    const char *src;
    size_t n;
    token *token;
    launch launch;
    struct op *next;
} op;
typedef struct CUstream_st {
    context *ctx;
    op *first, **last;
    int dying, capturing;
    pthread_t thread;
    struct CUstream_st *next;
} stream;
static stream *streams;
static _Thread_local stream *per_thread[MAX_DEVICES];

static token *hold(token *t) { if (t) t->refs++; return t; }
static void drop_token(token *t) { if (t && --t->refs == 0) free(t); }

static unsigned jitter(void) {
    random_state = random_state * 1103515245u + 12345u;
    return pause_us ? (random_state >> 8) % (2 * pause_us) : 0;
}

static uint16_t half_bits(float f) {
    uint32_t x;
    memcpy(&x, &f, 4);
    uint32_t sign = x >> 16 & 0x8000, mag = x & 0x7fffffff;
    if (mag > 0x7f800000) return sign | 0x7e00;
    if (mag >= 0x477ff000) return sign | 0x7c00;
    if (mag < 0x38800000) { // subnormal: let the addition round to units of 2^-24
        float tiny;
        memcpy(&tiny, &mag, 4);
        tiny += 0.5f; // 0.5 has an ulp of 2^-24
        uint32_t bits;
        memcpy(&bits, &tiny, 4);
        return sign | (bits - 0x3f000000);
    }
    mag -= 112u << 23;
    return sign | (uint16_t)((mag + 0xfff + (mag >> 13 & 1)) >> 13);
}

static uint16_t brain_bits(float f) {
    uint32_t x;
    memcpy(&x, &f, 4);
    return (uint16_t)((x + 0x7fff + (x >> 16 & 1)) >> 16);
}

static void normalize(const launch *l) {
    uint32_t image = l->channels * l->plane;
    for (uint32_t i = 0; i < l->total; i++) {
        uint32_t base = i / image * image, c = i % image / l->plane, p = i % image % l->plane;
        float y = (float)((const uint8_t *)l->src)[base + c * l->channel + p * l->pixel];
        uint32_t k = c < 4 ? c : 0;
        y = y / l->scale;
        y = y - l->mean[k];
        y = y / l->std[k];
        if (l->kernel == 0) ((float *)l->dst)[i] = y;
        if (l->kernel == 1) ((uint16_t *)l->dst)[i] = half_bits(y);
        if (l->kernel == 2) ((uint16_t *)l->dst)[i] = brain_bits(y);
    }
}

// check says whether memory that an operation touches is still there. With mu held.
static int check(op *o) {
    if (o->what == KERNEL) {
        const launch *l = &o->launch;
        size_t out = (size_t)l->total * (l->kernel == 0 ? 4 : 2);
        range *d = find((void *)l->dst, out), *s = find((void *)l->src, l->total);
        if (d && s && d->kind == DEVICE && s->kind == DEVICE) return 1;
        fault("a kernel touches memory that is not allocated");
        return 0;
    }
    const void *dev = o->what == COPY_IN ? o->dst : o->src, *host = o->what == COPY_IN ? o->src : o->dst;
    range *d = find(dev, o->n), *h = find(host, o->n);
    if (!d || d->kind != DEVICE) {
        fault("a copy touches device memory that is not allocated");
        return 0;
    }
    if (o->token == NULL && (!h || h->kind == DEVICE)) { // token marks a pageable copy that the caller waits for
        fault("a copy runs after its page-locked memory was freed");
        return 0;
    }
    return 1;
}

// execute runs an operation. With mu held, which threads of streams give up on the way.
static void execute(op *o) {
    if (o->what == RECORD) o->token->done = 1;
    if (o->what == RECORD || o->what == WAIT || dead || !check(o)) return;
    if (!lazy) pthread_mutex_unlock(&mu);
    if (o->what == KERNEL) normalize(&o->launch);
    else memcpy(o->dst, o->src, o->n);
    if (!lazy) pthread_mutex_lock(&mu);
    if (o->what != KERNEL) copies++;
}

static void pop(stream *s) {
    op *o = s->first;
    s->first = o->next;
    if (!s->first) s->last = &s->first;
    drop_token(o->token);
    free(o);
    pthread_cond_broadcast(&changed);
}

static void unlink_stream(stream *s) {
    for (stream **at = &streams; *at; at = &(*at)->next)
        if (*at == s) { *at = s->next; break; }
    free(s);
    pthread_cond_broadcast(&changed);
}

static void *work(void *arg) {
    stream *s = arg;
    pthread_mutex_lock(&mu);
    for (;;) {
        while (!s->first && !s->dying) pthread_cond_wait(&changed, &mu);
        if (!s->first) break;
        unsigned us = jitter();
        pthread_mutex_unlock(&mu);
        if (us) usleep(us);
        pthread_mutex_lock(&mu);
        while (s->first->what == WAIT && !s->first->token->done && !dead) pthread_cond_wait(&changed, &mu);
        execute(s->first);
        pop(s);
    }
    unlink_stream(s);
    pthread_mutex_unlock(&mu);
    return NULL;
}

// force_token and force run what is needed, in lazy mode. With mu held.
static void force(stream *s, op *until);

static void force_token(token *t) {
    while (!t->done && !dead) {
        stream *with = NULL;
        op *record = NULL;
        for (stream *s = streams; s && !with; s = s->next)
            for (op *o = s->first; o; o = o->next)
                if (o->what == RECORD && o->token == t) { with = s; record = o; break; }
        if (!with) { fault("an event is waited for whose record is lost"); return; }
        force(with, record);
    }
}

static void force(stream *s, op *until) {
    for (int last = 0; s->first && !last;) {
        op *o = s->first;
        last = o == until;
        if (o->what == WAIT) force_token(o->token);
        execute(o);
        pop(s);
    }
}

static void drain(stream *s) {
    if (lazy) { force(s, NULL); return; }
    while (s->first) pthread_cond_wait(&changed, &mu);
}

static void await(token *t) {
    if (!t) return;
    hold(t);
    if (lazy) force_token(t);
    while (!t->done && !dead) pthread_cond_wait(&changed, &mu);
    drop_token(t);
}

static stream *new_stream(context *c) {
    stream *s = calloc(1, sizeof *s);
    s->ctx = c;
    s->last = &s->first;
    s->next = streams;
    streams = s;
    if (!lazy) {
        pthread_create(&s->thread, NULL, work, s);
        pthread_detach(s->thread);
    }
    return s;
}

// end_stream ends a stream; what is queued is still done.
static void end_stream(stream *s) {
    s->dying = 1;
    pthread_cond_broadcast(&changed);
    if (!lazy) return; // its thread does the rest
    force(s, NULL);
    unlink_stream(s);
}

static void enqueue(stream *s, op o) {
    op *copy = malloc(sizeof *copy);
    *copy = o;
    copy->next = NULL;
    *s->last = copy;
    s->last = &copy->next;
    pthread_cond_broadcast(&changed);
}

static int known_stream(stream *s) {
    for (stream *t = streams; t; t = t->next)
        if (t == s && !t->dying) return 1;
    return 0;
}

// stream_of returns the stream of a handle in the current context, or NULL.
static stream *stream_of(stream *s) {
    if (!s || s == (stream *)1) { // the legacy default stream
        if (!current->null_stream) current->null_stream = new_stream(current);
        return current->null_stream;
    }
    if (s == (stream *)2) { // CU_STREAM_PER_THREAD: another stream on each thread
        stream **own = &per_thread[current->device];
        if (!*own || !known_stream(*own)) *own = new_stream(current);
        return *own;
    }
    return known_stream(s) && s->ctx == current ? s : NULL;
}

static int busy(void) {
    for (stream *s = streams; s; s = s->next)
        if (s->ctx == current && s->first) return 1;
    return 0;
}

static int captures(void) {
    for (stream *s = streams; s; s = s->next)
        if (s->ctx == current && s->capturing) return 1;
    return 0;
}

// end_capture is what the driver does about a call that a capture does not allow.
static CUresult end_capture(void) {
    fault("a call ends the capture of a stream");
    return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
}

// ---- the entry of every call ----

// enter counts a call and says whether it fails. With mu held.
static CUresult enter(const char *name, int needs_context) {
    long i = calls++;
    if (fail_at >= 0 && (i == fail_at || (fail_sticky && i > fail_at))) {
        if (i == fail_at) snprintf(failed_name, sizeof failed_name, "%s", name);
        dead = fail_sticky;
        pthread_cond_broadcast(&changed);
        return (CUresult)fail_code;
    }
    if (!initialized && strcmp(name, "cuInit") != 0) return CUDA_ERROR_NOT_INITIALIZED;
    if (needs_context && !current) return CUDA_ERROR_INVALID_CONTEXT;
    if (needs_context && current->retained == 0) {
        fault("a context is used after its release");
        return CUDA_ERROR_INVALID_CONTEXT;
    }
    return CUDA_SUCCESS;
}

// A call that makes or asks something does nothing if it fails. One that frees, waits or sets
// the context does its work even so: the driver's then returns the error of something earlier.
#define BEGIN(needs) \
    pthread_mutex_lock(&mu); \
    CUresult result = enter(__func__, needs)
#define DO if (result == CUDA_SUCCESS)
#define END pthread_mutex_unlock(&mu); return result

CUresult cuInit(unsigned flags) {
    BEGIN(0);
    DO initialized = 1;
    (void)flags;
    END;
}

CUresult cuDriverGetVersion(int *v) {
    BEGIN(0);
    DO *v = 12040;
    END;
}

#define NAMED(code) {code, #code}
static struct { CUresult code; const char *name; } names[] = {
    NAMED(CUDA_ERROR_INVALID_VALUE), NAMED(CUDA_ERROR_OUT_OF_MEMORY), NAMED(CUDA_ERROR_NOT_INITIALIZED), NAMED(CUDA_ERROR_INVALID_DEVICE),
    NAMED(CUDA_ERROR_INVALID_IMAGE), NAMED(CUDA_ERROR_INVALID_CONTEXT), NAMED(CUDA_ERROR_INVALID_HANDLE),
    NAMED(CUDA_ERROR_NOT_FOUND), NAMED(CUDA_ERROR_ILLEGAL_ADDRESS), NAMED(CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED),
    NAMED(CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED), NAMED(CUDA_ERROR_NOT_SUPPORTED), NAMED(CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED),
    NAMED(CUDA_ERROR_STREAM_CAPTURE_ISOLATION), NAMED(CUDA_ERROR_CAPTURED_EVENT),
};

CUresult cuGetErrorName(CUresult r, const char **name) {
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == r) { *name = names[i].name; return CUDA_SUCCESS; }
    *name = NULL;
    return CUDA_ERROR_INVALID_VALUE;
}

CUresult cuDeviceGetCount(int *n) {
    BEGIN(0);
    DO *n = devices;
    END;
}

CUresult cuDeviceGet(CUdevice *d, int ordinal) {
    BEGIN(0);
    DO {
        if (ordinal < 0 || ordinal >= devices) result = CUDA_ERROR_INVALID_DEVICE;
        else *d = ordinal;
    }
    END;
}

CUresult cuDeviceGetName(char *name, int size, CUdevice d) {
    BEGIN(0);
    DO snprintf(name, size, "Fake %d", d);
    END;
}

CUresult cuDeviceGetAttribute(int *v, CUdevice_attribute attribute, CUdevice d) {
    BEGIN(0);
    (void)d;
    DO *v = attribute == 99 ? 1 : attribute == 113 ? read_only_register : 0;
    END;
}

CUresult cuDevicePrimaryCtxRetain(CUcontext *c, CUdevice d) {
    BEGIN(0);
    DO {
        contexts[d].device = d;
        contexts[d].retained++;
        live_contexts++;
        *c = &contexts[d];
    }
    END;
}

CUresult cuDevicePrimaryCtxRelease_v2(CUdevice d) {
    BEGIN(0);
    if (contexts[d].retained == 0) result = CUDA_ERROR_INVALID_CONTEXT;
    else {
        contexts[d].retained--;
        live_contexts--;
    }
    END;
}

CUresult cuCtxSetCurrent(CUcontext c) {
    BEGIN(0);
    current = c;
    END;
}

CUresult cuCtxPushCurrent_v2(CUcontext c) {
    BEGIN(0);
    DO {
        if (depth == 8) result = CUDA_ERROR_INVALID_VALUE;
        else {
            pushed[depth++] = current;
            current = c;
        }
    }
    END;
}

CUresult cuCtxPopCurrent_v2(CUcontext *c) {
    BEGIN(0);
    if (depth == 0) result = CUDA_ERROR_INVALID_CONTEXT;
    else {
        if (c) *c = current;
        current = pushed[--depth];
    }
    END;
}

CUresult cuCtxSynchronize(void) {
    BEGIN(1);
    if (current && captures()) result = end_capture();
    else if (current)
        for (stream *s = streams; s;) { // a stream that ends on the way changes the list
            if (s->ctx != current || !s->first) { s = s->next; continue; }
            drain(s);
            s = streams;
        }
    END;
}

CUresult cuMemHostAlloc(void **p, size_t n, unsigned flags) {
    BEGIN(1);
    (void)flags;
    DO {
        if (n == 0) result = CUDA_ERROR_INVALID_VALUE;
        else if (posix_memalign(p, 4096, n)) result = CUDA_ERROR_OUT_OF_MEMORY;
        else {
            add_range(*p, n, HOST, -1);
            live_host++;
        }
    }
    END;
}

// Freed memory is overwritten, and kept, so that a late copy from it is wrong and not a crash.
CUresult cuMemFreeHost(void *p) {
    BEGIN(1);
    stalls += current && busy();
    range *r = find(p, 1);
    size_t n = r ? r->size : 0;
    if (!drop_range(p, HOST)) result = CUDA_ERROR_INVALID_VALUE;
    else {
        memset(p, 0xEE, n);
        live_host--;
    }
    END;
}

CUresult cuMemHostRegister_v2(void *p, size_t n, unsigned flags) {
    BEGIN(1);
    DO {
        if (n == 0 || ((uintptr_t)p | n) % 4096 || !(flags & 8) == !writable) result = CUDA_ERROR_INVALID_VALUE;
        else if (!writable && !read_only_register) result = CUDA_ERROR_NOT_SUPPORTED;
        else if (find(p, 1)) result = CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED;
        else {
            add_range(p, n, REGISTERED, -1);
            live_registered++;
        }
    }
    END;
}

CUresult cuMemHostUnregister(void *p) {
    BEGIN(1);
    stalls += current && busy();
    unsigned char page;
    if (mincore(p, 1, &page)) fault("memory was unmapped before it was unregistered");
    if (!drop_range(p, REGISTERED)) result = CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED;
    else live_registered--;
    END;
}

CUresult cuMemAlloc_v2(CUdeviceptr *d, size_t n) {
    BEGIN(1);
    DO {
        void *p = n ? allocate(n) : NULL;
        if (n == 0) result = CUDA_ERROR_INVALID_VALUE;
        else if (!p) result = CUDA_ERROR_OUT_OF_MEMORY;
        else {
            memset(p, 0xDD, n);
            add_range(p, n, DEVICE, current->device);
            live_device++;
            *d = (CUdeviceptr)p;
        }
    }
    END;
}

CUresult cuMemFree_v2(CUdeviceptr d) {
    BEGIN(1);
    stalls += current && busy();
    range *r = find((void *)d, 1);
    size_t n = r ? r->size : 0;
    if (!drop_range((void *)d, DEVICE)) result = CUDA_ERROR_INVALID_VALUE;
    else {
        memset((void *)d, 0xDD, n);
        live_device--;
    }
    END;
}

CUresult cuMemGetInfo_v2(size_t *available, size_t *total) {
    BEGIN(1);
    DO {
        *available = *total = DEVICE_SIZE;
        for (range *r = ranges; r; r = r->next)
            if (r->kind == DEVICE) *available -= r->size;
    }
    END;
}

static CUresult copy_async(what w, char *dst, const char *src, size_t n, stream *handle, const void *dev, const void *host) {
    stream *s = stream_of(handle);
    range *d = find(dev, n), *h = find(host, n);
    if (!s) return CUDA_ERROR_INVALID_HANDLE;
    if (!d || d->kind != DEVICE || d->device != current->device) return CUDA_ERROR_INVALID_VALUE;
    token mark = {2, 0};
    op o = {.what = w, .dst = dst, .src = src, .n = n};
    if (!h || h->kind == DEVICE) { // not page-locked: the driver copies before it returns
        pageable++;
        o.token = &mark;
        enqueue(s, o);
        drain(s);
        return CUDA_SUCCESS;
    }
    if (h->kind == REGISTERED && w == COPY_OUT) return CUDA_ERROR_INVALID_VALUE; // read-only
    enqueue(s, o);
    return CUDA_SUCCESS;
}

CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr dst, const void *src, size_t n, CUstream s) {
    BEGIN(1);
    DO result = copy_async(COPY_IN, (char *)dst, src, n, s, (void *)dst, src);
    END;
}

CUresult cuMemcpyDtoHAsync_v2(void *dst, CUdeviceptr src, size_t n, CUstream s) {
    BEGIN(1);
    DO result = copy_async(COPY_OUT, dst, (const char *)src, n, s, (const void *)src, dst);
    END;
}

CUresult cuStreamCreate(CUstream *s, unsigned flags) {
    BEGIN(1);
    (void)flags;
    DO {
        *s = new_stream(current);
        live_streams++;
    }
    END;
}

CUresult cuStreamDestroy_v2(CUstream s) {
    BEGIN(1);
    if (!known_stream(s)) result = CUDA_ERROR_INVALID_HANDLE;
    else {
        live_streams--;
        end_stream(s);
    }
    END;
}

CUresult cuStreamSynchronize(CUstream s) {
    BEGIN(1);
    if (current) {
        stream *known = stream_of(s);
        if (!known) result = result != CUDA_SUCCESS ? result : CUDA_ERROR_INVALID_HANDLE;
        else if (known->capturing) result = end_capture();
        else drain(known);
    }
    END;
}

CUresult cuStreamWaitEvent(CUstream handle, CUevent e, unsigned flags) {
    BEGIN(1);
    (void)flags;
    DO {
        stream *s = stream_of(handle);
        if (!s || e->dead) result = CUDA_ERROR_INVALID_HANDLE;
        else if (s->capturing && !e->captured) result = CUDA_ERROR_STREAM_CAPTURE_ISOLATION;
        else if (e->captured) {
            fault("a stream joins the capture of another");
            s->capturing = 1;
        } else if (e->last) enqueue(s, (op){.what = WAIT, .token = hold(e->last)});
    }
    END;
}

CUresult cuStreamIsCapturing(CUstream handle, CUstreamCaptureStatus *status) {
    BEGIN(1);
    DO {
        stream *s = stream_of(handle);
        if (!s) result = CUDA_ERROR_INVALID_HANDLE;
        else *status = s->capturing ? CU_STREAM_CAPTURE_STATUS_ACTIVE : CU_STREAM_CAPTURE_STATUS_NONE;
    }
    END;
}

CUresult cuEventCreate(CUevent *e, unsigned flags) {
    BEGIN(1);
    DO {
        if (!(flags & 2)) result = CUDA_ERROR_INVALID_VALUE; // timing makes waits slow: nobody here asks for it
        else {
            *e = calloc(1, sizeof **e);
            (*e)->ctx = current;
            live_events++;
        }
    }
    END;
}

// A destroyed event stays as memory, so that a later use of it is told from a good one.
CUresult cuEventDestroy_v2(CUevent e) {
    BEGIN(1);
    if (e->dead) result = CUDA_ERROR_INVALID_HANDLE;
    else {
        e->dead = 1;
        drop_token(e->last);
        e->last = NULL;
        live_events--;
    }
    END;
}

CUresult cuEventRecord(CUevent e, CUstream handle) {
    BEGIN(1);
    DO {
        stream *s = stream_of(handle);
        if (!s || e->dead || e->ctx != current) result = CUDA_ERROR_INVALID_HANDLE;
        else if (s->capturing) e->captured = 1; // by the graph: nothing happens now
        else {
            e->captured = 0;
            drop_token(e->last);
            e->last = calloc(1, sizeof *e->last);
            e->last->refs = 1;
            enqueue(s, (op){.what = RECORD, .token = hold(e->last)});
        }
    }
    END;
}

CUresult cuEventSynchronize(CUevent e) {
    BEGIN(1);
    if (e->dead) result = CUDA_ERROR_INVALID_HANDLE;
    else if (e->captured) result = CUDA_ERROR_CAPTURED_EVENT;
    else await(e->last);
    END;
}

CUresult cuEventQuery(CUevent e) {
    BEGIN(1);
    if (e->dead) result = CUDA_ERROR_INVALID_HANDLE;
    else if (result == CUDA_SUCCESS && e->last && !e->last->done) result = CUDA_ERROR_NOT_READY;
    END;
}

static const char *entries[] = {"penstock_normalize_f32", "penstock_normalize_f16", "penstock_normalize_bf16"};

CUresult cuModuleLoadData(CUmodule *module, const void *image) {
    BEGIN(1);
    DO {
        if (!strstr(image, ".version") || !strstr(image, ".target")) result = CUDA_ERROR_INVALID_IMAGE;
        else {
            *module = (CUmodule)strdup(image);
            live_modules++;
        }
    }
    END;
}

CUresult cuModuleUnload(CUmodule module) {
    BEGIN(1);
    free(module);
    live_modules--;
    END;
}

CUresult cuModuleGetFunction(CUfunction *f, CUmodule module, const char *name) {
    BEGIN(1);
    DO {
        char entry[128];
        snprintf(entry, sizeof entry, ".entry %s(", name);
        result = CUDA_ERROR_NOT_FOUND;
        for (uintptr_t i = 0; i < 3 && strstr((char *)module, entry); i++)
            if (strcmp(name, entries[i]) == 0) { *f = (CUfunction)(i + 1); result = CUDA_SUCCESS; }
    }
    END;
}

CUresult cuLaunchKernel(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx, unsigned by, unsigned bz,
                        unsigned shared, CUstream handle, void **p, void **extra) {
    BEGIN(1);
    (void)shared;
    DO {
        stream *s = stream_of(handle);
        uintptr_t f = (uintptr_t)function;
        if (!s) result = CUDA_ERROR_INVALID_HANDLE;
        else if (f < 1 || f > 3 || gx == 0 || bx == 0 || bx > 1024 || gy != 1 || gz != 1 || by != 1 || bz != 1 || extra) result = CUDA_ERROR_INVALID_VALUE;
        else {
            op o = {.what = KERNEL};
            launch *l = &o.launch;
            l->kernel = (int)f - 1;
            memcpy(&l->dst, p[0], 8);
            memcpy(&l->src, p[1], 8);
            uint32_t *words[] = {&l->total, &l->channels, &l->plane, &l->pixel, &l->channel};
            for (int i = 0; i < 5; i++) memcpy(words[i], p[2 + i], 4);
            memcpy(&l->scale, p[7], 4);
            for (int i = 0; i < 4; i++) { memcpy(&l->mean[i], p[8 + i], 4); memcpy(&l->std[i], p[12 + i], 4); }
            launches++;
            enqueue(s, o);
        }
    }
    END;
}

// ---- what tests call ----

#pragma GCC diagnostic ignored "-Wmissing-prototypes"

// fakecuda_reset sets how everything runs from now on. Nothing may be alive; what destroyed
// streams still do ends first.
void fakecuda_reset(int lazy_mode, int device_count, unsigned pause, int read_only) {
    pthread_mutex_lock(&mu);
    for (int d = 0; d < MAX_DEVICES; d++)
        if (contexts[d].null_stream) {
            end_stream(contexts[d].null_stream);
            contexts[d].null_stream = NULL;
        }
    for (stream *s = streams; s; s = streams)
        if (s->dying) pthread_cond_wait(&changed, &mu);
        else end_stream(s);
    lazy = lazy_mode;
    devices = device_count;
    pause_us = pause;
    read_only_register = read_only;
    calls = faults = copies = pageable = launches = stalls = 0;
    fail_at = -1;
    dead = 0;
    initialized = 0;
    fault_text[0] = failed_name[0] = 0;
    pthread_mutex_unlock(&mu);
}

// fakecuda_fail has call number at, from 0, return code; sticky: and all after it.
void fakecuda_fail(long at, int code, int sticky) {
    pthread_mutex_lock(&mu);
    fail_at = at;
    fail_code = code;
    fail_sticky = sticky;
    pthread_mutex_unlock(&mu);
}

// fakecuda_capture begins or ends the capture of a stream into a graph, which is thrown away.
void fakecuda_capture(CUstream s, int on) {
    pthread_mutex_lock(&mu);
    s->capturing = on;
    pthread_mutex_unlock(&mu);
}

// fakecuda_writable says of what memory registrations are: that of a process, and not of a file that it reads.
void fakecuda_writable(int on) { writable = on; }

// fakecuda_stats writes what is alive, and what happened.
void fakecuda_stats(long *out) {
    pthread_mutex_lock(&mu);
    long all[] = {live_contexts, live_host, live_registered, live_device, live_streams, live_events,
                  live_modules, calls, faults, copies, pageable, launches, stalls};
    memcpy(out, all, sizeof all);
    pthread_mutex_unlock(&mu);
}

const char *fakecuda_fault(void) { return fault_text; }
const char *fakecuda_failed(void) { return failed_name; }

// ---- a library that takes tensors by DLPack, as dlpack.h has it ----

typedef struct { int32_t device_type, device_id; } DLDevice;
typedef struct { uint8_t code, bits; uint16_t lanes; } DLDataType;
typedef struct {
    void *data;
    DLDevice device;
    int32_t ndim;
    DLDataType dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
    DLTensor dl_tensor;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensor *);
} DLManagedTensor;
typedef struct DLManagedTensorVersioned {
    struct { uint32_t major, minor; } version;
    void *manager_ctx;
    void (*deleter)(struct DLManagedTensorVersioned *);
    uint64_t flags;
    DLTensor dl_tensor;
} DLManagedTensorVersioned;

static void describe(DLTensor *t, int64_t *out) {
    int64_t head[] = {t->device.device_type, t->device.device_id, t->ndim, t->dtype.code, t->dtype.bits, t->dtype.lanes,
                      (int64_t)t->byte_offset, (int64_t)t->data};
    memcpy(out, head, sizeof head);
    for (int i = 0; i < t->ndim; i++) { out[8 + i] = t->shape[i]; out[8 + t->ndim + i] = t->strides[i]; }
}

// fakecuda_dlpack writes what the tensor says of itself: device type and number, axes, code,
// bits, lanes, offset, address, lengths, steps.
void fakecuda_dlpack(DLManagedTensor *m, int64_t *out) { describe(&m->dl_tensor, out); }

// fakecuda_dlpack_versioned does the same, or writes nothing of a version that it does not know.
void fakecuda_dlpack_versioned(DLManagedTensorVersioned *m, int64_t *out) {
    if (m->version.major == 1 && m->flags == 0) describe(&m->dl_tensor, out);
}

static void *call_deleter(void *m) {
    ((DLManagedTensor *)m)->deleter(m);
    return NULL;
}

static void *call_deleter_versioned(void *m) {
    ((DLManagedTensorVersioned *)m)->deleter(m);
    return NULL;
}

// fakecuda_dlpack_delete deletes a tensor from a thread that Go has never seen.
void fakecuda_dlpack_delete(DLManagedTensor *m) {
    pthread_t t;
    pthread_create(&t, NULL, call_deleter, m);
    pthread_join(t, NULL);
}

void fakecuda_dlpack_delete_versioned(DLManagedTensorVersioned *m) {
    pthread_t t;
    pthread_create(&t, NULL, call_deleter_versioned, m);
    pthread_join(t, NULL);
}
