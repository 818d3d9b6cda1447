# Types of response_values.py for Cython. Every index is checked against `size` in the source.

cimport cython

@cython.locals(octets="const unsigned char *", at=Py_ssize_t)
cpdef long request_id(bytearray data, Py_ssize_t size, bytes head)

@cython.locals(
    octets="const unsigned char *", expected="const unsigned char *",
    subtree="const unsigned char *", at=Py_ssize_t, row_end=Py_ssize_t, name_at=Py_ssize_t,
    name_size=Py_ssize_t, offset=Py_ssize_t, length=Py_ssize_t, tag=Py_ssize_t, values=list,
)
cpdef read_values(
    bytearray data, Py_ssize_t size, bytes head, bytes names, Py_ssize_t count, bytes root
)

@cython.locals(row_end=Py_ssize_t, name_end=Py_ssize_t, offset=Py_ssize_t)
cdef bint _ends_subtree(
    const unsigned char *octets, Py_ssize_t at, Py_ssize_t size,
    const unsigned char *subtree, Py_ssize_t subtree_size
) noexcept

@cython.locals(at=Py_ssize_t, offset=Py_ssize_t)
cdef Py_ssize_t _pdu_start(
    const unsigned char *octets, Py_ssize_t size, const unsigned char *head, Py_ssize_t head_size
) noexcept

@cython.locals(size=Py_ssize_t)
cdef Py_ssize_t _start(const unsigned char *octets, Py_ssize_t at) noexcept

@cython.locals(size=Py_ssize_t, start=Py_ssize_t, count=Py_ssize_t, offset=Py_ssize_t)
cdef Py_ssize_t _end(const unsigned char *octets, Py_ssize_t at, Py_ssize_t end) noexcept

@cython.locals(number="unsigned long long")
cdef unsigned long long _number(const unsigned char *octets, Py_ssize_t at, Py_ssize_t end) noexcept

@cython.locals(number="long long")
cdef long long _signed(const unsigned char *octets, Py_ssize_t at, Py_ssize_t end) noexcept
